"""Floor 3: transformations of the user's own, as tables of rules.

`propagation` walks the program, `control` has rules of loops.
"""
