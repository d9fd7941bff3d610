"""Floor 2: primitives that work on each element alone.

A row says what is peculiar to it, and `verax.rules.families.elementwise` the rest; the
files go by the kind of function: `arith`, `exp_log`, `trig`, `compare`, ...
"""
