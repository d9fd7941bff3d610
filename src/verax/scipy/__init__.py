"""Floor 6: `verax.scipy`: functions of SciPy, with its names and arguments.

>>> import verax
>>> verax.scipy.special.expit(0.0)
Array(0.5, dtype=float32, weak_type=True)
"""

from verax.scipy import linalg as linalg, special as special
