"""`pjit`, the former name of `jit` with shardings (floor 6).

New programs use `verax.jit`::

    pjit(f, in_shardings=P("x"), out_shardings=None)

>>> pjit(lambda x: x + 1)(1)
Array(2, dtype=int32, weak_type=True)
"""

from verax.api.jit import jit as pjit

__all__ = ["pjit"]
