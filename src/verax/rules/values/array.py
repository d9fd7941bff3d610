"""Floor 1: `Array`, the type that users see: arrays and tracers alike.

One idea: the class lists NumPy's operators and methods, typed, and hands each to one
function of a namespace, which `verax.wiring` provides; so values carry operators while
the functions behind them stand floors above::

    x * 2 + x.sum(axis=0)          # namespace.add(namespace.multiply(x, 2), ...)
"""

from collections.abc import Callable, Iterator, Sequence
from operator import index
from typing import Any, ClassVar, Protocol, SupportsIndex, cast

import numpy as np

from verax.ir.hints import hint
from verax.ir.records import hiding
from verax.rules.values.conversions import Convertible, NotAnArray, shown
from verax.rules.values.no_placement import Located
from verax.rules.values.updating import At

type Axes = int | Sequence[int] | None
type NamedAxes = int | Sequence[int | str] | None
API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
type Function = Callable[..., "Array"]
CONTAINERS = (list, tuple, set, dict)


class Namespace(Protocol):
    """An array's view of the NumPy frontend: a function by name."""

    def __getattr__(self, name: str) -> Function: ...


class NoNamespace:
    """The namespace of a process that imported floors without `verax.wiring`."""

    def __getattr__(self, name: str) -> Function:
        raise RuntimeError(
            f"array.{name}: no NumPy frontend is installed; import verax"
        )


class Operators(Convertible):
    """Python's operators on arrays, with NumPy's meaning and JAX's promotion."""

    __slots__ = ()
    __array_priority__ = 100
    namespace: ClassVar[Namespace] = NoNamespace()
    __hash__ = None  # type: ignore[assignment]  # arrays compare elementwise

    def operate(self, name: str, x: object, y: object) -> "Array":
        """A binary operator; Python tries the other operand's for other classes.

        Containers have no such operators, and `x == [1, 2]` would be False; classes
        made from them, as named tuples, may have.
        """
        function: Function = getattr(self.namespace, name)
        try:
            return function(x, y)
        except NotAnArray as error:
            other = y if x is self else x
            if (converted := self.converted(other)) is None:
                if type(other) in CONTAINERS:
                    kinds = f"{type(x).__name__!r} and {type(y).__name__!r}"
                    raise NotAnArray(
                        f"unsupported operand type(s) for {name}: {kinds}: {error}"
                    ) from None
                return cast("Array", NotImplemented)
        return function(self, converted) if x is self else function(converted, self)

    @staticmethod
    def converted(other: object) -> "Array | None":
        """The operand as an array, by JAX's protocol."""
        convert: Callable[[], Array] | None = getattr(other, "__jax_array__", None)
        return None if convert is None else convert()

    def __add__(self, other: object) -> "Array":
        return self.operate("add", self, other)

    def __radd__(self, other: object) -> "Array":
        return self.operate("add", other, self)

    def __sub__(self, other: object) -> "Array":
        return self.operate("subtract", self, other)

    def __rsub__(self, other: object) -> "Array":
        return self.operate("subtract", other, self)

    def __mul__(self, other: object) -> "Array":
        return self.operate("multiply", self, other)

    def __rmul__(self, other: object) -> "Array":
        return self.operate("multiply", other, self)

    def __truediv__(self, other: object) -> "Array":
        return self.operate("true_divide", self, other)

    def __rtruediv__(self, other: object) -> "Array":
        return self.operate("true_divide", other, self)

    def __floordiv__(self, other: object) -> "Array":
        return self.operate("floor_divide", self, other)

    def __rfloordiv__(self, other: object) -> "Array":
        return self.operate("floor_divide", other, self)

    def __mod__(self, other: object) -> "Array":
        return self.operate("remainder", self, other)

    def __rmod__(self, other: object) -> "Array":
        return self.operate("remainder", other, self)

    def __pow__(self, other: object) -> "Array":
        return self.operate("power", self, other)

    def __rpow__(self, other: object) -> "Array":
        return self.operate("power", other, self)

    def __matmul__(self, other: object) -> "Array":
        return self.operate("matmul", self, other)

    def __rmatmul__(self, other: object) -> "Array":
        return self.operate("matmul", other, self)

    def __and__(self, other: object) -> "Array":
        return self.operate("bitwise_and", self, other)

    def __rand__(self, other: object) -> "Array":
        return self.operate("bitwise_and", other, self)

    def __or__(self, other: object) -> "Array":
        return self.operate("bitwise_or", self, other)

    def __ror__(self, other: object) -> "Array":
        return self.operate("bitwise_or", other, self)

    def __xor__(self, other: object) -> "Array":
        return self.operate("bitwise_xor", self, other)

    def __rxor__(self, other: object) -> "Array":
        return self.operate("bitwise_xor", other, self)

    def __lshift__(self, other: object) -> "Array":
        return self.operate("left_shift", self, other)

    def __rlshift__(self, other: object) -> "Array":
        return self.operate("left_shift", other, self)

    def __rshift__(self, other: object) -> "Array":
        return self.operate("right_shift", self, other)

    def __rrshift__(self, other: object) -> "Array":
        return self.operate("right_shift", other, self)

    def __divmod__(self, other: object) -> "tuple[Array, Array]":
        return cast("tuple[Array, Array]", self.operate("divmod", self, other))

    def __rdivmod__(self, other: object) -> "tuple[Array, Array]":
        return cast("tuple[Array, Array]", self.operate("divmod", other, self))

    def __eq__(self, other: object) -> "Array":  # type: ignore[override]  # elementwise, as NumPy
        return self.operate("equal", self, other)

    def __ne__(self, other: object) -> "Array":  # type: ignore[override]  # elementwise, as NumPy
        return self.operate("not_equal", self, other)

    def __lt__(self, other: object) -> "Array":
        return self.operate("less", self, other)

    def __le__(self, other: object) -> "Array":
        return self.operate("less_equal", self, other)

    def __gt__(self, other: object) -> "Array":
        return self.operate("greater", self, other)

    def __ge__(self, other: object) -> "Array":
        return self.operate("greater_equal", self, other)

    def __neg__(self) -> "Array":
        return self.namespace.negative(self)

    def __pos__(self) -> "Array":
        return self.namespace.positive(self)

    def __abs__(self) -> "Array":
        return self.namespace.abs(self)

    def __invert__(self) -> "Array":
        return self.namespace.invert(self)


class Array(Operators, Convertible, Located):
    """An array or a tracer; `isinstance(x, verax.Array)` holds for both.

    Methods are NumPy's, with the same names, arguments and results as the functions
    of `verax.numpy` that they stand for.
    """

    __dir__ = hiding(
        "atom buffer builder concrete converted end ended exported gone "
        "has_ended host kind namespace nowhere numbers operate placed scalar "
        "shown_as stored"
    )

    __module__ = "verax"
    shown_as: ClassVar[Any] = None
    __slots__ = ()

    def stored(self) -> np.ndarray:
        """The values as they are stored: NumPy's, and of keys the words behind them."""
        return np.asarray(self)

    def __getitem__(self, index: object) -> "Array":
        return self.namespace.getitem(self, index)

    def __setitem__(self, index: object, value: object) -> None:
        raise TypeError(
            "verax arrays are immutable: write x = x.at[index].set(value) instead of "
            "x[index] = value"
        )

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> "Iterator[Array]":
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return iter([self[i] for i in range(self.shape[0])])

    def __reversed__(self) -> "Iterator[Array]":
        return iter([*self][::-1])

    def __contains__(self, other: Any) -> bool:
        if self.ndim != 1:
            raise ValueError(
                "Array.__contains__: search array must be one-dimensional, not "
                f"{self.aval}"
            )
        array = self.operate("equal", self, other)
        if array is NotImplemented:
            raise TypeError(
                "Array.__contains__: unsupported operand type; the query value must be "
                f"a scalar, not of type {type(other).__name__}"
            )
        if np.ndim(other):
            raise ValueError(
                f"Array.__contains__: query value must be a scalar, not {shown(other)}"
            )
        return bool(array.any())

    def __round__(self, ndigits: SupportsIndex | None = None) -> "Array":
        if ndigits is None:
            return self.namespace.round(self).astype(int)
        return self.namespace.round(self, index(ndigits))

    @property
    def at(self) -> "At[Array]":
        """Updates out of place: `x.at[index].set(value)`, `.add`, `.mul`, ..."""
        return cast("At[Array]", self.namespace.at(self))

    @property
    def T(self) -> "Array":
        """The array with its dimensions in reverse order."""
        return self.namespace.transpose(self)

    @property
    def mT(self) -> "Array":
        """The array with its last two dimensions swapped."""
        return self.namespace.matrix_transpose(self)

    @property
    def real(self) -> "Array":
        """The real part."""
        return self.namespace.real(self)

    @property
    def imag(self) -> "Array":
        """The imaginary part."""
        return self.namespace.imag(self)

    @property
    def itemsize(self) -> int:
        """The size of one element in bytes."""
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.size * self.itemsize

    def reshape(
        self,
        *shape: object,
        order: str = "C",
        copy: bool | None = None,
        out_sharding: object = None,
    ) -> "Array":
        """The same elements in another shape; one dimension may be -1."""
        target = shape[0] if len(shape) == 1 else shape
        return self.namespace.reshape(
            self, target, order, copy=copy, out_sharding=out_sharding
        )

    def transpose(self, *axes: object) -> "Array":
        """The dimensions in the order `axes`, or reversed."""
        order = axes[0] if len(axes) == 1 else axes or None
        return self.namespace.transpose(self, order)

    def flatten(self, order: str = "C", *, out_sharding: object = None) -> "Array":
        """One dimension, in the given order."""
        return self.namespace.ravel(self, order, out_sharding=out_sharding)

    def view(self, dtype: object = None, type: None = None) -> "Array":
        """The same bits read as another dtype.

        Raises:
            TypeError: `dtype` is a size, as in PyTorch's method of this name.
            NotImplementedError: `type` is given, NumPy's class of the result.
        """
        if isinstance(dtype, int | tuple):
            raise TypeError(
                "x.view reads the bits as another dtype: for another shape, as "
                "PyTorch's view gives, write x.reshape"
            )
        if type is not None:
            raise NotImplementedError(
                "x.view: type is not available, since there is only one array class; "
                "leave it out"
            )
        return self.namespace.view(self, dtype)

    def to_device(self, device: object, *, stream: int | None = None) -> "Array":
        """The array on another device, or spread over several by a sharding.

        In a trace a sharding is a constraint, and a device is ignored.

        Raises:
            NotImplementedError: `stream` is passed.
        """
        if stream is not None:
            raise NotImplementedError("to_device: there are no streams to choose from")
        return self.namespace.asarray(self, device=device)

    def byteswap(self) -> "Array":
        """The bytes of each element in the opposite order."""
        return self.namespace.byteswap(self)

    def all(
        self,
        axis: Axes = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: object = None,
    ) -> "Array":
        return self.namespace.all(self, axis, out, keepdims, where=where)

    def any(
        self,
        axis: Axes = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: object = None,
    ) -> "Array":
        return self.namespace.any(self, axis, out, keepdims, where=where)

    def sum(
        self,
        axis: NamedAxes = None,
        dtype: object = None,
        out: None = None,
        keepdims: bool = False,
        initial: object = None,
        where: object = None,
        promote_integers: bool = True,
    ) -> "Array":
        return self.namespace.sum(
            self, axis, dtype, out, keepdims, initial, where, promote_integers
        )

    def prod(
        self,
        axis: Axes = None,
        dtype: object = None,
        out: None = None,
        keepdims: bool = False,
        initial: object = None,
        where: object = None,
        promote_integers: bool = True,
    ) -> "Array":
        return self.namespace.prod(
            self, axis, dtype, out, keepdims, initial, where, promote_integers
        )

    def max(
        self,
        axis: NamedAxes = None,
        out: None = None,
        keepdims: bool = False,
        initial: object = None,
        where: object = None,
    ) -> "Array":
        return self.namespace.max(self, axis, out, keepdims, initial, where)

    def min(
        self,
        axis: NamedAxes = None,
        out: None = None,
        keepdims: bool = False,
        initial: object = None,
        where: object = None,
    ) -> "Array":
        return self.namespace.min(self, axis, out, keepdims, initial, where)

    def mean(
        self,
        axis: NamedAxes = None,
        dtype: object = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: object = None,
    ) -> "Array":
        return self.namespace.mean(self, axis, dtype, out, keepdims, where=where)

    def var(
        self,
        axis: NamedAxes = None,
        dtype: object = None,
        out: None = None,
        ddof: int = 0,
        keepdims: bool = False,
        *,
        where: object = None,
        mean: object = None,
        correction: float | None = None,
    ) -> "Array":
        return self.namespace.var(
            self,
            axis,
            dtype,
            out,
            ddof,
            keepdims,
            where=where,
            mean=mean,
            correction=correction,
        )

    def std(
        self,
        axis: NamedAxes = None,
        dtype: object = None,
        out: None = None,
        ddof: int = 0,
        keepdims: bool = False,
        *,
        where: object = None,
        mean: object = None,
        correction: float | None = None,
    ) -> "Array":
        return self.namespace.std(
            self,
            axis,
            dtype,
            out,
            ddof,
            keepdims,
            where=where,
            mean=mean,
            correction=correction,
        )

    def ptp(
        self,
        axis: Axes = None,
        out: None = None,
        keepdims: bool = False,
    ) -> "Array":
        return self.namespace.ptp(self, axis, out, keepdims)

    def cumsum(
        self, axis: int | None = None, dtype: object = None, out: None = None
    ) -> "Array":
        return self.namespace.cumsum(self, axis, dtype, out)

    def cumprod(
        self, axis: int | None = None, dtype: object = None, out: None = None
    ) -> "Array":
        return self.namespace.cumprod(self, axis, dtype, out)

    def argmax(
        self,
        axis: int | None = None,
        out: None = None,
        keepdims: bool | None = None,
    ) -> "Array":
        return self.namespace.argmax(self, axis, out, keepdims)

    def argmin(
        self,
        axis: int | None = None,
        out: None = None,
        keepdims: bool | None = None,
    ) -> "Array":
        return self.namespace.argmin(self, axis, out, keepdims)

    def argsort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
    ) -> "Array":
        return self.namespace.argsort(
            self,
            axis,
            kind=kind,
            order=order,
            stable=stable,
            descending=descending,
        )

    def sort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
    ) -> "Array":
        return self.namespace.sort(
            self,
            axis,
            kind=kind,
            order=order,
            stable=stable,
            descending=descending,
        )

    def argpartition(
        self, kth: int, axis: int = -1, kind: str = "introselect", order: None = None
    ) -> "Array":
        if order is not None:
            raise TypeError(
                "x.argpartition: order is not available, since arrays have no fields"
            )
        return self.namespace.argpartition(self, kth, axis)

    def astype(
        self, dtype: object, copy: bool = False, device: object = None
    ) -> "Array":
        return self.namespace.astype(self, dtype, copy=copy, device=device)

    def __array_namespace__(self, *, api_version: str | None = None) -> Namespace:
        """`verax.numpy`, which follows the Python array API standard.

        Raises:
            ValueError: `api_version` is not one that it follows.
        """
        if api_version not in (None, *API_VERSIONS):
            raise ValueError(
                f"verax.numpy follows versions {', '.join(API_VERSIONS)} of the array "
                f"API standard, not {shown(api_version)}"
            )
        return self.namespace if self.shown_as is None else self.shown_as()

    def clip(self, min: object = None, max: object = None, out: None = None) -> "Array":
        if out is not None:  # verax.numpy.clip, as JAX's, has no such argument
            raise TypeError("x.clip: out cannot be written to; use the result")
        return self.namespace.clip(self, min, max)

    def round(self, decimals: int = 0, out: None = None) -> "Array":
        return self.namespace.round(self, decimals, out)

    def conj(self) -> "Array":
        return self.namespace.conj(self)

    def conjugate(self) -> "Array":
        return self.namespace.conjugate(self)

    def copy(self) -> "Array":
        return self.namespace.copy(self)

    def choose(self, choices: object, out: None = None, mode: str = "raise") -> "Array":
        return self.namespace.choose(self, choices, out, mode)

    def compress(
        self,
        condition: object,
        axis: int | None = None,
        *,
        out: None = None,
        size: int | None = None,
        fill_value: object = 0,
    ) -> "Array":
        return self.namespace.compress(
            condition, self, axis, size=size, fill_value=fill_value, out=out
        )

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> "Array":
        return self.namespace.diagonal(self, offset, axis1, axis2)

    def trace(
        self,
        offset: int = 0,
        axis1: int = 0,
        axis2: int = 1,
        dtype: object = None,
        out: None = None,
    ) -> "Array":
        return self.namespace.trace(self, offset, axis1, axis2, dtype, out)

    def dot(
        self,
        b: object,
        *,
        precision: object = None,
        preferred_element_type: object = None,
    ) -> "Array":
        return self.namespace.dot(
            self, b, precision=precision, preferred_element_type=preferred_element_type
        )

    def ravel(self, order: str = "C", *, out_sharding: object = None) -> "Array":
        return self.namespace.ravel(self, order, out_sharding=out_sharding)

    def repeat(
        self,
        repeats: object,
        axis: int | None = None,
        *,
        total_repeat_length: int | None = None,
        out_sharding: object = None,
    ) -> "Array":
        return self.namespace.repeat(
            self,
            repeats,
            axis,
            total_repeat_length=total_repeat_length,
            out_sharding=out_sharding,
        )

    def squeeze(self, axis: Axes = None) -> "Array":
        return self.namespace.squeeze(self, axis)

    def swapaxes(self, axis1: int, axis2: int) -> "Array":
        return self.namespace.swapaxes(self, axis1, axis2)

    def take(
        self,
        indices: object,
        axis: int | None = None,
        out: None = None,
        mode: str | None = None,
        unique_indices: bool = False,
        indices_are_sorted: bool = False,
        fill_value: object = None,
    ) -> "Array":
        return self.namespace.take(
            self,
            indices,
            axis,
            out,
            mode,
            unique_indices,
            indices_are_sorted,
            fill_value,
        )

    def searchsorted(
        self,
        v: object,
        side: str = "left",
        sorter: object = None,
        *,
        method: str = "scan",
    ) -> "Array":
        return self.namespace.searchsorted(self, v, side, sorter, method=method)

    def nonzero(
        self, *, size: int | None = None, fill_value: object = None
    ) -> "tuple[Array, ...]":
        out: object = self.namespace.nonzero(self, size=size, fill_value=fill_value)
        return cast("tuple[Array, ...]", out)


def says_what_is_meant(self: Array, name: str) -> object:
    """`__getattr__` of arrays: raises, with what is meant by another library's name."""
    try:
        return object.__getattribute__(self, name)  # says what is wrong
    except AttributeError as error:
        advice = hint(name)
        if not advice:
            raise
        raise AttributeError(f"{error}{advice}", name=name, obj=self) from None


# To type checkers, an array has the attributes that its class declares, and no others.
Array.__getattr__ = says_what_is_meant  # type: ignore[attr-defined]
