"""Floor 6: mutable references, under JAX's names.

A reference is a mutable array, which functions under `jit`, `grad` and `vmap` may read
and write; `discharge` shows such a program as a pure one::

    ref = verax.new_ref(vnp.zeros(3))
    verax.ref.addupdate(ref, 0, 1.0)        # ref[0] += 1.0
"""

from verax.api.tracing.references import (
    discharge as discharge,
    empty_ref as empty_ref,
    free_ref as free_ref,
    freeze as freeze,
    new_ref as new_ref,
)
from verax.ir.avals import AbstractRef as AbstractRef
from verax.rules.values.array import Array
from verax.rules.values.reference import Ref as Ref

__all__ = [
    "AbstractRef",
    "Ref",
    "addupdate",
    "discharge",
    "empty_ref",
    "free_ref",
    "freeze",
    "get",
    "new_ref",
    "set",
    "swap",
]


def get(ref: Ref, idx: object = None) -> Array:
    """Reads what a reference holds at an index, all of it by default: `ref[idx]`.

    >>> get(new_ref([1, 2, 3]), 0).item()
    1
    """
    return ref.get(() if idx is None else idx)


def set(ref: Ref, idx: object, value: object) -> None:
    """Write at an index, None for all: `ref[idx] = value`.

    Raises:
        ValueError: the value has another dtype, or a shape that does not fit.

    >>> ref = new_ref([1, 2, 3])
    >>> set(ref, 0, 5)
    >>> ref
    Ref([5, 2, 3], dtype=int32)
    """
    ref.set(value, () if idx is None else idx)


def swap(ref: Ref, idx: object, value: object) -> Array:
    """Write at an index, None for all, and return what was there.

    Raises:
        ValueError: the value has another dtype, or a shape that does not fit.

    >>> swap(new_ref([1, 2, 3]), 0, 5).item()
    1
    """
    return ref.swap(value, () if idx is None else idx)


def addupdate(ref: Ref, idx: object, x: object) -> None:
    """Add at an index, None for all: `ref[idx] += x`, but what is named twice, twice.

    Raises:
        ValueError: `x` has another dtype, or a shape that does not fit.

    >>> import numpy as np
    >>> ref = new_ref([1, 2, 3])
    >>> addupdate(ref, np.array([0, 0]), 5)
    >>> ref
    Ref([11, 2, 3], dtype=int32)
    """
    ref.addupdate(x, () if idx is None else idx)
