"""The subjects that make arrays: filled, counted, in grids, windows, from others.

One idea: a dtype that is asked for is the dtype that comes, and what is not asked for
is the default of 32 or 64 bits::

    SUBJECTS = [Subject("arange", ranges), Subject("linspace", lines)]
"""

from typing import Any

import numpy as np

import verax
from property_tests.numpy_draws import Call, Draw, kind_of
from property_tests.numpy_law import Subject


def shaped(d: Draw) -> Call:
    shape = d.pick(d.shape(), d.whole(0, 4), list(d.shape()))
    return d.call(shape, **d.some(dtype=d.dtype()))


def alike(d: Draw) -> Call:
    return d.call(d.array(), **d.some(dtype=d.dtype(), shape=d.shape()))


def full_args(d: Draw) -> Call:
    shape = d.pick(d.shape(), d.whole(0, 4))
    value = d.pick(2, 1.5, d.values((), d.dtype("iuf"), low=0))
    return d.call(shape, value, **d.some(dtype=d.dtype("iuf")))


def full_alike(d: Draw) -> Call:
    return d.call(
        d.array("iuf"), d.pick(2, 1.5), **d.some(dtype=d.dtype("iuf"), shape=d.shape())
    )


def eyes(d: Draw) -> Call:
    return d.call(
        d.whole(0, 4), **d.some(M=d.whole(0, 4), k=d.whole(-3, 3), dtype=d.dtype())
    )


def identities(d: Draw) -> Call:
    return d.call(d.whole(0, 4), **d.some(dtype=d.dtype()))


def ranges(d: Draw) -> Call:
    whole = d.pick(
        (d.whole(-3, 9),), (d.whole(-3, 4), d.whole(0, 12)), (1, 12, 3), (7, -2, -2)
    )
    eighths = d.pick((2.5,), (0.5, 4.25), (0, 2, 0.25), (1.5, -1, -0.5), (0, 3.0, 1))
    if d.flag():
        return d.call(*whole, **d.some(dtype=d.dtype("iuf")))
    return d.call(*eighths, **d.some(dtype=d.dtype("f")))


def unsigned_range(call: Call) -> str:
    dtype = call["dtype"]
    if dtype is not None and kind_of(dtype) == "u":
        return "NumPy converts the limits of unsigned ranges first"
    return ""


def ends(d: Draw, low: float, high: float) -> tuple[Any, Any]:
    """Numbers, or arrays that broadcast."""
    if d.flag():
        whole = (d.whole(int(low), int(high)), d.whole(int(low), int(high)))
        return d.pick(whole, (float(whole[0]), whole[1] + 0.5))  # type: ignore[no-any-return]  # one of two
    shape = d.pick((), (3,), (2, 3), (0,))
    return (
        d.values(shape, d.dtype("iuf"), low, high),
        d.values(d.pick(shape, shape[1:]), d.dtype("iuf"), low, high),
    )


def spaced(d: Draw, low: float, high: float) -> tuple[tuple[Any, Any], dict[str, Any]]:
    start, stop = ends(d, low, high)
    rank = np.broadcast(start, stop).ndim + 1
    options = {"num": d.whole(0, 40), "endpoint": d.flag(), "axis": d.axis(rank)}
    return (start, stop), d.some(**options, dtype=d.dtype("f"))


def lines(d: Draw) -> Call:
    args, options = spaced(d, -20, 20)
    return d.call(*args, **options, **d.some(retstep=d.flag()))


def whole_lines(d: Draw) -> Call:
    """Integers as result: points at whole numbers must not fall below them."""
    start, num = d.whole(-20, 20), d.whole(2, 40)
    dtype = np.dtype(d.pick("int32", "int16"))
    return d.call(start, start + d.whole(-3, 5) * (num - 1), num, dtype=dtype)


def logs(d: Draw) -> Call:
    args, options = spaced(d, -2, 3)
    return d.call(*args, **options, **d.some(base=d.pick(2, 10.0, 3.5)))


def ratios(d: Draw) -> Call:
    args, options = spaced(d, 1, 20)
    return d.call(*args, **options)


def grids(d: Draw) -> Call:
    vectors = [d.vector(d.whole(0, 3)) for _ in range(d.whole(1, 3))]
    return d.call(
        *vectors, **d.some(sparse=d.flag(), indexing=d.pick("xy", "ij"), copy=True)
    )


def index_grids(d: Draw) -> Call:
    return d.call(
        d.pick((2, 3), (4,), (0, 2), ()), **d.some(dtype=d.dtype("if"), sparse=d.flag())
    )


def triangles(d: Draw) -> Call:
    return d.call(
        d.whole(0, 4), **d.some(M=d.whole(0, 4), k=d.whole(-3, 3), dtype=d.dtype("iuf"))
    )


def triangle_places(d: Draw) -> Call:
    return d.call(d.whole(0, 4), **d.some(k=d.whole(-3, 3), m=d.whole(0, 4)))


def places_from(d: Draw) -> Call:
    return d.call(d.array(rank=(2, 2)), **d.some(k=d.whole(-3, 3)))


def vanders(d: Draw) -> Call:
    return d.call(d.vector(3, "iufc"), **d.some(N=d.whole(0, 4), increasing=d.flag()))


def windows(d: Draw) -> Call:
    return d.call(d.whole(0, 7))


def from_function(d: Draw) -> Call:
    functions = (lambda i, j: i + 2 * j, lambda i, j: i * j + 0.5)
    return d.call(d.pick(*functions), (2, 3), **d.some(dtype=d.dtype("if")))


def nests(d: Draw) -> Any:
    x = d.array()
    flat = d.pick([1, 2, 3], [1, 2.5], [True, False], [[1, 2], [3, 4]], [], [[], []])
    return d.pick(x, flat, range(4), 2, 2.5, True, 1j, [d.like(x), x], (1, 2))


def from_nests(d: Draw) -> Call:
    return d.call(nests(d), **d.some(ndmin=d.whole(0, 4), order="C", copy=True))


def as_arrays(d: Draw) -> Call:
    return d.call(nests(d), **d.some(order=d.pick("C", None)))


def typed(d: Draw) -> Call:
    return d.call(d.array("iuf", low=0), dtype=d.dtype("iufc"))


def cast(d: Draw) -> Call:
    x = d.array("biuf", low=0)
    return d.call(x, d.dtype("biufc"), **d.some(copy=d.flag()))


def buffers(d: Draw) -> Call:
    dtype = d.dtype("iu")
    values = d.vector(4).astype(complex).real.astype(dtype).tobytes()
    options = {"count": d.whole(0, 2), "offset": dtype.itemsize * d.whole(0, 2)}
    return d.call(values, dtype=dtype, **d.some(**options))


def iterators(d: Draw) -> Call:
    return d.call([1, 2, 3], d.dtype("iuf"), **d.some(count=d.pick(-1, 2)))


def strings(d: Draw) -> Call:
    return d.call("1 2 3", sep=" ", **d.some(dtype=d.dtype("iu"), count=d.pick(-1, 2)))


def diagonal_places(d: Draw) -> Call:
    return d.call(d.whole(0, 4), **d.some(ndim=d.whole(1, 3)))


def square_array(d: Draw) -> Call:
    return d.call(d.values(d.pick((3, 3), (2, 2, 2)), d.dtype()))


def open_mesh(d: Draw) -> Call:
    return d.call(*[d.vector(d.whole(1, 3), "i") for _ in range(d.whole(1, 3))])


def masks(d: Draw) -> Call:
    names = d.pick("triu", "tril")

    def mask(m: Any, k: int = 0) -> Any:
        library = np if isinstance(m, np.ndarray) else verax.numpy
        return getattr(library, names)(m, k)

    return d.call(d.whole(1, 4), mask, **d.some(k=d.whole(-2, 2)))


SUBJECTS = [
    *(Subject(name, shaped) for name in ("zeros", "ones")),
    Subject("empty", shaped, np.zeros, why="the values of NumPy's are not defined"),
    *(Subject(name, alike) for name in ("zeros_like", "ones_like")),
    Subject("empty_like", alike, np.zeros_like, why="NumPy's values are not defined"),
    Subject("full", full_args, narrow=True),
    Subject("full_like", full_alike),
    Subject("eye", eyes),
    Subject("identity", identities),
    Subject("arange", ranges, differs=unsigned_range),
    Subject("linspace", lines),
    Subject("linspace", whole_lines),
    Subject("logspace", logs, slack=128),
    Subject("geomspace", ratios, slack=128, typed=False),
    Subject("meshgrid", grids),
    Subject("indices", index_grids),
    Subject("tri", triangles),
    *(Subject(f"{name}_indices", triangle_places) for name in ("tril", "triu")),
    *(Subject(f"{name}_indices_from", places_from) for name in ("tril", "triu")),
    Subject("vander", vanders, typed=False),
    *(
        Subject(name, windows)
        for name in ("bartlett", "blackman", "hamming", "hanning")
    ),
    Subject("kaiser", lambda d: d.call(d.whole(0, 7), d.pick(0.5, 3.0))),
    Subject("fromfunction", from_function, asked=False),
    Subject("array", from_nests),
    Subject("array", typed),
    Subject("asarray", as_arrays),
    Subject("asarray", typed),
    Subject("astype", cast),
    Subject("frombuffer", buffers),
    Subject("fromiter", iterators),
    Subject("fromstring", strings),
    Subject("diag_indices", diagonal_places),
    Subject("diag_indices_from", square_array),
    Subject("ix_", open_mesh),
    Subject("mask_indices", masks),
]
