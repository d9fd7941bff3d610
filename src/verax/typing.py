"""Types for annotations under JAX's names: `verax.typing` (floor 6).

One idea: what functions of arrays take, by name::

    def f(x: verax.typing.ArrayLike) -> verax.Array: ...

>>> from verax.typing import DTypeLike
>>> DTypeLike.__name__
'DTypeLike'
"""

from verax.ir.dtypes import DTypeLike as DTypeLike
from verax.numpy.arguments.arguments import ArrayLike as ArrayLike
