"""Floor 2: the primitives, one small file per family, each row with all its rules.

Functions here bind: `sin(x)` computes, or writes an equation, as the current
interpreter has it::

    y = mul(sin(x), 2.0)
"""
