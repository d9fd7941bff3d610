"""Floor 6: ufuncs: elementwise functions with the methods that NumPy's have.

One idea: a ufunc is its function, as a `functools.partial` without arguments, so that a
call costs what it did; a method uses the library's own reduction where there is one,
and otherwise goes over the elements with a scan::

    add.reduce(x), maximum.accumulate(x), multiply.outer(x, y)
    frompyfunc(lambda x, y: x + 2 * y, 2, 1).reduceat(x, [0, 2])
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen

from verax.ir.dtypes import DType, DTypeLike
from verax.ir.records import ReprMixin
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    canonical_axis,
    chosen_dtype,
    shown,
    stretched,
)
from verax.numpy.elementwise import arithmetic, comparison, transcendental
from verax.numpy.reducing import reductions, running
from verax.numpy.shaping.shapes import expand_dims, moveaxis, ravel, reshape
from verax.ops.elementwise.convert import convert
from verax.rules.values.array import Array


@frozen(repr=False)
class Ways(ReprMixin):
    """The library's own functions for methods; a name for updates by `x.at`."""

    reduce: Callable[..., Array] | None = None
    accumulate: Callable[..., Array] | None = None
    update: str | None = None


@frozen(repr=False)
class Traits(ReprMixin):
    """A ufunc's knowledge of its function."""

    nin: int
    nout: int
    identity: object
    ways: Ways


class ufunc(partial[Any]):
    """An elementwise function of `nin` arrays, with `nout` results.

    `identity` is the value that changes nothing, or None. Call it as a function.

    >>> import verax.numpy as vnp
    >>> vnp.add.reduce(vnp.arange(4)).item(), vnp.add.nin, vnp.add.identity
    (6, 2, 0)
    """

    __module__ = "verax.numpy"

    __name__: str
    traits: Traits

    @property
    def nin(self) -> int:
        """The number of arguments."""
        return self.traits.nin

    @property
    def nout(self) -> int:
        """The number of results."""
        return self.traits.nout

    @property
    def nargs(self) -> int:
        """The larger of the numbers of arguments and results."""
        return max(self.nin, self.nout)

    @property
    def identity(self) -> Any:
        """The value that changes nothing, or None."""
        return self.traits.identity

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ufunc) and self.made_of() == other.made_of()

    def __hash__(self) -> int:
        return hash(self.made_of())

    def made_of(self) -> tuple[object, ...]:
        """The parts that compare ufuncs: the user's function, numbers and identity."""
        function = getattr(self.func, "__wrapped__", self.func)
        return function, self.nin, self.nout, self.identity

    def __repr__(self) -> str:
        return f"<verax.numpy.ufunc {self.__name__!r}>"

    def binary(self, method: str, out: None) -> None:
        """Raise unless the function has two arguments and one result."""
        if (self.nin, self.nout) != (2, 1):
            raise ValueError(
                f"{self.__name__}.{method} needs a function of two arguments with one "
                f"result, not of {self.nin} with {self.nout}"
            )
        if out is not None:
            raise NotImplementedError(
                f"{self.__name__}.{method}: arrays are immutable, so out cannot be "
                "written to; use the result"
            )

    def reduce(
        self,
        a: ArrayLike,
        axis: int | None = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """The elements along `axis`, or all for None, combined from the first on.

        Raises:
            ValueError: the function is not binary, or there are no elements and neither
                `initial` nor an identity, or `where` comes without them.

        >>> import verax.numpy as vnp
        >>> vnp.bitwise_or.reduce(vnp.array([1, 4])).item()
        5
        """
        self.binary("reduce", out)
        x = as_array(f"{self.__name__}.reduce", a)
        given: dict[str, object] = {"axis": axis, "keepdims": keepdims, "where": where}
        own = self.traits.ways.reduce
        if own is not None and (
            dtype is None or own in (reductions.sum, reductions.prod)
        ):
            if own not in (reductions.all, reductions.any):
                given["initial"] = initial
            if dtype is not None:
                given["dtype"] = dtype
            if initial is None or "initial" in given:
                return own(x, **given)
        mask = None if where is None else as_array("where", where)
        return self.folded(x, axis, dtype, keepdims, initial, mask)

    def folded(
        self,
        x: Array,
        axis: int | None,
        dtype: DTypeLike | None,
        keepdims: bool,
        initial: ArrayLike | None,
        mask: Array | None,
    ) -> Array:
        """`reduce` by a scan over rows."""
        out_dtype = self.result_dtype(x, dtype)
        rank = x.ndim
        rows = convert(x, out_dtype)
        flags = None if mask is None else stretched(mask, x.shape)
        if axis is None:
            place, rows = 0, ravel(rows)
            flags = None if flags is None else ravel(flags)
        else:
            place = canonical_axis(f"{self.__name__}.reduce", axis, rank)
            rows = moveaxis(rows, place, 0)
            flags = None if flags is None else moveaxis(flags, place, 0)
        start = self.identity if initial is None else initial
        if start is None and (flags is not None or not rows.shape[0]):
            raise ValueError(
                f"{self.__name__}.reduce has no identity to start from; pass initial"
            )
        if start is None:
            carry, rows = rows[0], rows[1:]
        else:
            carry = stretched(convert(start, out_dtype), rows.shape[1:])

        from verax.numpy.applying.ufunc_loops import folded_rows

        result = folded_rows(self, carry, rows, flags)
        if not keepdims:
            return result
        if axis is None:
            return reshape(result, (1,) * rank)
        return expand_dims(result, place)

    def result_dtype(self, x: Array, dtype: DTypeLike | None) -> DType:
        """The dtype in which elements of x are combined."""
        expected = chosen_dtype(self.__name__, dtype)
        if expected is not None:
            return expected
        from verax.numpy.applying.ufunc_loops import dtype_of_two

        return dtype_of_two(self, x.dtype)

    def accumulate(
        self,
        a: ArrayLike,
        axis: int = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
    ) -> Array:
        """The elements along `axis`, each combined with all before it.

        Raises:
            ValueError: the function is not binary, or there is no such dimension.

        >>> import verax.numpy as vnp
        >>> vnp.maximum.accumulate(vnp.array([1, 3, 2])).tolist()
        [1, 3, 3]
        """
        self.binary("accumulate", out)
        x = as_array(f"{self.__name__}.accumulate", a)
        place = canonical_axis(f"{self.__name__}.accumulate", axis, x.ndim)
        if self.traits.ways.accumulate is not None:
            return self.traits.ways.accumulate(x, axis=place, dtype=dtype)
        result = self.result_dtype(x, dtype)
        rows = moveaxis(convert(x, result), place, 0)
        if not rows.shape[0]:
            return moveaxis(rows, 0, place)

        from verax.numpy.applying.ufunc_loops import accumulated_rows

        return moveaxis(accumulated_rows(self, rows), 0, place)

    def at(
        self,
        a: ArrayLike,
        indices: object,
        b: ArrayLike | None = None,
        /,
        *,
        inplace: bool = True,
    ) -> Array:
        """`a`, with the function of its elements at `indices`, and of `b`, there.

        An index that comes twice counts twice. `inplace` has to be False: arrays do not
        change.

        Raises:
            NotImplementedError: `inplace` is True.
            ValueError: `b` is missing, or one too many.

        >>> import verax.numpy as vnp
        >>> vnp.add.at(vnp.zeros(3), vnp.array([0, 0]), 1.0, inplace=False).tolist()
        [2.0, 0.0, 0.0]
        """
        if inplace:
            raise NotImplementedError(
                f"{self.__name__}.at: arrays are immutable; pass inplace=False and use "
                "the result"
            )
        if self.nout != 1 or self.nin != (1 if b is None else 2):
            raise ValueError(
                f"{self.__name__}.at takes {self.nin - 1} arrays of values, since the "
                f"function has {self.nin} arguments"
            )
        x = as_array(f"{self.__name__}.at", a)
        if self.traits.ways.update is not None:
            result: Array = getattr(x.at[indices], self.traits.ways.update)(b)
            return result
        from verax.numpy.applying.ufunc_loops import updated_one_by_one

        return updated_one_by_one(self, x, indices, b)

    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array:
        """The function of each element of A with each element of B.

        >>> import verax.numpy as vnp
        >>> vnp.multiply.outer(vnp.arange(1, 3), vnp.arange(1, 4)).tolist()
        [[1, 2, 3], [2, 4, 6]]
        """
        self.binary("outer", None)
        x, y = (as_array(f"{self.__name__}.outer", part) for part in (A, B))
        first = reshape(x, (*x.shape, *(1,) * y.ndim))
        out: Array = self(first, reshape(y, (*(1,) * x.ndim, *y.shape)))
        return out

    def reduceat(
        self,
        a: ArrayLike,
        indices: ArrayLike | list[int],
        axis: int = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
    ) -> Array:
        """The elements along `axis` from each index up to the next one, combined.

        Where the next index is not larger, the element at the index.

        Raises:
            ValueError: the function is not binary, or `indices` has not one dimension.

        >>> import verax.numpy as vnp
        >>> vnp.add.reduceat(vnp.arange(8), vnp.array([0, 2, 5])).tolist()
        [1, 9, 18]
        """
        self.binary("reduceat", out)
        x = as_array(f"{self.__name__}.reduceat", a)
        place = canonical_axis(f"{self.__name__}.reduceat", axis, x.ndim)
        first = as_array(
            "indices", np.asarray(indices) if isinstance(indices, list) else indices
        )
        if first.ndim != 1:
            raise ValueError(
                "reduceat: indices must be one-dimensional, but they have "
                f"{first.ndim} dimensions"
            )
        value = self.result_dtype(x, dtype)
        rows = moveaxis(convert(x, value), place, 0)
        from verax.numpy.applying.ufunc_loops import folded_slices

        return moveaxis(folded_slices(self, rows, first), 0, place)


def made(
    function: Callable[..., object], nin: int, nout: int, identity: object, ways: Ways
) -> ufunc:
    """A ufunc of an elementwise function, with its name and its documentation."""
    out = ufunc(function)
    out.traits = Traits(nin, nout, identity, ways)
    name = getattr(function, "__name__", "function")
    out.__name__ = name
    out.__doc__ = function.__doc__
    return out


def binary(
    function: Callable[..., Array],
    identity: object = None,
    reduce: Callable[..., Array] | None = None,
    accumulate: Callable[..., Array] | None = None,
    update: str | None = None,
) -> ufunc:
    """A ufunc of two arguments."""
    return made(function, 2, 1, identity, Ways(reduce, accumulate, update))


def frompyfunc(
    func: Callable[..., object], /, nin: int, nout: int, *, identity: object = None
) -> ufunc:
    """A ufunc of a function of scalars, which is mapped over arrays.

    Unlike in NumPy, the function is traced rather than called per element, and results
    are arrays of numbers, not of objects.

    Args:
        func: a function of `nin` scalars that verax can trace.
        nin: how many arguments `func` takes; `reduce` and most other methods need two.
        nout: how many results it returns.
        identity: the value that changes nothing, from which `reduce` starts; None if
            there is none.

    Returns:
        A `ufunc`, to be called with arrays that broadcast together, with the methods
        `reduce`, `accumulate`, `reduceat`, `outer` and `at`.

    Raises:
        TypeError: `func` is not callable, or a number is not an integer or is negative.

    >>> import verax.numpy as vnp
    >>> twice = vnp.frompyfunc(lambda x, y: x + 2 * y, 2, 1, identity=0)
    >>> twice.outer(vnp.arange(2), vnp.arange(2)).tolist()
    [[0, 2], [1, 3]]
    """
    if not callable(func):
        raise TypeError(f"frompyfunc takes a function, not {shown(func)}")
    for name, count in (("nin", nin), ("nout", nout)):
        if not isinstance(count, int) or count < 0:
            raise TypeError(
                f"frompyfunc: {name} must be a nonnegative integer, not {shown(count)}"
            )
    from verax.numpy.applying.vectorize_apply import vectorize

    return made(vectorize(func), nin, nout, identity, Ways())


add = binary(arithmetic.add, 0, reductions.sum, running.cumsum, "add")
subtract = binary(arithmetic.subtract, update="subtract")
multiply = binary(arithmetic.multiply, 1, reductions.prod, running.cumprod, "multiply")
negative = made(arithmetic.negative, 1, 1, None, Ways())
maximum = binary(arithmetic.maximum, None, reductions.max, None, "max")
minimum = binary(arithmetic.minimum, None, reductions.min, None, "min")
logaddexp = binary(transcendental.logaddexp, -np.inf)
logaddexp2 = binary(transcendental.logaddexp2, -np.inf)
bitwise_and = binary(comparison.bitwise_and, -1)
bitwise_or = binary(comparison.bitwise_or, 0)
bitwise_xor = binary(comparison.bitwise_xor, 0)
logical_and = binary(comparison.logical_and, True, reductions.all)
logical_or = binary(comparison.logical_or, False, reductions.any)
logical_xor = binary(comparison.logical_xor, False)
