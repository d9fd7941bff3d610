"""Floor 6: functions of lines and of parts, applied to whole arrays.

All are `vmap`, once per dimension that the function does not see::

    apply_along_axis(f, 0, x)
    vectorize(f, signature="(n),(n)->()")(x, y)
"""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from verax.api.tracing.wrapping import wraps
from verax.api.vmap import vmap
from verax.ir.avals import Shape
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    broadcast_shapes_of,
    canonical_axis,
    ranks_differ,
)
from verax.numpy.shaping.shapes import expand_dims, squeeze
from verax.rules.values.array import Array
from verax.rules.values.state import STATE

NAMES = r"\((?:\w+(?:,\w+)*)?\)"
SIGNATURE = re.compile(rf"{NAMES}(?:,{NAMES})*->{NAMES}(?:,{NAMES})*")

type Names = tuple[tuple[str, ...], ...]


def apply_along_axis(
    func1d: Callable[..., object],
    axis: int,
    arr: ArrayLike,
    *args: object,
    **kwargs: object,
) -> Array:
    """`func1d` of each line along `axis`; its result replaces the line.

    The function is mapped by `vmap`, and so traced once for all lines.

    Args:
        func1d: a function of a one-dimensional array, which returns an array of any
            shape, or a pytree of some.
        axis: the dimension along which lines run.
        arr: an array with at least one dimension.
        *args: further arguments of `func1d`, the same for each line.
        **kwargs: its arguments by name, the same for each line.

    Returns:
        The results together: in the shape of `arr`, with the dimensions of a result in
        place of the dimension `axis`. For a pytree, one of such arrays.

    >>> import verax.numpy as vnp
    >>> x = vnp.arange(6).reshape(2, 3)
    >>> vnp.apply_along_axis(vnp.sum, 1, x)
    Array([ 3, 12], dtype=int32)
    >>> vnp.apply_along_axis(lambda line, k: line[:k], 1, x, 2)
    Array([[0, 1],
           [3, 4]], dtype=int32)
    """
    x = as_array("apply_along_axis", arr, 2)
    place = canonical_axis("apply_along_axis", axis, x.ndim)

    def of_line(line: Array) -> object:
        return func1d(line, *args, **kwargs)

    function: Callable[[Array], Any] = of_line
    for i in range(1, x.ndim - place):
        function = vmap(function, in_axes=i, out_axes=-1)
    for _ in range(place):
        function = vmap(function, in_axes=0, out_axes=0)
    out: Array = function(x)
    return out


def apply_over_axes(
    func: Callable[[Array, int], ArrayLike], a: ArrayLike, axes: Sequence[int]
) -> Array:
    """`func(a, axis)` for each of `axes`, whose dimensions stay.

    Each call gets the result of the one before.

    Args:
        func: a function of an array and a dimension, which keeps the number of
            dimensions or removes the one that it is called with.
        a: an array or scalar.
        axes: the dimensions, a sequence; one number alone is not taken.

    Returns:
        An array with as many dimensions as `a`; those that `func` removes have size 1.

    Raises:
        ValueError: a result has another number of dimensions.

    >>> import verax.numpy as vnp
    >>> vnp.apply_over_axes(vnp.sum, vnp.arange(24).reshape(2, 3, 4), [0, 2])
    Array([[[ 60],
            [ 92],
            [124]]], dtype=int32)
    """
    x = as_array("apply_over_axes", a, 1)
    for axis in axes:
        array = as_array("apply_over_axes", func(x, axis))
        if array.ndim == x.ndim - 1:
            array = expand_dims(array, axis)
        if array.ndim != x.ndim:
            raise ValueError(
                "apply_over_axes: the function must keep the number of dimensions, or "
                "reduce the axis that it is called with"
            )
        x = array
    return x


def parsed(signature: str) -> tuple[Names, Names]:
    """The names of the core dimensions of arguments and results.

    Raises:
        ValueError: the signature is malformed.

    >>> parsed("(m,n),(n)->(m)")
    ((('m', 'n'), ('n',)), (('m',),))
    """
    text = signature.replace(" ", "")
    if not SIGNATURE.fullmatch(text):
        raise ValueError(
            f"vectorize: {signature!r} is not a valid signature; write one such as "
            "'(n),(n)->()'"
        )
    sides = [
        tuple(
            tuple(name for name in group.split(",") if name)
            for group in re.findall(r"\(([^()]*)\)", side)
        )
        for side in text.split("->")
    ]
    return sides[0], sides[1]


def core_sizes(
    arrays: Sequence[Array], names: Names, sizes: dict[str, int]
) -> list[Shape]:
    """The leading shapes of arguments; checks their core dimensions, noting sizes.

    Raises:
        ValueError: an argument lacks dimensions, or sizes of one name differ.
    """
    leading = []
    for i, (x, core) in enumerate(zip(arrays, names, strict=True)):
        if len(x.shape) < len(core):
            raise ValueError(
                f"vectorize: input with shape {x.shape} does not have enough "
                f"dimensions for {core}, which argument {i} must have"
            )
        split = len(x.shape) - len(core)
        for name, size in zip(core, x.shape[split:], strict=True):
            if sizes.setdefault(name, size) != size:
                raise ValueError(
                    f"inconsistent size for core dimension {name!r}: it is {size} in "
                    f"argument {i}, but {sizes[name]} elsewhere"
                )
        leading.append(x.shape[:split])
    return leading


def vectorize(
    pyfunc: Callable[..., object],
    *,
    excluded: Collection[int | str] = frozenset(),
    signature: str | None = None,
) -> Callable[..., Any]:
    """A function of arrays from one of scalars, or of the parts that a signature names.

    Leading dimensions broadcast. The function is mapped by `vmap`, so it is traced
    rather than called per element, and `if` cannot look at its arguments.

    Args:
        pyfunc: the function, which returns an array, or several in a tuple. Arguments
            that are given by name are passed on as they are.
        excluded: positions of arguments that are passed on whole, by default none;
            names are allowed, though arguments by name are passed on anyway.
        signature: the dimensions that `pyfunc` sees of each argument and result, such
            as "(m,n),(n)->(m)", where equal names have equal sizes; by default all are
            scalars. An argument that is a scalar here may be None, which is passed on.

    Returns:
        A function with the documentation of `pyfunc`. Its results have the broadcast
        leading dimensions, and then those of a result of `pyfunc`.

    Raises:
        TypeError: `excluded` has what is neither a position nor a name.
        ValueError: it has a negative position, or the signature is malformed.

    >>> import verax.numpy as vnp
    >>> f = vnp.vectorize(vnp.dot, signature="(n),(n)->()")
    >>> f(vnp.ones((2, 3)), vnp.arange(3.0))
    Array([3., 3.], dtype=float32)
    """
    check_excluded(excluded)
    names = None if signature is None else parsed(signature)

    @wraps(pyfunc)
    def vectorized(*args: Any, **kwargs: object) -> Any:
        positions = [i for i in range(len(args)) if i not in excluded]
        ins = ((),) * len(positions) if names is None else names[0]
        if len(ins) != len(positions):
            raise TypeError(
                "wrong number of positional arguments: expected "
                f"{len(ins)}, as in {signature!r}, got {len(positions)}"
            )
        missing = {i for i in positions if args[i] is None}
        if any(core and i in missing for i, core in zip(positions, ins, strict=True)):
            raise ValueError(
                f"Cannot pass None at locations {missing} with signature={signature!r}"
            )
        mapped = [i for i in positions if i not in missing]
        ins = tuple([c for i, c in zip(positions, ins, strict=True) if i in mapped])
        arrays = [as_array("vectorize", args[i], i) for i in mapped]
        sizes: dict[str, int] = {}
        leading = core_sizes(arrays, ins, sizes)

        def call(*parts: object) -> Any:
            given = list(args)
            for i, part in zip(mapped, parts, strict=True):
                given[i] = part
            return checked(pyfunc(*given, **kwargs), names, sizes)

        return over_leading(call, arrays, leading)

    return vectorized


def check_excluded(excluded: Collection[int | str]) -> None:
    """Raise unless all are positions and names of arguments.

    Raises:
        TypeError: one is neither an integer nor a string.
        ValueError: a position is negative.
    """
    for one in excluded:
        if not isinstance(one, int | str):
            raise TypeError(
                "verax.numpy.vectorize can only exclude positions and names of "
                f"arguments, not {one!r} of type {type(one).__name__}"
            )
        if isinstance(one, int) and one < 0:
            raise ValueError(
                f"vectorize: excluded={set(excluded)} contains negative numbers"
            )


def checked(
    results: Any, names: tuple[Names, Names] | None, sizes: dict[str, int]
) -> Any:
    """The results of a vectorized function, which are as its signature says.

    Raises:
        TypeError: there are more or fewer.
        ValueError: their shapes are others.
    """
    if names is None:
        return results
    several = isinstance(results, tuple | list)
    out = [result_array(x) for x in (results if several else (results,))]
    if not several and len(names[1]) != 1:
        raise TypeError(
            f"output must be a tuple of length {len(names[1])}, not "
            f"{type(results).__name__}"
        )
    if len(out) != len(names[1]):
        raise TypeError(
            f"wrong number of output arguments: expected {len(names[1])}, got "
            f"{len(out)}"
        )
    known = dict(sizes)
    for x, core in zip(out, names[1], strict=True):
        if core_sizes([x], (core,), known) != [()]:
            raise ValueError(
                f"output shape {x.shape} does not match core dimensions {core}"
            )
    return tuple(out) if several else out[0]


def result_array(x: ArrayLike) -> Any:
    """A result as an array; a pytree that has a shape, as some are, as it is."""
    if isinstance(x, Array) or not hasattr(x, "shape") or hasattr(x, "__array__"):
        return as_array("vectorize", x)
    return x


def over_leading(
    call: Callable[..., object], arrays: Sequence[Array], leading: Sequence[Shape]
) -> object:
    """`call` mapped over the leading dimensions, the last one innermost.

    What has size 1, or is missing, is not mapped but shared.
    """
    if STATE.numpy_rank_promotion != "allow":
        pairs = zip(arrays, leading, strict=True)
        if len({len(own) for x, own in pairs if x.ndim}) > 1:
            ranks_differ("vectorize", leading)
    shape = broadcast_shapes_of("vectorize", leading) if leading else ()
    rank = len(shape)
    axes: list[list[int | None]] = [[None] * len(arrays) for _ in range(rank)]
    operands = []
    for i, (x, own) in enumerate(zip(arrays, leading, strict=True)):
        missing = rank - len(own)
        gone = [d for d, n in enumerate(own) if n == 1 and shape[d + missing] != 1]
        operands.append(squeeze(x, gone))
        for d in range(len(own)):
            if d not in gone:
                axes[d + missing][i] = 0
    function = call
    for in_axes in reversed(axes):
        if any(axis is not None for axis in in_axes):
            function = vmap(function, in_axes=tuple(in_axes))
    return function(*operands)
