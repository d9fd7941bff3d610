"""Sparse functions give what dense ones give on the dense array.

One idea: a law for all of them: on drawn arrays (any number of batch, sparse and dense
dimensions, indices twice, padding that holds numbers, batch dimensions of 1 for all)
the dense array of the result is the result on the dense array, and so are compiled
calls, derivatives in both modes, and batches.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import frozen

import verax
import verax.numpy as vnp
from property_tests.levels import NIGHTLY, by_turns
from verax import lax
from verax.experimental import sparse
from verax.experimental.sparse.matmul import sparse_matmul_p
from verax.verify import check_primitive

SEEDS = range(4)
type Draw = np.random.Generator
type Pair = tuple[Callable[[Any], Any], Callable[[Any], Any]]


@frozen
class Shapes:
    """The shape of a drawn array, and how many dimensions are of which kind."""

    shape: tuple[int, ...]
    n_batch: int
    n_dense: int

    @property
    def sparse(self) -> range:
        return range(self.n_batch, len(self.shape) - self.n_dense)


def drawn_shapes(draw: Draw) -> Shapes:
    counts = [int(n) for n in draw.integers((0, 1, 0), (2, 4, 2))]
    shape = tuple([int(n) for n in draw.integers(1, 5, sum(counts))])
    return Shapes(shape, counts[0], counts[2])


def drawn_matrix(draw: Draw) -> Shapes:
    return Shapes((int(draw.integers(1, 6)), int(draw.integers(1, 6))), 0, 0)


def drawn_array(draw: Draw, s: Shapes, *, ones: bool = True) -> sparse.BCOO:
    """Elements some of which are twice, or outside; or the same for all batches."""
    batch, sizes = s.shape[: s.n_batch], [s.shape[d] for d in s.sparse]
    dense = s.shape[len(s.shape) - s.n_dense :]
    nse = int(draw.integers(0, math.prod(sizes) + 3))
    index_batch = [1] * s.n_batch if ones and draw.random() < 0.2 else batch
    indices = draw.integers(0, np.array(sizes), (*index_batch, nse, len(sizes)))
    outside = draw.random((*index_batch, nse, 1)) < 0.15
    indices = np.where(outside, sizes, indices).astype(np.int32)
    data = draw.standard_normal((*batch, nse, *dense)).astype(np.float32)
    return sparse.BCOO((data, indices), shape=s.shape)


def through(name: str, **options: Any) -> Pair:
    """A function of `BCOO` arrays and that of `lax`, with the same options."""
    ours, theirs = getattr(sparse, f"bcoo_{name}"), getattr(lax, name)
    return lambda x: ours(x, **options), lambda x: theirs(x, **options)


def transpose(draw: Draw, s: Shapes) -> Pair:
    kinds = range(s.n_batch), s.sparse, range(len(s.shape) - s.n_dense, len(s.shape))
    order = [int(d) for kind in kinds for d in draw.permutation(kind)]
    return through("transpose", permutation=order)


def part(draw: Draw, s: Shapes) -> Pair:
    ends = np.sort(draw.integers(0, np.array(s.shape) + 1, (2, len(s.shape))), 0)
    steps = draw.integers(1, 3, len(s.shape))
    return through(
        "slice",
        start_indices=ends[0].tolist(),
        limit_indices=ends[1].tolist(),
        strides=steps.tolist(),
    )


def dynamic_part(draw: Draw, s: Shapes) -> Pair:
    starts = draw.integers(-4, 5, len(s.shape)).tolist()
    sizes = draw.integers(0, np.array(s.shape) + 1).tolist()
    return through("dynamic_slice", start_indices=starts, slice_sizes=sizes)


def reverse(draw: Draw, s: Shapes) -> Pair:
    axes = np.flatnonzero(draw.random(len(s.shape)) < 0.5).tolist()
    return through("rev", dimensions=axes)


def total(draw: Draw, s: Shapes) -> Pair:
    axes = np.flatnonzero(draw.random(len(s.shape)) < 0.5).tolist()
    return lambda x: sparse.bcoo_reduce_sum(x, axes=axes), lambda x: x.sum(tuple(axes))


def reshape(draw: Draw, s: Shapes) -> Pair:
    count = math.prod([s.shape[d] for d in s.sparse])
    split = (count,) if draw.random() < 0.5 else (1, count, 1)
    ends = s.shape[: s.n_batch], s.shape[len(s.shape) - s.n_dense :]
    return through("reshape", new_sizes=(*ends[0], *split, *ends[1]))


def wider(draw: Draw, s: Shapes) -> Pair:
    return lambda x: sparse.bcoo_broadcast_in_dim(
        x, shape=(2, *s.shape), broadcast_dimensions=range(1, len(s.shape) + 1)
    ), lambda x: vnp.broadcast_to(x, (2, *s.shape))


def squeezed(draw: Draw, s: Shapes) -> Pair:
    return through(
        "squeeze", dimensions=[d for d, size in enumerate(s.shape) if size == 1]
    )


def sampled(draw: Draw, s: Shapes) -> Pair:
    return lambda x: sparse.bcoo_extract(x, x.todense()), lambda x: x


def sorted_indices(draw: Draw, s: Shapes) -> Pair:
    return lambda x: x.sort_indices(), lambda x: x


def summed(draw: Draw, s: Shapes) -> Pair:
    remove = bool(draw.random() < 0.5)
    nse = math.prod([s.shape[d] for d in s.sparse]) + 1
    return lambda x: x.sum_duplicates(nse=nse, remove_zeros=remove), lambda x: x


def relaid(draw: Draw, s: Shapes) -> Pair:
    n_batch = int(draw.integers(0, len(s.shape) + 1))
    n_dense = int(draw.integers(0, len(s.shape) + 1 - n_batch))
    return lambda x: x.update_layout(
        n_batch=n_batch, n_dense=n_dense, on_inefficient=None
    ), lambda x: x


def twice(draw: Draw, s: Shapes) -> Pair:
    d = int(draw.integers(0, len(s.shape) - s.n_dense))
    return lambda x: sparse.bcoo_concatenate(
        [x, -x, x], dimension=d
    ), lambda x: vnp.concatenate([x, -x, x], d)


def scaled(draw: Draw, s: Shapes) -> Pair:
    cut = int(draw.integers(0, len(s.shape) + 1))
    shape = [n if draw.random() < 0.5 else 1 for n in s.shape[cut:]]
    other = vnp.asarray(draw.uniform(1, 2, shape).astype(np.float32))
    return lambda x: x * other / (other + 1), lambda x: x * other / (other + 1)


def times_sparse(draw: Draw, s: Shapes) -> Pair:
    shape = [n if draw.random() < 0.7 else 1 for n in s.shape]
    n_batch = int(draw.integers(0, s.n_batch + 1))
    other = drawn_array(draw, Shapes(tuple(shape), n_batch, s.n_dense))
    return lambda x: x * other, lambda x: x * other.todense()


def sums(draw: Draw, s: Shapes) -> Pair:
    other = drawn_array(draw, s)
    return lambda x: x + other - x * 2, lambda x: x + other.todense() - x * 2


def powers(draw: Draw, s: Shapes) -> Pair:
    f = sparse.sparsify(lambda x: vnp.sin(x) ** 2 + vnp.expm1(-x))
    return f, lambda x: vnp.sin(x) ** 2 + vnp.expm1(-x)


def dot(draw: Draw, s: Shapes) -> Pair:
    over = [d for d in range(len(s.shape)) if draw.random() < 0.4 and d >= s.n_batch]
    batch = [d for d in range(s.n_batch) if draw.random() < 0.5]
    shape = [s.shape[d] for d in (*batch, *over)]
    free = int(draw.integers(0, len(shape) + 1)) if not batch else len(batch)
    shape.insert(free, 3)
    axes = [d for d in range(len(shape)) if d != free]
    numbers = ((over, axes[len(batch) :]), (batch, axes[: len(batch)]))
    other = vnp.asarray(draw.standard_normal(shape).astype(np.float32))
    return lambda x: sparse.bcoo_dot_general(
        x, other, dimension_numbers=numbers
    ), lambda x: lax.dot_general(x, other, numbers)


def left(draw: Draw, s: Shapes) -> Pair:
    other = vnp.asarray(draw.standard_normal((3, s.shape[0])).astype(np.float32))
    return lambda x: other @ x, lambda x: other @ x


def pair(draw: Draw, s: Shapes) -> Pair:
    other = drawn_array(draw, Shapes((s.shape[1], 3), 0, 0))
    return lambda x: x @ other, lambda x: x @ other.todense()


def vector(draw: Draw, s: Shapes) -> Pair:
    other = vnp.asarray(draw.standard_normal(s.shape[1]).astype(np.float32))
    return lambda x: x @ other, lambda x: x @ other


def by_rows(draw: Draw, s: Shapes) -> Pair:
    other = vnp.asarray(draw.standard_normal((s.shape[1], 2)).astype(np.float32))
    return lambda x: sparse.BCSR.from_bcoo(x) @ other, lambda x: x @ other


def rows(draw: Draw, s: Shapes) -> Pair:
    index = vnp.asarray(draw.integers(0, s.shape[0], (2, 1)))
    return lambda x: x[index], lambda x: x[index]


ANY: list[Callable[[Draw, Shapes], Pair]]
ANY = [transpose, part, dynamic_part, reverse, total, reshape, wider, squeezed]
ANY += [sampled, sorted_indices, summed, relaid, twice, scaled, times_sparse, sums]
ANY += [powers, dot]
MATRIX = (left, pair, vector, by_rows, rows)


def dense(x: Any) -> Any:
    return sparse.todense(x)


def near(result: Any, due: Any) -> None:
    np.testing.assert_allclose(result, due, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("seed", by_turns(SEEDS, 2, NIGHTLY))
@pytest.mark.parametrize("make", [*ANY, *MATRIX], ids=lambda f: f.__name__)
def test_sparse_is_dense(make: Callable[[Draw, Shapes], Pair], seed: int) -> None:
    draw = np.random.default_rng([seed, len(make.__name__), *make.__name__.encode()])
    s = drawn_matrix(draw) if make in MATRIX else drawn_shapes(draw)
    mat = drawn_array(draw, s, ones=make is not reshape)
    ours, theirs = make(draw, s)
    due = theirs(mat.todense())
    near(dense(ours(mat)), due)
    near(verax.jit(lambda x: dense(ours(x)))(mat), due)

    def f(data: Any) -> Any:
        return dense(ours(mat.with_data(data)))

    def g(data: Any) -> Any:
        return theirs(mat.with_data(data).todense())

    tangent = draw.standard_normal(mat.data.shape).astype(np.float32)
    near(*[verax.jvp(h, (mat.data,), (tangent,))[1] for h in (f, g)])
    cotangent = draw.standard_normal(due.shape).astype(np.float32)
    near(*[verax.vjp(h, mat.data)[1](cotangent)[0] for h in (f, g)])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("make", [*ANY, *MATRIX], ids=lambda f: f.__name__)
def test_batches_of_sparse_arrays(
    make: Callable[[Draw, Shapes], Pair], seed: int
) -> None:
    draw = np.random.default_rng([seed, *make.__name__.encode()])
    s = drawn_matrix(draw) if make in MATRIX else drawn_shapes(draw)
    stack = Shapes((3, *s.shape), s.n_batch + 1, s.n_dense)
    mats = drawn_array(draw, stack, ones=False)
    ours, theirs = make(draw, s)
    due = verax.vmap(theirs)(mats.todense())
    near(dense(verax.vmap(ours)(mats)), due)


@pytest.mark.parametrize("seed", SEEDS)
def test_matrix_products_on_the_host_and_as_sums(seed: int) -> None:
    """Large products on CPU are SciPy's; indices outside are padding there too."""
    draw = np.random.default_rng(seed)
    mat = drawn_array(draw, Shapes((40, 30), 0, 0))
    nse = 1 << 15
    indices = draw.integers(-1, (42, 31), (nse, 2)).astype(np.int32)
    indices = np.where((indices < 0).any(-1, keepdims=True), 99, indices)
    data = draw.standard_normal(nse).astype(np.float32)
    mat = sparse.BCOO((data, indices), shape=(40, 30))
    x = draw.standard_normal((30, 3)).astype(np.float32)
    due = np.asarray(mat.todense(), np.float64) @ x
    for actual in (mat @ x, verax.jit(lambda m: m @ x)(mat)):
        np.testing.assert_allclose(actual, due, rtol=1e-3, atol=1e-3)
    mats = sparse.BCSR.from_bcoo(mat)
    for actual in (mats @ x, verax.jit(lambda m: m @ x)(mats)):
        np.testing.assert_allclose(actual, due, rtol=1e-3, atol=1e-3)
    wide = verax.vmap(lambda v: mats @ v, 1, 1)(x)
    np.testing.assert_allclose(wide, due, rtol=1e-3, atol=1e-3)


@pytest.mark.slow
def test_the_row_of_products_keeps_the_laws() -> None:
    report = check_primitive(sparse_matmul_p)
    assert report, f"\n{report}"
