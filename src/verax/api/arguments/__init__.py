"""Floor 5: the arguments of a jitted function: static, donated, and as part of a key.

What `jit` is told about arguments is checked where it is told.
"""
