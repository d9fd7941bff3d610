"""Floor 5: `jit`: the decorator, the function that it makes, and its lock.

A call goes through `function`; read that first.
"""
