"""The subjects of linear algebra, of products, and of Fourier transforms.

One idea: what a decomposition leaves open (phases, the order of eigenvalues) is taken
out before results are compared: by products that give the matrix back::

    Subject("linalg.qr", qr_args, seen=lambda call, found: found[0] @ found[1])
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from property_tests.numpy_draws import Call, Draw, Values, kind_of
from property_tests.numpy_law import Subject

PRECISE = "fc"


def matrices(
    d: Draw, rows: int | None = None, columns: int | None = None, kinds: str = PRECISE
) -> Values:
    """A stack of well-conditioned matrices in single or double precision."""
    m = d.whole(1, 4) if rows is None else rows
    n = d.whole(1, 4) if columns is None else columns
    stack = d.pick((), (), (2,), (0,), (2, 1))
    dtype = d.dtype(kinds)
    while kind_of(dtype) in PRECISE and dtype.itemsize < 4:
        dtype = d.dtype(kinds)
    random = d.values((*stack, m, n), dtype, -2, 2)
    if kind_of(dtype) not in PRECISE:
        return random
    return np.asarray(random + 5 * np.eye(m, n)).astype(dtype)


def square(d: Draw) -> Values:
    n = d.whole(1, 4)
    return matrices(d, n, n)


def hermitian(d: Draw) -> Values:
    x = square(d)
    return np.asarray((x + np.conj(np.swapaxes(x, -1, -2))) / 2).astype(x.dtype)


def definite(d: Draw) -> Values:
    x = square(d)
    return np.asarray(x @ np.conj(np.swapaxes(x, -1, -2))).astype(x.dtype)


def of(make: Callable[[Draw], Values]) -> Callable[[Draw], Call]:
    return lambda d: d.call(make(d))


# ------------------------------------------------------------------------ products


def vectors_or_matrices(d: Draw, batch: bool) -> tuple[Values, Values]:
    """Two operands that `dot` (or, with batch, `matmul`) multiplies."""
    m, k, n = d.whole(0, 3), d.whole(0, 3), d.whole(1, 3)
    left = d.pick((k,), (m, k), (2, m, k))
    right = d.pick((k,), (k, n), (2, k, n))
    if batch:
        right = d.pick(right, (3, 1, k, n)) if len(left) > 1 else right
    first = d.dtype()
    second = first if d.flag() else d.dtype()
    return d.values(left, first), d.values(right, second)


def dots(d: Draw) -> Call:
    if d.whole(0, 4) == 0:
        return d.call(*d.operands(2)) if d.flag() else d.call(d.array(), d.pick(2, 2.5))
    return d.call(*vectors_or_matrices(d, False))


def matmuls(d: Draw) -> Call:
    return d.call(*vectors_or_matrices(d, True))


def inners(d: Draw) -> Call:
    k = d.whole(0, 3)
    left, right = d.pick((k,), (2, k), (2, 3, k)), d.pick((k,), (4, k))
    return d.call(d.values(left, d.dtype()), d.values(right, d.dtype()))


def same_sizes(d: Draw) -> Call:
    x = d.array()
    return d.call(x, d.values(x.shape, d.dtype()))


def pairs(d: Draw) -> Call:
    return d.call(d.array(), d.array())


def kroneckers(d: Draw) -> Call:
    return d.call(d.array(rank=(0, 2)), d.array())


def crosses(d: Draw) -> Call:
    first = d.dtype("iufc")
    if d.flag():
        x, y = d.values((2, 3), first), d.values(d.pick((3,), (2, 3)), d.dtype("iufc"))
        return d.call(x, y)
    x, y = d.values((3, 2, 4), first), d.values((2, 3, 4), first)
    return d.call(x, y, axisa=0, axisb=1, **d.some(axisc=d.pick(0, 1, -1)))


def crosses_on_axis(d: Draw) -> Call:
    x = d.values((2, 3, 4), d.dtype("iufc"))
    return d.call(x, d.like(x), axis=d.pick(1, -2))


def standard_crosses(d: Draw) -> Call:
    x = d.values((2, 3), d.dtype("iufc"))
    return d.call(x, d.like(x), **d.some(axis=-1))


def vecdots(d: Draw) -> Call:
    x = d.array("biufc", (1, 3))
    return d.call(x, d.values(x.shape, d.dtype()), **d.some(axis=d.axis(x.ndim)))


def matvecs(d: Draw) -> Call:
    x = d.array("biufc", (2, 3))
    return d.call(x, d.values((x.shape[-1],), d.dtype()))


def vecmats(d: Draw) -> Call:
    x = d.array("biufc", (2, 3))
    return d.call(d.values((x.shape[-2],), d.dtype()), x)


def tensordots(d: Draw) -> Call:
    axes, shape = d.pick(
        (0, (3, 2)),
        (1, (4, 2)),
        (2, (3, 4, 2)),
        (((0, 2), (1, 0)), (4, 2, 3)),
        (([1], [0]), (3, 2)),
        ((2, 0), (4, 2)),
        (((-1,), (0,)), (4, 2)),
    )
    x, y = d.values((2, 3, 4), d.dtype()), d.values(shape, d.dtype())
    return d.call(x, y, axes) if d.flag() else d.call(x, y, axes=axes)


def tensordots_by_name(d: Draw) -> Call:
    call = tensordots(d)
    return Call(
        call.args[:2], {"axes": call[2]} if call[2] is not None else call.kwargs
    )


EINSUMS = (
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("ij->ji", (2, 3)),
    ("ij->", (2, 3)),
    ("...i,...i", (2, 3), (2, 3)),
    ("...ij,...jk->...ik", (2, 2, 3), (3, 4)),
    ("i,j->ij", (2,), (3,)),
    ("i,i,i->i", (3,), (3,), (3,)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
    ("iij->j", (2, 2, 3)),
    (",i", (), (3,)),
    ("ab,ab", (0, 3), (0, 3)),
    ("b...a->a...b", (2, 3, 4)),
)


def einsums(d: Draw) -> Call:
    text, *shapes = d.pick(*EINSUMS)
    dtype = d.dtype("iufc")
    operands = [d.values(s, d.pick(dtype, d.dtype("iufc"))) for s in shapes]
    return d.call(text, *operands, **d.some(optimize=d.pick(True, False, "greedy")))


def einsums_by_lists(d: Draw) -> Call:
    x, y = d.values((2, 3), d.dtype("iuf")), d.values((3, 4), d.dtype("iuf"))
    return d.pick(d.call(x, [0, 1], y, [1, 2], [2, 0]), d.call(x, [0, 1], y, [1, 2]))  # type: ignore[no-any-return]  # one of two


def chains(d: Draw) -> Call:
    sizes = [d.whole(1, 4) for _ in range(d.whole(3, 5))]
    dtype = d.dtype("fc")
    return d.call([d.values(pair, dtype) for pair in pairwise(sizes)])


# ------------------------------------------------------------------------ solving


def systems(d: Draw) -> Call:
    a = square(d)
    n = a.shape[-1]
    shape = d.pick((n, 2), (n, 1)) if a.ndim > 2 else d.pick((n,), (n, 2))
    return d.call(a, d.values((*a.shape[:-2], *shape), a.dtype))


def least_squares(d: Draw) -> Call:
    a = matrices(d)
    while a.ndim > 2:
        a = matrices(d)
    shape = d.pick((a.shape[0],), (a.shape[0], 2))
    return d.call(a, d.values(shape, a.dtype), **d.some(rcond=d.pick(None, 1e-3)))


def solution_only(call: Call, result: Any) -> Any:
    return [result[0], result[2]]


def tensor_systems(d: Draw) -> Call:
    a = np.asarray(
        d.values((6, 2, 3), np.dtype(np.float32)) + 9 * np.eye(6).reshape(6, 2, 3)
    )
    return d.call(
        a.astype(np.float32).reshape(2, 3, 2, 3), d.values((2, 3), np.dtype(np.float32))
    )


def tensor_inverses(d: Draw) -> Call:
    a = d.values((6, 6), np.dtype(np.float32)) + 20 * np.eye(6, dtype=np.float32)
    return d.pick(  # type: ignore[no-any-return]  # one of two
        d.call(a.reshape(2, 3, 6), ind=2), d.call(a.reshape(6, 2, 3), ind=1)
    )


def norms(d: Draw) -> Call:
    x = d.array("iufc", (1, 3), empty=False)
    if d.flag():
        ord = d.pick(None, 0, 1, 2, 3, -1, np.inf, -np.inf, 0.5)
        return d.call(x, ord, axis=d.axis(x.ndim), **d.some(keepdims=d.flag()))
    if x.ndim > 1 and d.flag():
        axes = tuple(int(i) for i in d.random.permutation(x.ndim)[:2])
        ord = d.pick(None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
        return d.call(x, ord, axis=axes, **d.some(keepdims=d.flag()))
    return d.call(x, **d.some(keepdims=d.flag()))


def vector_norms(d: Draw) -> Call:
    x = d.array("iufc", empty=False)
    ord = d.pick(0, 1, 2, 3, -1, np.inf, -np.inf, 0.5)
    return d.call(x, **d.some(axis=d.axes(x.ndim), ord=ord, keepdims=d.flag()))


def matrix_norms(d: Draw) -> Call:
    x = d.array("iufc", (2, 3), empty=False)
    ord = d.pick("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
    return d.call(x, **d.some(ord=ord, keepdims=d.flag()))


def singular(call: Call) -> str:
    """Negative powers of halves, and what needs singular values of them."""
    ord = call["ord"] if call["ord"] is not None else call[1]
    x = np.asarray(call[0])
    if ord in ("nuc", 2, -2) and kind_of(x.dtype) == "f" and x.dtype.itemsize < 4:
        return "decompositions take single and double precision, as in JAX"
    if isinstance(ord, int | float) and 0 < abs(ord) < np.inf and ord < 1:
        x = np.asarray(call[0])
        if kind_of(x.dtype) != "i" and x.dtype.itemsize < 4:
            return "powers of halves lose digits, and are infinite at 0"
    return ""


def conditions(d: Draw) -> Call:
    p = d.pick(None, 2, -2, "fro", 1, -1, np.inf, -np.inf)
    return d.call(square(d), **d.some(p=p))


def powers(d: Draw) -> Call:
    return d.call(square(d), d.whole(-2, 4))


def ranks(d: Draw) -> Call:
    a = matrices(d)
    if d.flag() and a.shape[-1] > 1:
        a[..., -1] = a[..., 0]
    return d.call(a, **d.some(rtol=1e-3))


def symmetric_ranks(d: Draw) -> Call:
    return d.call(hermitian(d), hermitian=d.flag(), **d.some(tol=d.pick(1e-3, 3.0)))


def pseudo_inverses(d: Draw) -> Call:
    return d.call(matrices(d), **d.some(rtol=1e-4))


def symmetric_inverses(d: Draw) -> Call:
    return d.call(hermitian(d), hermitian=d.flag(), **d.some(rcond=1e-4))


# ----------------------------------------------------------------- decompositions


def triangles(d: Draw) -> Call:
    return d.call(definite(d), **d.some(upper=d.flag()))


def power_sums(call: Call, result: Any) -> Any:
    """Sums of powers of the eigenvalues, which their order does not change."""
    values = np.asarray(result) / 4
    return [(values**k).sum(-1) for k in range(1, values.shape[-1] + 1)]


def values_and_check(call: Call, result: Any) -> Any:
    """The eigenvalues, and the eigenvectors by what they are for."""
    values, vectors = (np.asarray(x) for x in result)
    rest = call[0] @ vectors - vectors * values[..., None, :]
    sizes = np.sum(np.abs(vectors) ** 2, -2)
    return [*power_sums(call, values), rest.astype(values.dtype), sizes]


def halves(d: Draw) -> Call:
    options = d.some(UPLO=d.pick("L", "U"))
    if d.flag():
        return d.call(square(d), **options, symmetrize_input=False)
    return d.call(hermitian(d), **options)


def numpy_half(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, UPLO="L", symmetrize_input=True: function(a, UPLO)


def spectrum(call: Call, result: Any) -> Any:
    """The matrix made again of its eigenvalues and eigenvectors, and the values."""
    values, vectors = result
    again = (vectors * values[..., None, :]) @ np.conj(np.swapaxes(vectors, -1, -2))
    return [np.asarray(values), again]


def modes(d: Draw) -> Call:
    return d.call(matrices(d), **d.some(mode=d.pick("reduced", "complete", "r")))


def product_of_qr(call: Call, result: Any) -> Any:
    """q r where there is q, and sizes of r, whose signs are free."""
    if not isinstance(result, list):
        return np.abs(result)
    q, r = result
    return [q @ r, np.abs(r), np.zeros(q.shape)]


def singular_modes(d: Draw) -> Call:
    return d.call(matrices(d), **d.some(full_matrices=d.flag(), compute_uv=d.flag()))


def symmetric_singular(d: Draw) -> Call:
    return d.call(hermitian(d), hermitian=True, **d.some(compute_uv=d.flag()))


def product_of_svd(call: Call, result: Any) -> Any:
    if not isinstance(result, list):
        return result
    u, s, v = result
    k = s.shape[-1]
    shapes = [np.zeros(u.shape, np.float32), np.zeros(v.shape, np.float32)]
    return [s, (u[..., :k] * s[..., None, :]) @ v[..., :k, :], *shapes]


# ------------------------------------------------------------------------ fourier

NORMS = (None, "backward", "ortho", "forward")


def transforms(low: int = 1) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        x = d.values(d.pick((4,), (5,), (1,), (2, 3), (2, 4, 3)), d.dtype("biufc"))
        options = {"axis": d.axis(x.ndim), "n": d.whole(low, 6), "norm": d.pick(*NORMS)}
        return d.call(x, **d.some(**options))

    return draw


def of_nothing(call: Call) -> str:
    """One coefficient is that of a signal of length 0, as in JAX."""
    size = np.shape(call.args[0])[call.kwargs.get("axis", -1)]
    return "NumPy refuses it" if size == 1 and call.kwargs.get("n") is None else ""


def real_transforms(d: Draw) -> Call:
    x = d.values(d.pick((4,), (5,), (1,), (2, 3), (2, 4, 3)), d.dtype("biuf"))
    options = {"axis": d.axis(x.ndim), "n": d.whole(1, 6), "norm": d.pick(*NORMS)}
    return d.call(x, **d.some(**options))


def planes(kinds: str) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        x = d.values(d.pick((4, 5), (2, 3), (2, 4, 3)), d.dtype(kinds))
        axes = tuple(int(i) for i in d.random.permutation(x.ndim)[:2])
        options = {
            "axes": axes,
            "norm": d.pick(*NORMS),
            "s": (d.whole(2, 5), d.whole(2, 5)),
        }
        return d.call(x, **d.some(**options))

    return draw


def spaces(kinds: str) -> Callable[[Draw], Call]:
    def draw(d: Draw) -> Call:
        x = d.values(d.pick((4,), (2, 3), (2, 4, 3)), d.dtype(kinds))
        axes = tuple(int(i) for i in d.random.permutation(x.ndim)[: d.whole(1, x.ndim)])
        options: dict[str, Any] = {"axes": axes, "norm": d.pick(*NORMS)}
        chosen = d.some(**options)
        if "axes" in chosen:
            chosen |= d.some(s=tuple(d.whole(2, 5) for _ in axes))
        return d.call(x, **chosen)

    return draw


def shifted(d: Draw) -> Call:
    x = d.array(rank=(1, 3))
    return d.call(x, **d.some(axes=d.axes(x.ndim)))


def frequencies(d: Draw) -> Call:
    return d.call(d.whole(1, 7), **d.some(d=d.pick(0.5, 2.0)))


def typed_frequencies(d: Draw) -> Call:
    return d.call(d.whole(1, 7), dtype=d.dtype("f"))


def without_dtype(name: str) -> Callable[..., Any]:
    return lambda n, d=1.0, dtype=None: getattr(np.fft, name)(n, d)


def fourier() -> Iterator[Subject]:
    # Half precision goes through float32, as in JAX.
    for name in ("fft", "ifft"):
        yield Subject(f"fft.{name}", transforms())
        yield Subject(f"fft.{name}2", planes("biufc"))
        yield Subject(f"fft.{name}n", spaces("biufc"))
    yield Subject("fft.rfft", real_transforms)
    yield Subject("fft.ihfft", real_transforms)
    yield Subject("fft.rfft2", planes("biuf"))
    yield Subject("fft.rfftn", spaces("biuf"))
    yield Subject("fft.irfft", transforms(2), typed=False, differs=of_nothing)
    yield Subject("fft.hfft", transforms(2), typed=False, differs=of_nothing)
    yield Subject("fft.irfft2", planes("biufc"), typed=False)
    yield Subject("fft.irfftn", spaces("biufc"), typed=False)
    for name in ("fftshift", "ifftshift"):
        yield Subject(f"fft.{name}", shifted)
    for name in ("fftfreq", "rfftfreq"):
        yield Subject(f"fft.{name}", frequencies)
        yield Subject(
            f"fft.{name}", typed_frequencies, without_dtype(name), why="dtype is JAX's"
        )


SUBJECTS = [
    Subject("dot", dots, typed=False),  # scalars are weak
    Subject("matmul", matmuls),
    Subject("linalg.matmul", matmuls),
    Subject("inner", inners),
    Subject("vdot", same_sizes),
    *(Subject(name, pairs) for name in ("outer",)),
    Subject("kron", kroneckers),
    Subject("cross", crosses),
    Subject("cross", crosses_on_axis),
    Subject("linalg.cross", standard_crosses),
    Subject("vecdot", vecdots),
    Subject("linalg.vecdot", vecdots),
    Subject("matvec", matvecs),
    Subject("vecmat", vecmats),
    Subject("tensordot", tensordots),
    Subject("linalg.tensordot", tensordots_by_name),
    Subject("einsum", einsums),
    Subject("einsum", einsums_by_lists),
    Subject("linalg.multi_dot", chains, slack=512),
    Subject("linalg.outer", lambda d: d.call(d.vector(3), d.vector(2))),
    Subject("linalg.solve", systems, slack=512),
    Subject("linalg.inv", of(square), slack=512),
    Subject("linalg.det", of(square), slack=512),
    Subject("linalg.slogdet", of(square), slack=512),
    Subject("linalg.lstsq", least_squares, seen=solution_only, slack=2048, typed=False),
    Subject("linalg.tensorsolve", tensor_systems, slack=2048),
    Subject("linalg.tensorinv", tensor_inverses, slack=2048),
    Subject("linalg.norm", norms, slack=128, differs=singular),
    Subject("linalg.vector_norm", vector_norms, slack=128, differs=singular),
    Subject("linalg.matrix_norm", matrix_norms, slack=128, differs=singular),
    Subject("linalg.cond", conditions, slack=2048),
    Subject("linalg.matrix_power", powers, slack=2048),
    Subject("linalg.matrix_rank", ranks),
    Subject("linalg.matrix_rank", symmetric_ranks),
    Subject("linalg.pinv", pseudo_inverses, slack=2048),
    Subject("linalg.pinv", symmetric_inverses, slack=2048),
    Subject("linalg.cholesky", triangles, slack=512),
    Subject("linalg.eigvals", of(square), seen=power_sums, slack=512, kinds="c"),
    Subject("linalg.eig", of(square), seen=values_and_check, slack=512, kinds="fc"),
    Subject(
        "linalg.eigh", halves, numpy_half(np.linalg.eigh), seen=spectrum, slack=512
    ),
    Subject("linalg.eigvalsh", halves, numpy_half(np.linalg.eigvalsh), slack=512),
    Subject("linalg.qr", modes, seen=product_of_qr, slack=512),
    Subject("linalg.svd", singular_modes, seen=product_of_svd, slack=512),
    Subject("linalg.svd", symmetric_singular, seen=product_of_svd, slack=512),
    Subject("linalg.svdvals", of(matrices), slack=512),
    *fourier(),
]
