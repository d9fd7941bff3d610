"""Floor 5: `jit`: the decorator, the function that it makes, and its lock.

One idea: `function` is what a call goes through; read it first.
"""
