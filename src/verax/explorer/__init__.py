"""Floor 6: programs to look at, from the user's lines to the compiled code.

`verax.explore` makes a document of a function: its traced program, what each
transformation and pass made of it, StableHLO and what XLA compiles, with a link from
each row to the rows it was made from. The page shows that in a browser::

    verax.explore(verax.grad(loss))(w, x).save("loss.html")
"""
