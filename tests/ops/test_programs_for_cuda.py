"""Programs of every kind, lowered for CUDA without a GPU.

XLA takes each module, and the plugin registers every kernel that one calls. Rows that
draw no calls of their own are in one of these programs::

    check_text(verax.jit(f).lower(*args, lowering_platforms=("cuda",)).as_text())
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import verax
import verax.numpy as vnp
from tests.ops.test_lowering_by_platform import LACKING, POOL, SEEDS, check_text
from verax import lax, nn, random
from verax.backend.lowering.stablehlo_io import parsed
from verax.custom_batching import custom_vmap
from verax.custom_derivatives import linear_call
from verax.experimental import checkify, io_callback, sparse
from verax.experimental.custom_partitioning import custom_partitioning
from verax.extend import MissingRule
from verax.ffi import ffi_call
from verax.ir.jaxpr import Jaxpr
from verax.lax import linalg
from verax.ops.table import PRIMITIVES
from verax.sharding import PartitionSpec as P
from verax.verify.random_programs import seed_case

F32, C64 = np.dtype(np.float32), np.dtype(np.complex64)
FLOAT8 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
SCALES = ml_dtypes.float8_e8m0fnu
type Program = tuple[Callable[..., Any], tuple[Any, ...]]


def of(*shape: int, dtype: Any = F32) -> Any:
    """The type of an argument."""
    return verax.ShapeDtypeStruct(shape, np.dtype(dtype))


SQUARE = of(4, 4)


def plus_one(x: Any) -> Any:
    return np.asarray(x) + 1


def printed(x: Any) -> Any:
    lax.dce_sink(x)
    verax.debug.print("{}", x)
    verax.debug.print("{}", x, ordered=True)
    return lax.fori_loop(0, 2, lambda i, y: (verax.debug.print("{}", y), y + i)[1], x)


def in_order(x: Any) -> Any:
    y = io_callback(plus_one, x, x, ordered=True)
    return lax.cond(y.sum() > 0, lambda z: io_callback(plus_one, z, z), lambda z: z, y)


def mapped_callback(x: Any) -> Any:
    def f(row: Any) -> Any:
        return verax.pure_callback(plus_one, row, row, vmap_method="expand_dims")

    return verax.vmap(f)(x)


def checked(x: Any) -> Any:
    checkify.check(vnp.all(x > 0), "not positive: {}", x)
    return vnp.log(x)


def collectives(x: Any) -> Any:
    def part(x: Any) -> Any:
        rows = lax.all_gather(x, "d", tiled=True)
        moved = lax.ppermute(lax.all_to_all(rows, "d", 0, 0, tiled=True), "d", [(0, 0)])
        total = lax.psum(moved, "d") + lax.axis_index("d") + lax.pmax(x, "d")
        return lax.psum_scatter(total, "d", tiled=True)

    mesh = verax.make_mesh((1,), ("d",))
    return verax.shard_map(
        part, mesh=mesh, in_specs=P("d"), out_specs=P("d"), check_vma=False
    )(x)


def collectives_back(x: Any) -> Any:
    return verax.grad(lambda x: vnp.sum(vnp.sin(collectives(x))))(x)


@custom_partitioning
def partitioned(x: Any) -> Any:
    return vnp.sin(x)


def per_device(mesh: Any, args: Any, result: Any) -> Any:
    """How a device computes its part."""
    places = tuple(arg.sharding for arg in args)
    return mesh, vnp.sin, result.sharding, places


partitioned.def_partition(partition=per_device, sharding_rule="i j -> i j")


def seen(x: Any) -> Any:
    verax.debug.inspect_array_sharding(x, callback=print)
    return partitioned(x)


@custom_vmap
def doubled(x: Any) -> Any:
    return x * 2


@doubled.def_vmap
def doubled_rows(size: int, batched: Any, x: Any) -> Any:
    return x + x, batched[0]


def loops_of_batches(x: Any) -> Any:
    def loop(row: Any) -> Any:
        return lax.while_loop(lambda c: c.sum() < 9, lambda c: c * 2 + 1, row)

    return verax.vmap(loop)(x), verax.vmap(verax.vmap(doubled))(x), doubled(x)


def with_rules(x: Any) -> Any:
    def solve(matvec: Any, b: Any) -> Any:
        return linear_call(lambda m, v: v / m, lambda m, v: v / m, 3.0, b)

    def solved(x: Any) -> Any:
        actual = lax.custom_linear_solve(lambda v: v * 3.0, x, solve, symmetric=True)
        root = lax.custom_root(
            lambda y: y - vnp.sin(x), x, lambda f, y: vnp.sin(x), lambda g, y: y
        )
        return (actual * root).sum()

    @verax.custom_vjp
    def halved(x: Any) -> Any:
        return x / 2

    halved.defvjp(lambda x: (x / 2, None), lambda _, ct: (ct / 2,))
    return verax.value_and_grad(lambda x: solved(halved(x)))(x)


def referring(x: Any) -> Any:
    ref = verax.new_ref(x)
    ref[0] = ref[1] * 2
    ref[...] += 1
    return verax.freeze(ref)


def called_again(x: Any) -> Any:
    exported = verax.export.export(verax.jit(vnp.tanh), platforms=["cpu", "cuda"])
    return exported(SQUARE).call(x)


def factors(x: Any) -> Any:
    h = linalg.householder_product
    taus = vnp.diagonal(x, axis1=-2, axis2=-1)
    return (
        *(linalg.cholesky(x @ x.mT.conj()), linalg.lu(x), h(x, taus), linalg.svd(x)),
        *(linalg.qr(x, pivoting=True), linalg.eigh(x), linalg.eig(x)),
        *(linalg.tridiagonal(x), linalg.tridiagonal_solve(taus, taus, taus, x)),
        *(vnp.linalg.inv(x), vnp.linalg.slogdet(x), vnp.linalg.qr(x)),
        *(linalg.geqrf(x), linalg.lu_pivots_to_permutation(linalg.lu(x)[1], 5)),
        verax.scipy.linalg.expm(x),
    )


def largest_eigenvalue(x: Any) -> Any:
    return vnp.linalg.eigh(x)[0].max()


def transforms(x: Any) -> Any:
    fft = vnp.fft
    return fft.fft(x), fft.rfft2(x.real), fft.irfft(x), fft.ifftn(x)


def sorts(x: Any) -> Any:
    best = lax.top_k(x, 2), lax.approx_max_k(x, 2)
    return vnp.sort(x), vnp.argsort(x), lax.sort((x, x), num_keys=2), best


def draws(seed: Any) -> Any:
    actual = []
    for impl in ("threefry2x32", "rbg", "unsafe_rbg"):
        key = random.fold_in(random.split(random.key(seed, impl=impl))[0], 3)
        actual += [random.normal(key, (5,)), random.permutation(key, 9)]
        actual += [random.gamma(key, 2.0), random.poisson(key, 2.0, (3,))]
    return actual


def precisions(x: Any) -> Any:
    kinds = ("default", "high", "highest", "tensorfloat32")
    presets = lax.DotAlgorithmPreset
    algorithms = (presets.TF32_TF32_F32_X3, presets.BF16_BF16_F32_X9)
    return [lax.dot(x, x, precision=p) for p in (*kinds, *algorithms)]


def to_host(x: Any) -> Any:
    device = verax.devices()[0]
    kinds = ("pinned_host", "device")
    places = [
        verax.sharding.SingleDeviceSharding(device, memory_kind=kind) for kind in kinds
    ]
    return verax.device_put(verax.device_put(x, places[0]) + 0, places[1])


def sparse_products(x: Any) -> Any:
    matrix = sparse.BCOO.fromdense(x, nse=5)
    rows = sparse.BCSR.fromdense(x, nse=5)
    return matrix @ x, rows @ x[0], sparse.bcoo_todense(matrix)


def foreign(x: Any) -> Any:
    pivots = vnp.arange(4, dtype=vnp.int32)
    kind = verax.ShapeDtypeStruct((4,), np.dtype(np.int32))
    return ffi_call("cu_lu_pivots_to_permutation", kind)(pivots), x


def trained(x: Any) -> Any:
    def loss(w: Any) -> Any:
        hidden = lax.scan(lambda c, y: (nn.gelu(c @ w + y), c), x[0], x)[1]
        return nn.logsumexp(verax.checkpoint(nn.softmax)(hidden))

    return verax.hessian(loss)(x)


def logged(x: Any) -> Any:
    same = verax.custom_gradient(
        lambda x: (x, lambda ct: (ct, {"ct": ct})), with_logs=True
    )
    return verax.vjp(same, x)[1].with_logs(x), verax.vjp(same, x)[1](x)


def small_floats(x: Any, y: Any) -> Any:
    product = lax.dot(x, y, preferred_element_type=F32)
    return product, x.astype(vnp.float16) + 1, lax.bitcast_convert_type(y, vnp.uint8)


PROGRAMS: Mapping[str, Program] = {
    "callback": (lambda x: verax.pure_callback(plus_one, x, x), (SQUARE,)),
    "callbacks of a batch": (mapped_callback, (SQUARE,)),
    "effects in order": (in_order, (SQUARE,)),
    "prints": (printed, (SQUARE,)),
    "errors as values": (checkify.checkify(checked), (SQUARE,)),
    "collectives": (collectives, (SQUARE,)),
    "collectives, back": (collectives_back, (SQUARE,)),
    "partitioning": (seen, (SQUARE,)),
    "loops of batches": (loops_of_batches, (SQUARE,)),
    "rules of users": (with_rules, (SQUARE,)),
    "references": (referring, (SQUARE,)),
    "exported": (called_again, (SQUARE,)),
    "factors": (factors, (SQUARE,)),
    "factors, complex": (factors, (of(4, 4, dtype=C64),)),
    "factors, double": (factors, (of(2, 4, 4, dtype=np.complex128),)),
    "gradient of eigenvalues": (verax.grad(largest_eigenvalue), (SQUARE,)),
    "fft": (transforms, (of(4, 6, dtype=C64),)),
    "fft, double": (transforms, (of(2, 3, 4, 5, dtype=np.complex128),)),
    "sort": (sorts, (of(3, 5),)),
    "sort, bfloat16": (sorts, (of(3, 5, dtype=ml_dtypes.bfloat16),)),
    "random": (draws, (of(dtype=np.uint32),)),
    "precision": (precisions, (SQUARE,)),
    "float8": (small_floats, tuple([of(16, 16, dtype=d) for d in FLOAT8])),
    "int4": (
        lambda x: lax.dot(x, x, preferred_element_type=vnp.int32),
        (of(16, 16, dtype=ml_dtypes.int4),),
    ),
    "scaled products": (
        lambda x, s: nn.scaled_matmul(x, x, s, s),
        (of(1, 32, 32, dtype=FLOAT8[0]), of(1, 32, 1, dtype=SCALES)),
    ),
    "attention": (
        lambda q: nn.dot_product_attention(q, q, q, is_causal=True),
        (of(2, 8, 2, 16, dtype=np.float16),),
    ),
    "memories": (to_host, (SQUARE,)),
    "sparse": (sparse_products, (SQUARE,)),
    "foreign": (foreign, (SQUARE,)),
    "training": (trained, (SQUARE,)),
    "logs": (logged, (SQUARE,)),
}
COLLECTIVES = (
    *("all_gather", "all_to_all", "axis_index", "pcast", "ppermute", "psum"),
    *("reduce_scatter", "spread", "collect"),
)
# Rows that no program here holds when it is lowered.
ELSEWHERE = {
    "check": "a program cannot raise: test_checkify has its error",
    "custom_vjp_linear": "it refuses to be lowered: there is no forward mode",
    "dim_as_value": "it is in programs with symbols alone: see test_symbolic_sizes",
    **dict.fromkeys(COLLECTIVES, "they are in programs over several devices alone"),
    **dict.fromkeys(
        ("freeze", "get_ref", "new_ref", "set_ref"), "they are values then"
    ),
}


def symbolic(x: Any) -> Any:
    return x.sum() / x.shape[0], linalg.cholesky(x @ x.mT), vnp.sort(x)


def test_symbolic_sizes() -> None:
    (n,) = verax.export.symbolic_shape("n")
    actual = verax.export.export(verax.jit(symbolic), platforms=["cuda"])(of(n, n))
    assert parsed(actual.mlir_module()).operation.verify()
    assert "cusolver_potrf_ffi" in actual.mlir_module()


@pytest.fixture(autouse=True)
def wide() -> Iterator[None]:
    """Double precision is there."""
    with verax.enable_x64(True):
        yield


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    f, args = PROGRAMS[name]
    check_text(verax.jit(f).trace(*args).lower(lowering_platforms=("cuda",)).as_text())


def test_donated_arguments_are_reused() -> None:
    f = verax.jit(lambda x, y: (x + y, y.sum()), donate_argnums=0)
    text = f.trace(SQUARE, SQUARE).lower(lowering_platforms=("cuda",)).as_text()
    check_text(text)
    assert "tf.aliasing_output = 0" in text


def test_a_program_that_a_gpu_cannot_run_says_so() -> None:
    for f in (verax.scipy.linalg.schur, verax.scipy.linalg.sqrtm):
        with pytest.raises(MissingRule, match="schur has no lowering for cuda"):
            verax.jit(f).trace(SQUARE).lower(lowering_platforms=("cuda",))


def names_in(jaxpr: Jaxpr) -> set[str]:
    """The primitives of a program, of those inside and of those that stand aside."""
    actual = {eqn.primitive.name for eqn in jaxpr.eqns}
    return actual.union(
        *[names_in(j) for eqn in jaxpr.eqns for j in eqn.params.subjaxprs()]
    )


def test_every_row_is_lowered_by_something() -> None:
    """Rows that draw calls are lowered one by one in test_lowering_by_platform."""
    programs = [verax.jit(f).trace(*args).jaxpr.jaxpr for f, args in PROGRAMS.values()]
    programs += [seed_case(POOL, seed).jaxpr for seed in SEEDS]
    actual = set().union(*map(names_in, programs))
    drawn = {name for name, row in PRIMITIVES.items() if row.draw is not None}
    elsewhere = {*LACKING["cuda"], *ELSEWHERE}
    assert sorted(PRIMITIVES.keys() - actual - drawn - elsewhere) == []
    assert sorted(actual & elsewhere) == []
