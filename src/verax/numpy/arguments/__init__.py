"""Floor 6: what users pass, made into arrays, axes and dtypes.

Every function of `verax.numpy` begins with a function of this package.
"""
