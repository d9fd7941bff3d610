"""Floor 3: transformations of the user's own, as tables of rules.

One idea: `propagation` walks the program, `control` has rules of loops.
"""
