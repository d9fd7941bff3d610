"""Floor 1: functions of the host that programs call, and what they may return.

One idea: a call of the user's function is checked in one place, whoever runs the
program, so that a wrong result or an exception is the same clear error everywhere::

    called(function, (ShapedArray((3,), float32),), [x])
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import canonical, stored_dtype
from verax.ir.jaxpr import Source
from verax.rules.values.array import Array
from verax.rules.values.state import STATE, interpreting

type Arrays = Sequence[np.ndarray]


@runtime_checkable
class HostFunction(Protocol):
    """A user's function as a value, on arrays of NumPy; equal ones do the same."""

    def __hash__(self) -> int: ...
    def __call__(self, *arrays: np.ndarray) -> Sequence[object]: ...
    @property
    def name(self) -> str: ...
    @property
    def source(self) -> Source: ...


class JaxRuntimeError(RuntimeError):
    """A program failed while it ran or was compiled; the base of all such errors."""

    __module__ = "verax.errors"


class CallbackError(JaxRuntimeError):
    """A callback raised an exception, which is the cause, or returned what is wrong."""

    __module__ = "verax.errors"


class WrongStructure(Exception):
    """A function returned another structure than promised; the text says which."""


def called(
    function: HostFunction, results: Sequence[ShapedArray], arrays: Arrays
) -> list[np.ndarray]:
    """The results of `function`, in the types `results`; it runs outside any trace.

    Raises:
        CallbackError: it raised an exception, or returned something else.
    """
    try:
        with interpreting(STATE.eager):
            found = function(*arrays)
            values = list(map(as_numpy, found))
    except WrongStructure as error:
        raise CallbackError(f"{call_words(function)} returned {error}") from None
    except Exception as error:
        raise CallbackError(
            f"{call_words(function)} raised {type(error).__name__}: {error}"
        ) from error
    if len(found) != len(results):
        raise CallbackError(
            f"{call_words(function)} returned {len(found)} arrays, but "
            f"result_shape_dtypes has {len(results)}"
        )
    return [
        fitted(function, i, value, aval)
        for i, (value, aval) in enumerate(zip(values, results, strict=True))
    ]


def call_words(function: HostFunction) -> str:
    """How messages call a function: its name, and where the user wrote the call."""
    return f"the callback {function.name}, called at {function.source},"


def as_numpy(x: object) -> np.ndarray:
    return x.stored() if isinstance(x, Array) else np.asarray(x)


def fitted(
    function: HostFunction, position: int, value: np.ndarray, aval: ShapedArray
) -> np.ndarray:
    """The value in exactly the promised type; 64 bits are narrowed if x64 is off."""
    dtype = stored_dtype(aval.dtype)
    if value.shape == aval.shape:
        if value.dtype == dtype:
            return np.ascontiguousarray(value).reshape(aval.shape)
        if value.dtype.kind in "iufc" and (
            canonical(value.dtype, STATE.enable_x64) == dtype
        ):
            return value.astype(dtype)
    raise CallbackError(
        f"{call_words(function)} returned {value.dtype}{list(value.shape)} as result "
        f"{position}, but result_shape_dtypes says {dtype}{list(aval.shape)}; return "
        "an array of that shape and dtype, or change result_shape_dtypes"
    )
