"""Floor 3: programs made smaller: the same values from fewer equations.

A pass is a function from jaxprs to jaxprs that keeps values and effects.
"""
