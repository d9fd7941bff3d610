"""Floor 5: the arguments of a jitted function: static, donated, and as part of a key.

One idea: what a call is told about its arguments is checked where it is said.
"""
