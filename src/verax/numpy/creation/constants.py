"""Floor 6: the constants of NumPy.

They are Python numbers, hence weak, and adapt to the array beside them::

    pi, e, euler_gamma, inf, nan, newaxis
"""

import numpy as np

from verax.numpy.creation.dtypes import bool_

# Not in `dtypes`, where it would hide the class that annotations mean.
bool = bool_
e = float(np.e)
euler_gamma = float(np.euler_gamma)
inf = float("inf")
nan = float("nan")
newaxis = None
pi = float(np.pi)
