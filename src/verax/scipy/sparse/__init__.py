"""Floor 6: `verax.scipy.sparse`: solvers for operators that are never filled in.

>>> import numpy as np
>>> from verax.scipy import sparse
>>> x, _ = sparse.linalg.cg(lambda x: 2 * x, np.float32([2, 4]))
>>> x.tolist()
[1.0, 2.0]
"""

from verax.scipy.sparse import linalg as linalg
