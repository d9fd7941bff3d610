"""Floor 1: functions of the host that programs call, and what they may return.

One idea: a call of the user's function is checked in one place, whoever runs the
program, so that a wrong result or an exception is the same clear error everywhere::

    called(function, (ShapedArray((3,), float32),), [x])
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
from attrs import evolve, field, frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import canonical, int32, stored_dtype
from verax.ir.jaxpr import UNKNOWN_SOURCE, Source
from verax.ir.memos import holds
from verax.ir.records import ReprMixin
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
            result = function(*arrays)
            values = list(map(as_numpy, result))
    except WrongStructure as error:
        raise CallbackError(f"{call_words(function)} returned {error}") from None
    except Exception as error:
        raise CallbackError(
            f"{call_words(function)} raised {type(error).__name__}: {error}"
        ) from error
    if len(result) != len(results):
        raise CallbackError(
            f"{call_words(function)} returned {len(result)} arrays, but "
            f"result_shape_dtypes has {len(results)}"
        )
    return [
        fitted(function, i, value, aval)
        for i, (value, aval) in enumerate(zip(values, results, strict=True))
    ]


def call_words(function: HostFunction) -> str:
    """The words for a function in messages: its name, and the line of the call."""
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


# -----------------------------------------------------------------------------
# What a check of a program says where it fails.
#
# A program returns the number of the check that failed first and some values;
# the checks themselves, with messages and lines, are data beside the program::
#
#     sites[code].failure(values)      # an exception, whose text is the message


PASSED: Final = np.int32(2**31 - 1)
"""The number of no check: it is greater than every other."""

type Kind = tuple[ShapedArray, ...]
"""The types of the values that a failure shows. What fails first is one check, so
those with values of the same types share the results that hold them."""


class Structure(Protocol):
    """The structure of a tree."""

    def unflatten(self, leaves: Sequence[object], /) -> Any: ...


@frozen(repr=False)
class Message(ReprMixin):
    """A format of the user's, and the structure `(args, kwargs)` of its arguments."""

    text: str
    arguments: Structure
    transient: bool = field(default=False, eq=False)

    def filled(self, values: Sequence[object]) -> str:
        """The format with the arguments."""
        args, kwargs = self.arguments.unflatten(values)
        return self.text.format(*args, **kwargs)


@frozen(repr=False)
class Bounds(ReprMixin):
    """The primitive that took an index, and the shape of what it went into."""

    primitive: str
    shape: Shape


class JaxException(Exception):
    """A failed check; its class is the category of the check.

    `source` is the user's line, where it is known, and `payload` the values that the
    message shows.
    """

    __module__ = "verax.experimental.checkify"

    def __init__(
        self,
        about: Any = None,
        payload: Sequence[Any] = (),
        source: Source = UNKNOWN_SOURCE,
    ) -> None:
        self.about = about
        self.payload = tuple(payload)
        self.source = source
        super().__init__(about, self.payload, source)
        if source.code is not None:
            self.add_note(f"check failed at {source}")

    def __str__(self) -> str:
        """The message."""
        raise NotImplementedError


class FailedCheckError(JaxException):
    """The predicate of a `check` was false."""

    __module__ = "verax.experimental.checkify"

    def __str__(self) -> str:
        """The user's message, with the arguments of its format."""
        return f"{self.about.filled(self.payload)} (`check` failed)"


class NaNError(JaxException):
    """An operation made a NaN."""

    __module__ = "verax.experimental.checkify"

    @property
    def prim(self) -> str:
        """The name of the primitive that made it."""
        return str(self.about)

    def __str__(self) -> str:
        """The primitive that made it."""
        return f"nan generated by primitive: {self.prim}."


class DivisionByZeroError(JaxException):
    """A divisor was zero."""

    __module__ = "verax.experimental.checkify"

    def __str__(self) -> str:
        """The message: there is nothing else to say."""
        return "division by zero"


class OOBError(JaxException):
    """An index was out of bounds; the payload is the index and its dimension."""

    __module__ = "verax.experimental.checkify"

    def __str__(self) -> str:
        """The index, the dimension, and the size of that."""
        index, axis = map(int, self.payload)
        shape = self.about.shape
        return (
            f"out-of-bounds indexing for array of shape {shape}: index {index} is out "
            f"of bounds for axis {axis} with size {shape[axis]}."
        )


class BatchedError(JaxException):
    """Failures of some elements of a batch, by the index of the element."""

    __module__ = "verax.experimental.checkify"

    def __init__(self, error_mapping: Mapping[tuple[int, ...], JaxException]) -> None:
        self.error_mapping = dict(error_mapping)
        first = next(iter(self.error_mapping.values()))
        super().__init__(self.error_mapping, (), first.source)

    def __str__(self) -> str:
        """A line for each of the elements."""
        lines = [
            f"at mapped index {', '.join(map(str, index))}: {error}"
            for index, error in self.error_mapping.items()
        ]
        return "\n".join(lines)


type Category = type[JaxException]


@frozen(repr=False)
class Site(ReprMixin):
    """One check of a program: what it is about, what it shows, and where it stands."""

    category: Category
    about: object
    kind: Kind = ()
    source: Source = field(default=UNKNOWN_SOURCE, eq=False)

    @property
    def transient(self) -> bool:
        """Whether it holds what a memo must not keep alive."""
        return holds(self.about)

    def at(self, source: Source) -> "Site":
        """The check at another line, if it does not know its own."""
        return self if self.source.code is not None else evolve(self, source=source)

    def failure(self, payload: Sequence[object]) -> JaxException:
        """The exception for these values."""
        return self.category(self.about, payload, self.source)


INDEX: Final[Kind] = (ShapedArray((), int32), ShapedArray((), int32))
"""The details of an index out of bounds: the index, and its dimension."""


def kinds_of(sites: Sequence[Site]) -> tuple[Kind, ...]:
    """The kinds of values that the checks show, in the order of the first ones."""
    return tuple(dict.fromkeys([site.kind for site in sites if site.kind]))


def by_kind[T](kinds: Sequence[Kind], values: Sequence[T]) -> dict[Kind, list[T]]:
    """Values in the order of their kinds, for each kind."""
    rest = iter(values)
    return {kind: [next(rest) for _ in kind] for kind in kinds}


def failure_of(
    sites: Sequence[Site], code: int, values: Sequence[object]
) -> JaxException | None:
    """The exception of the check number `code`; None if none has failed."""
    if code == PASSED:
        return None
    site = sites[code]
    out = by_kind(kinds_of(sites), values)
    return site.failure(out.get(site.kind, ()))
