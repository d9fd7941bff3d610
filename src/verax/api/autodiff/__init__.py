"""Floor 5: derivatives of Python functions.

One idea: `jvp` and `vjp` trace once (`jvp_vjp`); `grad` and the Jacobians are made of
them, and `pullback` is the function that `vjp` gives.
"""
