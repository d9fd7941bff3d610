"""Functions of buffers, of named axes and of shardings below `jax._src`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.experimental.sparse.util import SparseInfo
from verax.ir.avals import ShapedArray
from verax.jax.internals import compilation_cache, xla_bridge
from verax.jax.internals.functions import lax as below_lax, numpy, sparse, tree_util
from verax.jax.internals.types import dtypes, literals, prng, sharding_impls
from verax.rules.values.state import changing

MATRIX = np.array([[0, 2, 0], [3, 0, 4]], np.float32)
VECTOR = np.array([1, 2, 3], np.float32)
PRODUCT = (((1,), (0,)), ((), ()))


def same(actual: Any, expected: object) -> None:
    np.testing.assert_array_equal(np.asarray(actual), np.asarray(expected))


def test_sparse_arrays_as_their_buffers() -> None:
    nse = int(sparse._count_stored_elements(MATRIX))
    assert nse == 3
    same(sparse._count_stored_elements_per_batch(MATRIX, 1), [1, 2])
    info = SparseInfo(MATRIX.shape)
    data, indices = sparse._bcoo_fromdense(MATRIX, nse=nse)
    same(sparse._bcoo_todense(data, indices, spinfo=info), MATRIX)
    same(sparse._bcoo_extract(indices, MATRIX), data)
    out = sparse._bcoo_dot_general(
        data, indices, VECTOR, dimension_numbers=PRODUCT, lhs_spinfo=info
    )
    same(out, MATRIX @ VECTOR)
    columns, starts = sparse._bcoo_to_bcsr(
        indices, shape=MATRIX.shape, index_dtype=np.int32
    )
    same(starts, [0, 1, 3])
    same(sparse._bcsr_to_bcoo(columns, starts, shape=MATRIX.shape), indices)
    for part, due in zip(
        sparse._bcsr_fromdense(MATRIX, nse=nse), (data, columns, starts), strict=True
    ):
        same(part, due)


def test_matrices_as_their_buffers() -> None:
    info: Any = SparseInfo(MATRIX.shape)
    coo = sparse._coo_fromdense(MATRIX, nse=3)
    same(sparse._coo_todense(*coo, spinfo=info), MATRIX)
    csr = sparse._csr_fromdense(MATRIX, nse=3)
    shape = MATRIX.shape
    same(sparse._csr_todense(*csr, shape=shape), MATRIX)
    for part, due in zip(sparse._csr_to_coo(*csr[1:]), coo[1:], strict=True):
        same(part, due)
    same(sparse._coo_matvec(*coo, VECTOR, spinfo=info), MATRIX @ VECTOR)
    same(sparse._csr_matvec(*csr, VECTOR, shape=shape), MATRIX @ VECTOR)
    over = MATRIX.T @ MATRIX
    same(sparse._coo_matmat(*coo, MATRIX, spinfo=info, transpose=True), over)
    same(sparse._csr_matmat(*csr, MATRIX, shape=shape, transpose=True), over)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_where_an_extreme_is_along_a_named_axis(name: str) -> None:
    x = np.array([[1, 5, 2], [5, 0, 2], [0, 5, 2]], np.float32)
    index: Callable[..., Any] = getattr(below_lax, f"p{name}")
    out = verax.vmap(lambda row: index(row, "i"), axis_name="i", out_axes=None)(x)
    same(out, getattr(np, name)(x, 0))
    with pytest.raises(TypeError, match="only accept a single axis"):
        index(x, ("i", "j"))


def test_leaves_of_a_prefix_for_those_of_a_tree() -> None:
    def spread(prefix: object, tree: object) -> list[Any]:
        leaves, structure = verax.tree.flatten(prefix)
        whole = verax.tree.structure(tree)
        return tree_util.broadcast_flattened_prefix_with_treedef(
            leaves, structure, whole
        )

    assert spread((1, [2, 3]), ((0, {"a": 0}), [0, (0, None)])) == [1, 1, 2, 3]
    assert spread(7, {"a": (0, 0)}) == [7, 7]
    for prefix, tree in (((1, 2), [0, 0]), ((1, 2), 0), ((1,), (0, 0))):
        with pytest.raises(ValueError, match=r"prefix|expected"):
            spread(prefix, tree)


def test_meshes_without_devices() -> None:
    assert sharding_impls.EMPTY_ENV.physical_mesh == sharding_impls.empty_concrete_mesh
    assert sharding_impls.empty_abstract_mesh.empty


def test_reads_types_generators_and_platforms() -> None:
    x = vnp.arange(4.0)
    same(numpy.rewriting_take(x, slice(1, 3)), [1, 2])
    same(numpy.rewriting_take(x, 9, mode="fill", fill_value=-1), -1)
    assert dtypes._dtype_and_weaktype(2.0) == (np.dtype("float32"), True)
    assert dtypes._jax_type(np.dtype("int8"), True) is int
    assert dtypes._jax_type(np.dtype("int8"), False) == np.dtype("int8")
    assert prng.default_prng_impl().name == "threefry2x32"
    assert xla_bridge.canonicalize_platform("cpu") == "cpu"
    if not {"cuda", "rocm"} & set(xla_bridge._backends):
        with pytest.raises(RuntimeError, match="Unknown backend: 'gpu' requested"):
            xla_bridge.canonicalize_platform("gpu")


def test_arrays_with_a_type_of_their_own() -> None:
    weak = ShapedArray((2,), np.dtype("float32"), weak_type=True)
    x = literals.TypedNdArray(np.arange(2, dtype=np.float32), weak)
    assert x.aval == weak
    assert x.weak_type
    part: Any = x[:1]
    assert part.aval == ShapedArray((1,), np.dtype("float32"))
    same(vnp.asarray(x) + 1, [1, 2])


@pytest.mark.parametrize("kept", [True, False])
def test_whether_programs_are_kept(kept: bool, tmp_path: Path) -> None:
    folder = str(tmp_path) if kept else None
    with changing({"enable_compilation_cache": True, "compilation_cache_dir": folder}):
        assert compilation_cache.is_persistent_cache_enabled() == kept


def test_contexts_of_equations() -> None:
    (eqn,) = verax.make_jaxpr(lambda x: x + 1)(1.0).eqns
    with eqn.ctx.manager:
        assert eqn.primitive.name == "add"
