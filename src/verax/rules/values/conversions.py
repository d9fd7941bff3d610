"""Floor 1: what Python may ask of an array: its value, as one of Python's own.

Every conversion goes through `concrete`, which arrays that have values answer and
abstract tracers refuse with advice, so that annotations say `Array` for both. What asks
decides which class of error that is: JAX's for the same question::

    float(x), x.tolist()    # ConcretizationTypeError
    np.asarray(x)           # TracerArrayConversionError
"""

from typing import Any, Literal, Self

import numpy as np

from verax.rules.values.typed import Typed


class JAXTypeError(TypeError):
    """What JAX's errors of type derive from: a tracer where there may be none."""

    __module__ = "verax.errors"


class AbstractValueError(JAXTypeError):
    """Python asked a tracer for a value that it does not have."""

    __module__ = "verax.errors"


class ConcretizationTypeError(AbstractValueError):
    """A tracer was asked for its value: by `float`, `x.item()`, a size, an axis."""

    __module__ = "verax.errors"


class TracerBoolConversionError(ConcretizationTypeError):
    """A tracer was asked whether it is true: by `if`, `while`, `and`, `not`, `bool`."""

    __module__ = "verax.errors"


class TracerIntegerConversionError(ConcretizationTypeError):
    """A tracer was used where Python needs an integer: `[1, 2][x]`, `range(x)`.

    For sizes and axes JAX raises this class or its base, one function this and another
    that, so both catch it.
    """

    __module__ = "verax.errors"


class TracerArrayConversionError(AbstractValueError):
    """A tracer was used where NumPy needs an array: `np.asarray(x)`, `np.sin(x)`."""

    __module__ = "verax.errors"


type Refusal = type[AbstractValueError]


class Convertible(Typed):
    """What Python asks of a value: truth, numbers, indices, NumPy arrays.

    All of it comes from `concrete`, which arrays answer and tracers may refuse.
    """

    __slots__ = ()

    def concrete(
        self, wanted: str, refusal: Refusal = ConcretizationTypeError
    ) -> np.ndarray:
        """The values in NumPy; `wanted` says in messages what asks for them.

        A tracer that has no value raises the class `refusal`.
        """
        raise TypeError(f"{wanted}: a {type(self).__name__} has no values")

    def numbers(
        self, wanted: str, refusal: Refusal = ConcretizationTypeError
    ) -> np.ndarray:
        """`concrete`, of arrays that hold numbers.

        Raises:
            TypeError: the array holds keys.
        """
        if not isinstance(self.aval.dtype, np.dtype):
            raise TypeError(
                f"{wanted.rstrip(',')}: an array of {self.aval.dtype.name} does not "
                "hold numbers; use verax.random.key_data to get the words behind the "
                "keys"
            )
        return self.concrete(wanted, refusal)

    def scalar(self, wanted: str) -> Any:
        """The one element, for `int(x)` and the like.

        Raises:
            TypeError: there are several, or none, or it is complex and must be real.
        """
        if self.aval.size != 1:
            raise TypeError(f"{wanted} takes an array of one element, not {self.aval}")
        if self.aval.dtype.kind == "c" and not wanted.startswith("complex"):
            raise TypeError(f"{wanted} takes a real x, not {self.aval}; use x.real")
        return self.numbers(wanted).reshape(())[()]

    def __bool__(self) -> bool:
        if self.aval.size > 1:
            raise ValueError(
                "the truth value of an array with more than one element, "
                f"{self.aval}, is ambiguous; use x.any() or x.all()"
            )
        return bool(self.numbers("bool(x), as in `if x:`,", TracerBoolConversionError))

    def __int__(self) -> int:
        return int(self.scalar("int(x)"))

    def __float__(self) -> float:
        return float(self.scalar("float(x)"))

    def __complex__(self) -> complex:
        return complex(self.scalar("complex(x)"))

    def __index__(self) -> int:
        return integer_of(self, "an index or a size")

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> np.ndarray:
        values = self.numbers("a NumPy array", TracerArrayConversionError)
        values.flags.writeable = False
        if dtype is not None and dtype != values.dtype:
            if copy is False:
                raise ValueError(
                    f"converting an array of {self.aval.dtype.name} to {dtype} needs "
                    "a copy; leave copy at None"
                )
            return values.astype(dtype)
        return values.copy() if copy else values

    def item(self, *index: int) -> Any:
        """The element at `index`, or the only one, as a Python scalar."""
        return self.numbers("x.item()").item(*index)

    def tolist(self) -> Any:
        """The elements as nested lists of Python scalars."""
        return self.numbers("x.tolist()").tolist()

    def tobytes(self, order: Literal["C", "F", "A", "K"] = "C") -> bytes:
        """The bytes of the elements, in the order of the dimensions."""
        return self.numbers("x.tobytes()").tobytes(order)

    def block_until_ready(self) -> Self:
        """Wait until the value is computed; the array itself."""
        return self


def integer_of(x: Convertible, wanted: str) -> int:
    """The value of one integer; `wanted` says in messages what asks for it.

    Raises:
        TypeError: it is not one integer, or is a tracer without a value.
    """
    if x.aval.dtype.kind not in "iu" or x.aval.shape:
        raise TypeError(
            "Only integer scalar arrays can be converted to a scalar index, not "
            f"{x.aval}"
        )
    return int(x.concrete(wanted, TracerIntegerConversionError))
