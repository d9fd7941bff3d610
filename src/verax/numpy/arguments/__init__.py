"""Floor 6: what users pass, made into arrays, axes and dtypes.

One idea: every function of `verax.numpy` begins with a function of this package.
"""
