"""Floor 3: a shadow of a program in wider arithmetic, which says where digits go.

One idea: each equation runs twice, in its own dtypes and in wider ones, and what both
say is measured and kept for the equation::

    walk = Walk(engine, InFloat64(engine))
    outs = walk.run(jaxpr, values)          # the values of the program itself
    walk.root                               # what was measured, equation by equation
"""
