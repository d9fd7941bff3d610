"""Types for annotations under JAX's names: `verax.typing` (floor 6).

One idea: what functions of arrays take, by name::

    def f(x: verax.typing.ArrayLike) -> verax.Array: ...

>>> from verax.typing import ArrayLike, DTypeLike
>>> DTypeLike.__name__
'DTypeLike'
>>> isinstance(1.0, ArrayLike)
True
"""

import numpy as np

from verax.api.arguments.checked_shapes import checked as checked
from verax.ir.dtypes import DTypeLike as DTypeLike
from verax.rules.values.array import Array

# A union of classes and not an alias, for checks like the one above.
ArrayLike = Array | np.ndarray | np.generic | bool | int | float | complex
"""An array, or a scalar of NumPy or Python."""
