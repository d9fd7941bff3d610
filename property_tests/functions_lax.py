"""The functions of `verax.lax` beside NumPy's, or a few lines of NumPy."""

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final

import numpy as np
import scipy.special as sp

from property_tests.comparing import (
    LINE,
    Call,
    Known,
    NDArray,
    Points,
    Pointwise,
    Whole,
    called,
)
from verax import lax

BALL: Final = Points(-1, 1)
ABOVE: Final = Points(1, 30)
FLOATS: Final = (np.float32, np.float16)
INTEGERS: Final = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32)
NUMBERS: Final = (*FLOATS, *INTEGERS, np.complex64)


def numbers(random: np.random.Generator, shape: Any, dtype: Any) -> NDArray:
    """Small numbers of a dtype: integers of both signs where there are some."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.asarray(random.random(shape) < 0.5)
    if kind.kind in "iu":
        return np.asarray(
            random.integers(0 if kind.kind == "u" else -5, 7, shape).astype(kind)
        )
    if kind.kind == "c":
        parts = random.uniform(-2, 2, (2, *shape))
        return np.asarray(parts[0] + 1j * parts[1]).astype(kind)
    return np.asarray(random.uniform(-2, 2, shape).astype(kind))


# ------------------------------------------------------------------------- elementwise


def line(
    name: str, reference: Callable[..., Any], *points: Points, **options: Any
) -> Pointwise:
    return Pointwise(f"lax.{name}", getattr(lax, name), reference, points, **options)


def away(x: Any) -> Any:
    """Rounded to whole numbers, halves away from zero."""
    return np.sign(x) * np.floor(np.abs(x) + 0.5) + 0.0 * x


def remainder(x: Any, y: Any) -> Any:
    return np.fmod(x, y)


def lgamma(x: Any) -> Any:
    return np.where(x == -np.inf, np.inf, sp.gammaln(x))


def digamma(x: Any) -> Any:
    return np.where(x == 0, -np.inf, sp.digamma(x))


FAR_ANGLES: Final = Known("angles beyond 1e6", lambda x: np.abs(x) > 1e6)
POINTWISE: Final = (
    line("abs", np.abs, LINE),
    line("neg", np.negative, LINE),
    line("sign", np.sign, LINE),
    line("floor", np.floor, LINE),
    line("ceil", np.ceil, LINE),
    line("round", away, LINE),
    line("square", np.square, LINE),
    line("reciprocal", lambda x: 1 / x, LINE),
    line("sqrt", np.sqrt, LINE),
    line("rsqrt", lambda x: 1 / np.sqrt(x), LINE),
    line("cbrt", np.cbrt, LINE),
    line("exp", np.exp, LINE),
    line("exp2", np.exp2, LINE),
    line("expm1", np.expm1, LINE),
    line("log", np.log, LINE),
    line("log2", np.log2, LINE),
    line("log1p", np.log1p, LINE),
    line("logistic", sp.expit, LINE),
    line("one_minus_square", lambda x: (1 - x) * (1 + x), LINE),
    line("sin", np.sin, LINE, known=(FAR_ANGLES,)),
    line("cos", np.cos, LINE, known=(FAR_ANGLES,)),
    line("tan", np.tan, LINE, known=(FAR_ANGLES,)),
    line("asin", np.arcsin, BALL),
    line("acos", np.arccos, BALL),
    line("atan", np.arctan, LINE),
    line("sinh", np.sinh, LINE),
    line("cosh", np.cosh, LINE),
    line("tanh", np.tanh, LINE),
    line("asinh", np.arcsinh, LINE),
    line("acosh", np.arccosh, ABOVE),
    line("atanh", np.arctanh, BALL),
    line("erf", sp.erf, LINE),
    line("erfc", sp.erfc, LINE),
    line("erf_inv", sp.erfinv, BALL),
    line("lgamma", lgamma, LINE, ulps=4, scale=lambda x: x < 0),
    line("digamma", digamma, LINE),
    line("bessel_i0e", sp.i0e, LINE),
    line("bessel_i1e", sp.i1e, LINE),
    line("add", np.add, LINE, LINE),
    line("sub", np.subtract, LINE, LINE),
    line("mul", np.multiply, LINE, LINE),
    line("div", np.divide, LINE, LINE),
    line("rem", remainder, LINE, LINE),
    line("pow", np.power, LINE, LINE, ulps=32),
    line("max", np.maximum, LINE, LINE),
    line("min", np.minimum, LINE, LINE),
    line("atan2", np.arctan2, LINE, LINE),
    line("clamp", lambda a, x, b: np.minimum(np.maximum(x, a), b), LINE, LINE, LINE),
)


# ------------------------------------------------------------------- whole arrays


def whole(
    name: str, reference: Callable[..., Any], calls: Any, **options: Any
) -> Whole:
    return Whole(f"lax.{name}", getattr(lax, name), reference, calls, **options)


def each(*shapes: Any, dtypes: Any = NUMBERS, extra: tuple[Any, ...] = ()) -> Any:
    """Calls on arrays of these shapes, for each dtype."""

    def calls(random: np.random.Generator) -> Iterator[Call]:
        for dtype in dtypes:
            yield Call((*(numbers(random, s, dtype) for s in shapes), *extra))

    return calls


def same(count: int, dtypes: Any = NUMBERS) -> Any:
    """Calls of so many operands of one shape."""

    def calls(random: np.random.Generator) -> Iterator[Call]:
        for dtype in dtypes:
            for shape in ((2, 3), (), (0,), (1,)):
                yield Call(tuple(numbers(random, shape, dtype) for _ in range(count)))

    return calls


def of_axes(name: str, reference: Any, dtypes: Any = NUMBERS, **options: Any) -> Whole:
    """A reduction, over each set of axes."""

    def calls(random: np.random.Generator) -> Iterator[Call]:
        for dtype in dtypes:
            x = numbers(random, (2, 3, 4), dtype)
            for axes in ((), (0,), (1,), (2,), (0, 2), (0, 1, 2)):
                yield called(x, axes)
        yield called(numbers(random, (2, 0), dtypes[0]), (0,))

    return whole(name, lambda x, axes: reference(x, axis=axes), calls, **options)


def along(name: str, reference: Any, dtypes: Any = NUMBERS, **options: Any) -> Whole:
    """A cumulative function, along each axis and from each end."""

    def calls(random: np.random.Generator) -> Iterator[Call]:
        for dtype in dtypes:
            x = numbers(random, (2, 3, 4), dtype)
            for axis in range(3):
                yield called(x, axis)
                yield Call((x, axis), {"reverse": True})
        yield called(numbers(random, (0, 2), dtypes[0]), 0)

    def cumulative(x: NDArray, axis: int, reverse: bool = False) -> NDArray:
        turned = np.flip(x, axis) if reverse else x
        actual: NDArray = reference(turned, axis)
        return np.flip(actual, axis) if reverse else actual

    return whole(name, cumulative, calls, **options)


def keeps(reference: Any) -> Any:
    """The reference in the dtype of its first argument, where NumPy is wider."""

    def narrow(*args: Any, **kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            return np.asarray(reference(*args, **kwargs)).astype(args[0].dtype)

    return narrow


def division(x: NDArray, y: NDArray) -> NDArray:
    """Division, of integers towards zero."""
    if x.dtype.kind not in "iu":
        return np.asarray(x / y)
    a, b = x.astype(np.int64), y.astype(np.int64)
    size = np.abs(a) // np.maximum(np.abs(b), 1)
    return np.asarray(np.sign(a) * np.sign(b) * size).astype(x.dtype)


def quotients(random: np.random.Generator) -> Iterator[Call]:
    for dtype in NUMBERS:
        y = numbers(random, (3, 4), dtype)
        yield called(
            numbers(random, (3, 4), dtype), np.where(y == 0, np.ones((), dtype), y)
        )


def shifts(random: np.random.Generator) -> Iterator[Call]:
    for dtype in INTEGERS:
        x = random.integers(
            np.iinfo(dtype).min, int(np.iinfo(dtype).max) + 1, (9,)
        ).astype(dtype)
        yield called(x, np.arange(9).astype(dtype) % np.iinfo(dtype).bits)


def arithmetic(x: NDArray, n: NDArray) -> NDArray:
    signed = np.dtype(f"i{x.dtype.itemsize}")
    return np.asarray(x.view(signed) >> n.view(signed)).view(x.dtype)


def logical(x: NDArray, n: NDArray) -> NDArray:
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    return np.asarray(x.view(unsigned) >> n.view(unsigned)).view(x.dtype)


def high_half(x: NDArray, y: NDArray) -> NDArray:
    bits = x.dtype.itemsize * 8
    return np.array(
        [(int(a) * int(b)) >> bits for a, b in zip(x, y, strict=True)]
    ).astype(x.dtype)


def wide_pairs(random: np.random.Generator) -> Iterator[Call]:
    for dtype in (np.int32, np.uint32):
        top = np.iinfo(dtype)
        yield called(
            *(
                random.integers(top.min, int(top.max) + 1, 9).astype(dtype)
                for _ in range(2)
            )
        )


def leading_zeros(x: NDArray) -> NDArray:
    bits = x.dtype.itemsize * 8
    unsigned = x.view(f"u{x.dtype.itemsize}")
    return (
        np.array([bits - int(v).bit_length() for v in unsigned.ravel()])
        .reshape(x.shape)
        .astype(x.dtype)
    )


def ones(x: NDArray) -> NDArray:
    return np.bitwise_count(x.view(f"u{x.dtype.itemsize}")).astype(x.dtype)


def powers(random: np.random.Generator) -> Iterator[Call]:
    for dtype in NUMBERS:
        for power in (0, 1, 2, 3, 7):
            yield called(numbers(random, (2, 3), dtype), power)
    yield called(numbers(random, (3,), np.float32), -2)


def logsum(x: NDArray, axis: int) -> NDArray:
    actual: NDArray = np.logaddexp.accumulate(x, axis)
    return actual


def recurrence(a: NDArray, x: NDArray, axis: int = 0, reverse: bool = False) -> NDArray:
    """y[i] = a[i] y[i-1] + x[i], one step after the other."""
    factors, y = np.moveaxis(a, axis, 0), np.moveaxis(x.copy(), axis, 0)
    places = range(len(y))[::-1] if reverse else range(len(y))
    for before, i in pairwise(places):
        y[i] += factors[i] * y[before]
    return np.moveaxis(y, 0, axis)


def recurrences(random: np.random.Generator) -> Iterator[Call]:
    """Along each axis and from each end."""
    for dtype in (*FLOATS, np.complex64):
        a, x = (numbers(random, (2, 3, 4), dtype) for _ in range(2))
        yield called(a, x)
        for axis in (0, 1, -1):
            yield called(a, x, axis)
            yield Call((a, x), {"axis": axis, "reverse": True})
    yield called(*(numbers(random, (0, 2), np.float32) for _ in range(2)))


SIGNED: Final = (*FLOATS, np.int8, np.int16, np.int32, np.complex64)
LOGICAL: Final = (np.bool_, *INTEGERS)
ARITHMETIC: Final = (
    whole("add", keeps(np.add), same(2)),
    whole("sub", keeps(np.subtract), same(2)),
    whole("mul", keeps(np.multiply), same(2)),
    whole("div", division, quotients),
    whole(
        "rem",
        keeps(np.fmod),
        lambda r: (c for c in quotients(r) if c.args[0].dtype.kind != "c"),
    ),
    whole("integer_pow", lambda x, n: x**n if n >= 0 else 1 / x**-n, powers),
    whole("max", np.maximum, same(2, (*FLOATS, *LOGICAL))),
    whole("min", np.minimum, same(2, (*FLOATS, *LOGICAL))),
    whole("neg", np.negative, same(1)),
    whole("abs", np.abs, same(1, SIGNED)),
    whole("sign", np.sign, same(1)),
    whole("bitwise_and", np.bitwise_and, same(2, LOGICAL)),
    whole("bitwise_or", np.bitwise_or, same(2, LOGICAL)),
    whole("bitwise_xor", np.bitwise_xor, same(2, LOGICAL)),
    whole("bitwise_not", np.invert, same(1, LOGICAL)),
    whole("population_count", ones, same(1, INTEGERS)),
    whole("clz", leading_zeros, same(1, INTEGERS)),
    whole("mulhi", high_half, wide_pairs),
    whole("shift_left", np.left_shift, shifts),
    whole("shift_right_arithmetic", arithmetic, shifts),
    whole("shift_right_logical", logical, shifts),
    whole(
        "nextafter",
        lambda x, y: np.nextafter(np.float32(x), np.float32(y)),
        each((9,), (9,), dtypes=(np.float32,)),
    ),
    whole("eq", np.equal, same(2, (*NUMBERS, np.bool_))),
    whole("ne", np.not_equal, same(2, (*NUMBERS, np.bool_))),
    *(
        whole(n, f, same(2, (*FLOATS, *LOGICAL)))
        for n, f in (
            ("lt", np.less),
            ("le", np.less_equal),
            ("gt", np.greater),
            ("ge", np.greater_equal),
        )
    ),
    whole("is_finite", np.isfinite, same(1, FLOATS)),
    whole("real", np.real, same(1, (np.complex64,))),
    whole("imag", np.imag, same(1, (np.complex64,))),
    whole("conj", np.conj, same(1, (np.complex64,))),
    whole("complex", lambda x, y: x + 1j * y, same(2, (np.float32,))),
    *(
        whole(name, function, same(1, (np.complex64,)), ulps=32)
        for name, function in (
            ("exp", np.exp),
            ("log", np.log),
            ("log1p", np.log1p),
            ("expm1", np.expm1),
            ("sqrt", np.sqrt),
            ("rsqrt", lambda x: 1 / np.sqrt(x)),
            ("sin", np.sin),
            ("cos", np.cos),
            ("tan", np.tan),
            ("sinh", np.sinh),
            ("cosh", np.cosh),
            ("tanh", np.tanh),
            ("asin", np.arcsin),
            ("acos", np.arccos),
            ("atan", np.arctan),
            ("asinh", np.arcsinh),
            ("acosh", np.arccosh),
            ("atanh", np.arctanh),
            ("square", np.square),
            ("logistic", lambda x: 1 / (1 + np.exp(-x))),
            ("exp2", lambda x: np.exp(x * math.log(2))),
            ("log2", lambda x: np.log(x) / math.log(2)),
            ("reciprocal", lambda x: 1 / x),
        )
    ),
    whole("pow", np.power, same(2, (np.complex64,)), ulps=64),
)


REDUCTIONS: Final = (
    of_axes("reduce_sum", keeps(np.sum)),
    of_axes("reduce_prod", keeps(np.prod)),
    of_axes("reduce_max", np.max, (*FLOATS, *INTEGERS)),
    of_axes("reduce_min", np.min, (*FLOATS, *INTEGERS)),
    of_axes("reduce_and", np.bitwise_and.reduce, LOGICAL),
    of_axes("reduce_or", np.bitwise_or.reduce, LOGICAL),
    of_axes("reduce_xor", np.bitwise_xor.reduce, LOGICAL),
    along("cumsum", keeps(np.cumsum)),
    along("cumprod", keeps(np.cumprod)),
    along("cummax", np.maximum.accumulate, (*FLOATS, *INTEGERS)),
    along("cummin", np.minimum.accumulate, (*FLOATS, *INTEGERS)),
    along("cumlogsumexp", logsum, FLOATS),
    whole("linear_recurrence", recurrence, recurrences),
)


def one(
    *args: Any, dtypes: Any = (np.float32, np.int32), shape: Any = (2, 3, 4)
) -> Any:
    """Calls on one array, with each of these further arguments."""

    def calls(random: np.random.Generator) -> Iterator[Call]:
        for dtype in dtypes:
            x = numbers(random, shape, dtype)
            for rest in args:
                yield Call((x, *rest))

    return calls


def padded(x: NDArray, value: Any, config: Any) -> NDArray:
    """With low, high and inner padding, which may be negative at the ends."""
    for axis, (low, high, inner) in enumerate(config):
        n = x.shape[axis]
        length = n + max(n - 1, 0) * inner
        place = np.arange(-low, length + high)
        inside = (place >= 0) & (place < length) & (place % (inner + 1) == 0)
        actual = np.take(x, np.where(inside, place // (inner + 1), 0), axis)
        shape = [1] * x.ndim
        shape[axis] = -1
        x = np.where(inside.reshape(shape), actual, np.asarray(value, x.dtype))
    return x


def pads(random: np.random.Generator) -> Iterator[Call]:
    for dtype in (np.float32, np.int32):
        x = numbers(random, (3, 4), dtype)
        for config in (
            [(1, 2, 0), (0, 0, 0)],
            [(0, 0, 2), (1, 0, 1)],
            [(-1, 0, 0), (2, -1, 1)],
            [(-1, -1, 1), (0, -2, 3)],
        ):
            yield called(x, np.asarray(7, dtype), config)


def ordered(x: NDArray, k: int, axis: int = -1) -> Any:
    at = np.argsort(-x.astype(np.float64), axis=axis, kind="stable")
    at = np.take(at, np.arange(k), axis)
    return np.take_along_axis(x, at, axis), at.astype(np.int32)


def along_axes(random: np.random.Generator) -> Iterator[Call]:
    for dtype in (*FLOATS, np.int32):
        x = numbers(random, (2, 3, 4), dtype)
        for k in (0, 1, 2):
            yield Call((x, k))
            yield Call((x, k), {"axis": 0})
            yield Call((x, k), {"axis": -2})


def contracted(x: NDArray, y: NDArray, numbers: Any) -> NDArray:
    """Batch dimensions first, then what is left of each operand."""
    (cx, cy), (bx, by) = numbers
    names = "abcdefgh"
    left = [names[i] for i in range(x.ndim)]
    right = [names[x.ndim + i].upper() for i in range(y.ndim)]
    for i, j in (*zip(cx, cy, strict=True), *zip(bx, by, strict=True)):
        right[j] = left[i]
    out = [left[i] for i in bx] + [
        left[i] for i in range(x.ndim) if i not in (*cx, *bx)
    ]
    out += [right[j] for j in range(y.ndim) if j not in (*cy, *by)]
    text = f"{''.join(left)},{''.join(right)}->{''.join(out)}"
    return np.asarray(np.einsum(text, x, y)).astype(np.result_type(x, y))


def contractions(random: np.random.Generator) -> Iterator[Call]:
    for dtype in (np.float32, np.int32, np.complex64):
        x, y = numbers(random, (2, 3, 4), dtype), numbers(random, (4, 2, 3), dtype)
        for numbered in (
            (((2,), (0,)), ((), ())),
            (((2,), (0,)), ((0,), (1,))),
            (((1, 2), (2, 0)), ((), ())),
            (((), ()), ((0, 1), (1, 2))),
            (((), ()), ((), ())),
        ):
            yield called(x, y, numbered)
        yield called(x[:0], y, (((2,), (0,)), ((), ())))


def updates(random: np.random.Generator) -> Iterator[Call]:
    x = numbers(random, (4, 5), np.float32)
    for start in ((0, 0), (1, 2), (-1, -2), (9, 9), (-9, 1)):
        yield called(x, numbers(random, (2, 3), np.float32), start)


def clamped(start: Any, size: Any, shape: Any) -> Any:
    """Negative starts count from the end; then the window is moved inside."""
    return tuple(
        slice(at, at + n)
        for s, n, d in zip(start, size, shape, strict=True)
        for at in [min(max(s + d if s < 0 else s, 0), d - n)]
    )


def cut(x: NDArray, start: Any, size: Any) -> NDArray:
    return np.asarray(x[clamped(start, size, x.shape)])


def updated(x: NDArray, update: NDArray, start: Any) -> NDArray:
    actual = x.copy()
    actual[clamped(start, update.shape, x.shape)] = update
    return actual


STRUCTURE: Final = (
    whole("reshape", np.reshape, one(((6, 4),), ((24,),), ((1, 2, 12),))),
    whole("transpose", np.transpose, one(((2, 0, 1),), ((0, 1, 2),), ((1, 2, 0),))),
    whole("rev", np.flip, one(((0,),), ((0, 2),), ((),))),
    whole("expand_dims", np.expand_dims, one(((0,),), ((1, 3),), ((-1,),))),
    whole(
        "squeeze",
        lambda x, d: np.squeeze(x, d),
        one(((0,),), ((0, 2),), ((-1,),), shape=(1, 3, 1)),
    ),
    whole(
        "broadcast",
        lambda x, s: np.broadcast_to(x, (*s, *x.shape)),
        one(((5,),), ((),), ((0, 2),)),
    ),
    whole("tile", np.tile, one(((2, 1, 3),), ((1, 1, 1),))),
    whole(
        "argmax",
        lambda x, a, t: np.argmax(x, a).astype(t),
        one((0, np.int32), (2, np.int32), (1, np.int8)),
    ),
    whole(
        "argmin",
        lambda x, a, t: np.argmin(x, a).astype(t),
        one((0, np.int32), (2, np.int32), (1, np.int8)),
    ),
    whole("sort", np.sort, one((0,), (-1,), (1,), dtypes=(*FLOATS, *INTEGERS))),
    whole("top_k", ordered, along_axes, dtypes=False),
    whole(
        "slice",
        lambda x, a, b, s: x[tuple(map(slice, a, b, s))],
        one(((0, 1, 1), (2, 3, 4), (1, 1, 2)), ((1, 0, 0), (1, 3, 4), (2, 2, 3))),
    ),
    whole(
        "slice_in_dim",
        lambda x, a, b, s, d: np.moveaxis(np.moveaxis(x, d, 0)[a:b:s], 0, d),
        one((0, 2, 1, 1), (-3, -1, 1, -1), (None, None, 2, 2)),
    ),
    whole(
        "index_in_dim",
        lambda x, i, a, k: np.take(x, [i] if k else i, a),
        one((0, 0, True), (-1, 2, False), (1, -2, True)),
    ),
    whole(
        "dynamic_slice",
        cut,
        one(((0, 0, 0), (1, 2, 3)), ((-1, 9, 1), (2, 2, 2)), ((-9, -1, 3), (1, 1, 4))),
    ),
    whole("dynamic_update_slice", updated, updates),
    whole("pad", padded, pads),
    whole("dot_general", contracted, contractions, ulps=32),
    whole(
        "select",
        lambda p, x, y: np.where(p, x, y),
        lambda r: [
            called(numbers(r, (2, 3), bool), *(numbers(r, (2, 3), d) for _ in range(2)))
            for d in NUMBERS
        ],
    ),
    whole(
        "convert_element_type",
        lambda x, t: x.astype(t),
        lambda r: [
            called(
                np.abs(numbers(r, (5,), a))
                if np.dtype(a).kind != "c"
                else numbers(r, (5,), a),
                b,
            )
            for a in (*FLOATS, *INTEGERS)
            for b in (*FLOATS, *INTEGERS, np.complex64, np.bool_)
        ],
        dtypes=False,
    ),
)
WHOLE: Final = (*ARITHMETIC, *REDUCTIONS, *STRUCTURE)
