"""The functions of `verax.scipy.linalg` beside SciPy's, parameter by parameter."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import scipy.linalg as sl

from property_tests.comparing import Call, Calls, NDArray, Whole, called, varied
from verax.scipy import (
    linalg,
)

KINDS: Final = (np.float32, np.complex64)
SIZES: Final = ((1, 1), (3, 3), (5, 5))


def single(values: Any) -> NDArray:
    return np.array(values, np.float32)


def drawn(random: np.random.Generator, *shape: int, kind: Any = np.float32) -> NDArray:
    actual = random.normal(size=shape)
    if np.dtype(kind).kind == "c":
        actual = actual + 1j * random.normal(size=shape)
    return np.asarray(actual).astype(kind)


def square(random: np.random.Generator, *shape: int, kind: Any = np.float32) -> NDArray:
    """Matrices far from singular."""
    n = shape[-1]
    return (drawn(random, *shape, kind=kind) + 3 * n * np.eye(n)).astype(kind)


def definite(
    random: np.random.Generator, *shape: int, kind: Any = np.float32
) -> NDArray:
    a = drawn(random, *shape, kind=kind)
    return (a @ np.conj(np.swapaxes(a, -1, -2)) + 2 * np.eye(shape[-1])).astype(kind)


def matrices(make: Any, stacked: bool = True, **options: Any) -> Calls:
    """Square matrices of each size and kind, stacks of them, and each option alone."""

    def calls(random: np.random.Generator) -> Iterator[Call]:
        for kind in KINDS:
            for size in SIZES:
                yield called(make(random, *size, kind=kind))
            if stacked:
                yield called(make(random, 2, 3, 3, kind=kind))
            yield from varied((make(random, 4, 4, kind=kind),), **options)

    return calls


def systems(make: Any, **options: Any) -> Calls:
    """A square matrix, and one or several right-hand sides."""

    def calls(random: np.random.Generator) -> Iterator[Call]:
        for kind in KINDS:
            a = make(random, 4, 4, kind=kind)
            yield from varied((a, drawn(random, 4, 2, kind=kind)), **options)
            yield called(a, drawn(random, 4, kind=kind))

    return calls


def vectors(
    count: int, *lengths: int, kinds: Any = (np.float32, np.int32), **options: Any
) -> Calls:
    """So many vectors, of each length."""

    def calls(random: np.random.Generator) -> Iterator[Call]:
        for kind in kinds:
            for n in lengths:
                args = [(drawn(random, n) * 3).astype(kind) for _ in range(count)]
                yield from varied(args, **options)

    return calls


def constants(*args: Any, **options: Any) -> Calls:
    return lambda random: [
        call
        for n in args
        for call in varied(n if isinstance(n, tuple) else (n,), **options)
    ]


def up_to_phase(result: Any) -> Any:
    """Eigenvectors times what makes their largest element positive."""
    w, v = result
    v = np.asarray(v)
    at = np.argmax(np.abs(v), axis=-2)[..., None, :]
    lead = np.take_along_axis(v, at, -2)
    return w, v * np.conj(lead) / np.abs(lead)


def product(*places: int) -> Callable[..., Any]:
    """What factors make together."""

    def take(result: Any) -> Any:
        return np.linalg.multi_dot([np.asarray(result[i]) for i in places])

    return take


def lin(name: str, calls: Calls, **options: Any) -> Whole:
    reference = options.pop("reference", getattr(sl, name))
    ours = options.pop("ours", getattr(linalg, name))
    return Whole(f"linalg.{name}", ours, reference, calls, **options)


def tridiagonal(random: np.random.Generator) -> Iterator[Call]:
    d, e = drawn(random, 5), drawn(random, 4)
    yield Call((d, e), {"eigvals_only": True})
    yield Call((d, e), {"eigvals_only": True, "select": "i", "select_range": (1, 3)})


def triangular(random: np.random.Generator) -> Iterator[Call]:
    for kind in KINDS:
        a, b = square(random, 4, 4, kind=kind), drawn(random, 4, 2, kind=kind)
        yield from varied(
            (a, b), trans=(0, 1, 2, "N", "T", "C"), lower=(True,), unit_diagonal=(True,)
        )
        yield called(a, drawn(random, 4, kind=kind))


def lu_solving(f: Any, s: Any) -> Callable[..., Any]:
    def solve(a: Any, b: Any, trans: int = 0) -> Any:
        return s(f(a), b, trans)

    return solve


def cho_solving(f: Any, s: Any) -> Callable[..., Any]:
    def solve(a: Any, b: Any, lower: bool = False) -> Any:
        return s((f(a, lower=lower)[0], lower), b)

    return solve


def triangle(lower: bool = False) -> Callable[..., Any]:
    return lambda result: np.tril(result[0]) if lower else np.triu(result[0])


def sylvester(random: np.random.Generator) -> Iterator[Call]:
    for kind in KINDS:
        yield called(
            square(random, 3, 3, kind=kind),
            square(random, 4, 4, kind=kind),
            drawn(random, 3, 4, kind=kind),
        )


def blocks(random: np.random.Generator) -> Iterator[Call]:
    yield called(drawn(random, 2, 3), drawn(random, 1, 1), drawn(random, 3, 2))
    yield called(drawn(random, 2))
    yield called(np.float32(2.0), drawn(random, 2, 2))
    yield called()


def pair(random: np.random.Generator) -> Iterator[Call]:
    for kind in KINDS:
        for m, n in ((3, 3), (4, 2), (2, 4)):
            yield called(drawn(random, m, kind=kind), drawn(random, n, kind=kind))
    yield called(drawn(random, 3))


def leslies(random: np.random.Generator) -> Iterator[Call]:
    yield called(drawn(random, 4), drawn(random, 3))
    yield called(np.arange(3), np.arange(2))


def tall(*shapes: tuple[int, int], **options: Any) -> Calls:
    def calls(random: np.random.Generator) -> Iterator[Call]:
        for kind in KINDS:
            for shape in shapes:
                yield from varied((drawn(random, *shape, kind=kind),), **options)

    return calls


def generalized(random: np.random.Generator) -> Iterator[Call]:
    for kind in KINDS:
        a = definite(random, 4, 4, kind=kind)
        yield Call((a,), {"eigvals_only": True})
        yield Call((a,), {"eigvals_only": True, "lower": False})


def frechet(random: np.random.Generator) -> Iterator[Call]:
    a, e = drawn(random, 4, 4), drawn(random, 4, 4)
    yield called(a, e)
    yield Call((a, e), {"compute_expm": False})
    yield called(a * 8, e)


RECTANGLES: Final = ((3, 3), (4, 2), (2, 4))
LINALG: Final = (
    lin("det", matrices(square), ulps=64),
    lin("inv", matrices(square), ulps=64),
    lin("expm", matrices(drawn), ulps=64),
    lin("expm_frechet", frechet, ulps=128),
    lin(
        "sqrtm",
        matrices(definite, False),
        ulps=128,
        dtypes=False,
        take=np.real_if_close,
    ),
    lin("cholesky", matrices(definite, lower=(True,)), ulps=64),
    lin("cho_factor", matrices(definite, False), take=triangle(), ulps=64),
    lin(
        "cho_solve",
        systems(definite, lower=(True,)),
        ours=cho_solving(linalg.cho_factor, linalg.cho_solve),
        reference=cho_solving(sl.cho_factor, sl.cho_solve),
        ulps=256,
    ),
    lin("solve", systems(square, lower=(True,), assume_a=("gen",)), ulps=64),
    lin("solve_triangular", triangular, ulps=64),
    lin("lu_factor", matrices(square, False), ulps=64),
    lin(
        "lu_solve",
        systems(square, trans=(0, 1, 2)),
        ours=lu_solving(linalg.lu_factor, linalg.lu_solve),
        reference=lu_solving(sl.lu_factor, sl.lu_solve),
        ulps=64,
    ),
    lin("lu", tall(*RECTANGLES, permute_l=(True,)), ulps=64),
    lin("qr", tall(*RECTANGLES), take=product(0, 1), ulps=64),
    lin(
        "svd",
        tall(*RECTANGLES, full_matrices=(False,), compute_uv=(False,)),
        take=lambda f: f if isinstance(f, np.ndarray) else f[1],
        ulps=64,
    ),
    lin("polar", tall((3, 3), (4, 2), side=("left", "right")), ulps=128),
    lin(
        "hessenberg",
        matrices(drawn, False),
        take=lambda h: np.sort(np.abs(np.linalg.eigvals(h))),
        dtypes=False,
        ulps=512,
    ),
    lin(
        "schur",
        matrices(drawn, False, output=("complex",)),
        take=lambda f: np.asarray(f[1]) @ f[0] @ np.conj(f[1]).T,
        dtypes=False,
        ulps=256,
    ),
    lin("eigh", generalized, ulps=64),
    lin("eigh_tridiagonal", tridiagonal, ulps=64),
    lin("solve_sylvester", sylvester, ulps=256),
    lin("block_diag", blocks),
    lin("toeplitz", pair),
    lin("hankel", pair),
    lin("circulant", tall((1, 4), (2, 3))),
    lin("companion", lambda r: [called(square(r, 4, 4)[i]) for i in range(1)]),
    lin(
        "convolution_matrix",
        lambda r: [
            Call((drawn(r, n), 5, mode))
            for n in (1, 3, 7)
            for mode in ("full", "same", "valid")
        ],
    ),
    lin("fiedler", vectors(1, 1, 4, kinds=(np.float32,))),
    lin("fiedler_companion", vectors(1, 2, 3, 6, kinds=(np.float32,)), ulps=64),
    lin("leslie", leslies),
    lin("dft", constants(1, 4, 5, scale=("sqrtn", "n")), ulps=64),
    lin("hadamard", constants(1, 2, 8), dtypes=False),
    lin("helmert", constants(1, 4, full=(True,))),
    lin("hilbert", constants(1, 5)),
    lin("invhilbert", constants(1, 4), dtypes=False),
    lin("pascal", constants(1, 5, kind=("symmetric", "lower", "upper")), dtypes=False),
    lin(
        "invpascal", constants(1, 5, kind=("symmetric", "lower", "upper")), dtypes=False
    ),
)
