"""Floor 1: what Python may ask of an array: its value, as one of Python's own.

Every conversion goes through `concrete`, which arrays that have values answer and
abstract tracers refuse with advice, so that annotations say `Array` for both. What asks
decides which class of error that is: JAX's for the same question::

    float(x), x.tolist()    # ConcretizationTypeError
    np.asarray(x)           # TracerArrayConversionError
"""

from typing import Any, Final, Literal, Self

import numpy as np

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import DType

# -----------------------------------------------------------------------------
# What has a type: the common base of arrays and tracers.
#
# Shape and dtype are read off the aval, which is the only state here::
#
#     x.aval, x.shape, x.dtype, x.weak_type


# As many characters of an object may stand in a message about a leaf of a tree.
SHOWN: Final = 160


class Typed:
    """Something with an aval: a shape, a dtype and a weak type."""

    __slots__ = ("aval",)

    aval: ShapedArray

    @property
    def shape(self) -> Shape:
        """The sizes of the dimensions."""
        return self.aval.shape

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self.aval.dtype

    @property
    def weak_type(self) -> bool:
        """Whether the dtype gives way to others in promotion."""
        return self.aval.weak_type

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.aval.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size


def shown(x: object, limit: int = 60) -> str:
    """Any object as a string for messages, cut at `limit` characters.

    A message must appear even if the `repr` of the object fails.
    """
    try:
        text = repr(x)
    except Exception:
        return f"an object whose repr fails, of type {type(x).__name__}"
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def described(x: object) -> str:
    """An object and its class, for a message that says it should be another."""
    return f"{shown(x, SHOWN)} of type {type(x).__name__}"


def check_callable(name: str, fun: object) -> None:
    """Raise TypeError unless `fun`, which the function `name` takes, can be called."""
    if not callable(fun):
        raise TypeError(
            f"Expected a callable value: {name} takes a function, not "
            f"{described(fun)}, which is not callable"
        )


class NotLinear(TypeError):
    """An operation was to be transposed in operands in which it is not linear."""


type HostArray = np.ndarray | np.generic | bool | int | float | complex


class NotAnArray(TypeError):
    """An operand that is not an array, scalar or tracer.

    >>> import verax
    >>> verax.numpy.sin([1.0, 2.0])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    verax.errors.NotAnArray: sin takes arrays and scalars, but argument 0 is ...
    """

    __module__ = "verax.errors"


class NotYetAnArray(NotAnArray, ValueError):
    """An operand that `verax.numpy.asarray` makes an array, by its `__jax_array__`."""


class ShardingTypeError(TypeError):
    """Explicit mesh axes split operands so that the split of a result is open."""

    __module__ = "verax.errors"


class UnsummedError(ShardingTypeError, NotImplementedError):
    """An operand is unreduced, of an operation that is not linear."""


class JAXTypeError(TypeError):
    """The base of JAX's errors of type: a tracer where there may be none."""

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
    """Conversions for Python: truth, numbers, indices, NumPy arrays.

    All of it comes from `concrete`, which arrays answer and tracers may refuse.
    """

    __slots__ = ()

    def concrete(
        self, expected: str, refusal: Refusal = ConcretizationTypeError
    ) -> np.ndarray:
        """The values in NumPy; `expected` says in messages what asks for them.

        A tracer that has no value raises the class `refusal`.
        """
        raise TypeError(f"{expected}: a {type(self).__name__} has no values")

    def numbers(
        self, expected: str, refusal: Refusal = ConcretizationTypeError
    ) -> np.ndarray:
        """`concrete`, of arrays that hold numbers.

        Raises:
            TypeError: the array holds keys.
        """
        if not isinstance(self.aval.dtype, np.dtype):
            raise TypeError(
                f"{expected.rstrip(',')}: a JAX array with PRNGKey dtype cannot be "
                f"converted to a NumPy array. {self.aval.dtype.name} does not hold "
                "numbers; use verax.random.key_data to get the words behind the keys"
            )
        return self.concrete(expected, refusal)

    def scalar(self, expected: str) -> Any:
        """The one element, for `int(x)` and the like.

        Raises:
            TypeError: it has dimensions, or is complex and must be real.
        """
        if self.aval.shape:
            way = "; use x.item()" if self.aval.size == 1 else ""
            raise TypeError(
                "Only scalar arrays can be converted to Python scalars; got "
                f"{self.aval} in {expected}{way}"
            )
        if self.aval.dtype.kind == "c" and not expected.startswith("complex"):
            raise TypeError(f"{expected} takes a real x, not {self.aval}; use x.real")
        return self.numbers(expected)[()]

    def __bool__(self) -> bool:
        if self.aval.shape and self.aval.size != 1:
            raise ambiguous(self.aval)
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
        self, dtype: np.dtype[np.generic] | None = None, copy: bool | None = None
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


def ambiguous(aval: ShapedArray) -> ValueError:
    """The error for the truth of several elements, or of none."""
    if aval.size == 0:
        return ValueError(
            "The truth value of an empty array is ambiguous: whether "
            f"{aval} has elements is x.size > 0"
        )
    return ValueError(
        "The truth value of an array with more than one element is ambiguous: "
        f"of {aval} use x.any() or x.all()"
    )


def integer_of(x: Convertible, expected: str) -> int:
    """The value of one integer; `expected` says in messages what asks for it.

    Raises:
        TypeError: it is not one integer, or is a tracer without a value.
    """
    if x.aval.dtype.kind not in "iu" or x.aval.shape:
        raise TypeError(
            "Only integer scalar arrays can be converted to a scalar index, not "
            f"{x.aval}"
        )
    return int(x.concrete(expected, TracerIntegerConversionError))
