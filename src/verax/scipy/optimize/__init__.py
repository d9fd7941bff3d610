"""Floor 6: `verax.scipy.optimize`: minima of functions.

>>> import verax.numpy as vnp
>>> from verax.scipy import optimize
>>> def square(x):
...     return ((x - 3) ** 2).sum()
>>> found = optimize.minimize(square, vnp.zeros(2), method="BFGS")
>>> found.x.round(3).tolist(), bool(found.success)
([3.0, 3.0], True)
"""

from verax.scipy.optimize.minimizing import (
    OptimizeResults as OptimizeResults,
    minimize as minimize,
)
