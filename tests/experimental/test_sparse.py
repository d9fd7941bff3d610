"""`verax.experimental.sparse`: what is particular about sparse arrays.

That sparse functions give what dense ones do is held by `property_tests/test_sparse.py`
on generated arrays.
"""

import operator
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import verax
import verax.numpy as vnp
from verax import lax
from verax.experimental import sparse
from verax.extend import PRIMITIVES

MATRIX = np.array([[0, 1, 0, 2], [3, 0, 0, 0], [0, 0, 4, 0]], np.float32)
VECTOR = np.array([1, 10, 100, 1000], np.float32)
FORMATS = [sparse.BCOO, sparse.BCSR, sparse.COO, sparse.CSR, sparse.CSC]


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
def test_formats_hold_a_matrix_and_multiply(kind: Any) -> None:
    mat = kind.fromdense(MATRIX)
    assert (mat.shape, mat.nse, mat.ndim, mat.size, len(mat)) == ((3, 4), 4, 2, 12, 3)
    assert mat.dtype == np.float32
    np.testing.assert_array_equal(mat.todense(), MATRIX)
    for run in (operator.matmul, verax.jit(operator.matmul)):
        np.testing.assert_array_equal(run(mat, VECTOR), MATRIX @ VECTOR)
        pair = np.stack([VECTOR, -VECTOR], 1)
        np.testing.assert_array_equal(run(mat, pair), MATRIX @ pair)
    with pytest.raises(TypeError, match="unhashable"):
        hash(mat)


@pytest.mark.parametrize("kind", FORMATS)
def test_formats_are_pytrees(kind: Any) -> None:
    mat = kind.fromdense(MATRIX)
    double = verax.tree.map(lambda x: x, mat)
    assert type(double) is kind
    assert double.shape == mat.shape
    out = verax.jit(lambda m: m)(mat)
    np.testing.assert_array_equal(out.todense(), MATRIX)


def test_repr_says_the_layout() -> None:
    mat = sparse.BCOO.fromdense(np.ones((2, 3, 4)), n_batch=1, n_dense=1)
    assert repr(mat) == "BCOO(float32[2, 3, 4], nse=3, n_batch=1, n_dense=1)"
    mat.indices = vnp.zeros(())
    assert repr(mat) == "BCOO(<invalid>)"


def test_padding_counts_as_zero_whatever_it_holds() -> None:
    data, indices = vnp.array([1, 2, 100, 100]), vnp.array([[1], [2], [5], [5]])
    mat = sparse.BCOO((data, indices), shape=(5,))
    dense = np.array([0, 1, 2, 0, 0])
    ones = vnp.ones(5, int)
    np.testing.assert_array_equal(mat.todense(), dense)
    np.testing.assert_array_equal(mat.sum_duplicates().todense(), dense)
    assert int(mat.sum()) == int(mat @ ones) == int(ones @ mat) == 3
    joined = sparse.bcoo_concatenate([mat, mat], dimension=0)
    np.testing.assert_array_equal(joined.todense(), np.concatenate([dense, dense]))
    np.testing.assert_array_equal(mat.reshape(5, 1).todense(), dense[:, None])
    np.testing.assert_array_equal(sparse.bcoo_rev(mat, [0]).todense(), dense[::-1])


def test_duplicates_are_added_before_what_is_not_linear() -> None:
    mat = sparse.BCOO((vnp.array([1.0, 2.0]), vnp.array([[1], [1]])), shape=(3,))
    np.testing.assert_array_equal((mat**2).todense(), [0, 9, 0])
    np.testing.assert_array_equal((mat * mat).todense(), [0, 9, 0])
    assert (-mat).indices is mat.indices
    assert mat.sum_duplicates().nse == 1


def test_vmap_takes_a_batch_dimension_off() -> None:
    stack = np.stack([MATRIX, 2 * MATRIX])
    mats = sparse.BCOO.fromdense(stack, n_batch=1)

    def product(mat: Any) -> Any:
        assert (mat.shape, mat.n_batch) == ((3, 4), 0)
        return mat @ VECTOR, mat

    y, same = verax.vmap(product)(mats)
    np.testing.assert_array_equal(y, stack @ VECTOR)
    assert (same.shape, same.n_batch) == ((2, 3, 4), 1)
    _, ys = lax.scan(lambda carry, mat: (carry, mat @ VECTOR), 0.0, mats)
    np.testing.assert_array_equal(ys, stack @ VECTOR)


def test_gradients_have_the_indices_of_the_matrix() -> None:
    mat = sparse.BCOO.fromdense(MATRIX)
    slope = sparse.grad(lambda m, v: ((m @ v) ** 2).sum())(mat, VECTOR)
    dense = verax.grad(lambda m: ((m @ VECTOR) ** 2).sum())(vnp.asarray(MATRIX))
    assert isinstance(slope, sparse.BCOO)
    np.testing.assert_allclose(slope.todense(), np.where(MATRIX != 0, dense, 0))
    rows = sparse.jacrev(lambda m: m @ VECTOR)(mat)
    columns = sparse.jacfwd(lambda m: m @ VECTOR)(mat)
    assert rows.shape == columns.shape == (3, 3, 4)
    np.testing.assert_array_equal(rows.todense(), columns.todense())


def test_sparsify_takes_rules_of_the_users_own() -> None:
    mat = sparse.BCOO.fromdense(VECTOR - 10)

    def f(x: Any) -> Any:
        return vnp.cos(x)

    with pytest.raises(NotImplementedError, match="cos is not implemented because"):
        sparse.sparsify(f)(mat)
    rules = sparse.RULES | {
        PRIMITIVES["cos"]: lambda evaluate, params, x: [vnp.cos(x.todense())]
    }
    out = sparse.sparsify(f, rules=rules)(mat)
    np.testing.assert_array_equal(out, vnp.cos(VECTOR - 10))


def test_products_with_what_is_broadcast_make_no_dense_matrix() -> None:
    size = 1 << 20
    indices = np.array([[0, 5], [size - 1, 7]], np.int32)
    mat = sparse.BCOO((np.ones(2, np.float32), indices), shape=(size, size))
    row = np.arange(size, dtype=np.float32)
    scaled = sparse.sparsify(lambda m, v: m * v / 2)(mat, row)
    np.testing.assert_array_equal(scaled.data, [2.5, 3.5])
    np.testing.assert_array_equal((mat * row).data, [5, 7])


def test_sparsify_of_branches_wants_results_of_one_kind() -> None:
    mat = sparse.BCOO.fromdense(VECTOR)
    pick = sparse.sparsify(
        lambda x, y: lax.cond(True, lambda x, y: x, lambda x, y: y, x, y)
    )
    np.testing.assert_array_equal(pick(mat, mat).todense(), VECTOR)
    with pytest.raises(TypeError, match="same type structure"):
        pick(mat, VECTOR)


def test_layouts_that_store_zeros_are_asked_for() -> None:
    mat = sparse.BCOO.fromdense(MATRIX)
    with pytest.raises(sparse.SparseEfficiencyError, match="n_batch grows from 0 to 1"):
        mat.update_layout(n_batch=1)
    with pytest.warns(sparse.SparseEfficiencyWarning, match="n_dense grows"):
        mat.update_layout(n_dense=1, on_inefficient="warn")
    batched = mat.update_layout(n_batch=1, on_inefficient=None)
    np.testing.assert_array_equal(batched.todense(), MATRIX)


@pytest.mark.parametrize("kind", ["coo", "csr", "csc"])
def test_matrices_of_scipy(kind: str) -> None:
    mat = scipy.sparse.random_array((5, 7), density=0.4, format=kind, dtype=np.float32)
    for cls in (sparse.BCOO, sparse.BCSR):
        actual = cls.from_scipy_sparse(mat)
        np.testing.assert_array_equal(actual.todense(), mat.toarray())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sparse.BCOO((np.ones(3), np.zeros((2, 1), int)), shape=(4,)), "data"),
        (lambda: sparse.BCOO((np.ones(3), np.zeros((3, 2), int)), shape=(4,)), "fit"),
        (lambda: sparse.BCSR.fromdense(np.ones(3)), "2 sparse dimensions"),
        (lambda: sparse.COO.fromdense(np.ones(3)), "matrix"),
        (lambda: sparse.eye(3, sparse_format="dok"), "sparse_format must be one of"),
        (lambda: sparse.eye(3).reshape(2, 5), "cannot"),
        (lambda: sparse.bcoo_squeeze(sparse.eye(3), dimensions=(0,)), "size 1"),
        (lambda: sparse.bcoo_concatenate([], dimension=0), "one or more"),
        (lambda: sparse.random_bcoo(verax.random.key(0), (3,), nse=4), "nse=4"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_indices_are_integers() -> None:
    with pytest.raises(TypeError, match="must be integers"):
        sparse.BCOO((np.ones(3), np.ones((3, 1))), shape=(4,))


def test_solutions_and_their_derivatives() -> None:
    dense = np.eye(4, dtype=np.float32) * 3 + np.diag(np.ones(3, np.float32), 1)
    mat = sparse.CSR.fromdense(dense)

    def sparsely(data: Any, b: Any) -> Any:
        return sparse.linalg.spsolve(data, mat.indices, mat.indptr, b)

    def densely(data: Any, b: Any) -> Any:
        return vnp.linalg.solve(
            sparse.CSR((data, *mat._bufs[1:]), shape=(4, 4)).todense(), b
        )

    b = vnp.asarray(VECTOR)
    for f in (sparsely, verax.jit(sparsely)):
        np.testing.assert_allclose(f(mat.data, b), densely(mat.data, b), rtol=1e-5)
    for number in (0, 1):
        for jacobian in (verax.jacfwd, verax.jacrev):
            actual = jacobian(sparsely, number)(mat.data, b)
            due = jacobian(densely, number)(mat.data, b)
            np.testing.assert_allclose(actual, due, rtol=1e-4, atol=1e-4)
    many = vnp.stack([b, 2 * b])
    actual = verax.vmap(sparsely, (None, 0))(mat.data, many)
    np.testing.assert_allclose(actual[1], 2 * actual[0], rtol=1e-6)


@pytest.mark.slow
def test_largest_eigenvalues() -> None:
    values = np.arange(1.0, 31.0, dtype=np.float32) ** 2
    mat = sparse.BCOO.fromdense(np.diag(values))
    start = np.random.default_rng(0).standard_normal((30, 2)).astype(np.float32)
    actual, vectors, _ = sparse.linalg.lobpcg_standard(lambda x: mat @ x, start)
    np.testing.assert_allclose(actual, [900, 841], rtol=1e-5)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(2), atol=1e-5)


@pytest.mark.slow
def test_equal_eigenvalues_are_in_order() -> None:
    start = np.random.default_rng(0).standard_normal((60, 9)).astype(np.float32)
    values, _, _ = sparse.linalg.lobpcg_standard(np.eye(60, dtype=np.float32), start)
    assert (np.diff(values) <= 0).all()
    np.testing.assert_allclose(values, 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((60, 60), (60, 0)), "search dim > 0"),
        (((40, 60), (60, 2)), r"A must be \(60, 60\)"),
        (((60, 60), (60, 12)), "matrix dim"),
    ],
)
def test_what_eigenvalues_are_not_computed_of(shapes: Any, message: str) -> None:
    mat, start = (np.ones(s, np.float32) for s in shapes)
    with pytest.raises(ValueError, match=message):
        sparse.linalg.lobpcg_standard(mat, start)


def test_products_with_arrays_without_elements() -> None:
    data, indices = vnp.array([2.0, 3.0]), vnp.array([[0, 0], [3, 0]])
    wide = sparse.BCOO((data, indices), shape=(3, 0))
    assert (wide @ vnp.zeros(0)).tolist() == [0, 0, 0]
    assert (wide @ vnp.zeros((0, 2))).shape == (3, 2)
    assert (wide.T @ vnp.ones(3)).shape == (0,)
    slope = verax.grad(lambda d: (wide.with_data(d) @ vnp.zeros(0)).sum())(data)
    assert slope.tolist() == [0, 0]


def test_padding_that_holds_nans_is_not_in_products() -> None:
    data = vnp.array([2.0, np.inf, np.nan])
    mat = sparse.BCOO((data, vnp.array([[0, 1], [0, 2], [3, 0]])), shape=(3, 2))
    x = vnp.array([1.0, 10.0])
    product = verax.jit(lambda m, x: m @ x)
    assert (mat @ x).tolist() == product(mat, x).tolist() == [20, 0, 0]


def test_what_compressed_rows_leave_out_is_padding_at_either_end() -> None:
    data, cols = vnp.array([7.0, 1.0, 2.0, 9.0]), vnp.array([0, 0, 1, 1])
    mat = sparse.BCSR((data, cols, vnp.array([1, 2, 3])), shape=(2, 2))
    product = verax.jit(lambda m, x: m @ x)
    for actual in (mat @ vnp.ones(2), product(mat, vnp.ones(2))):
        assert actual.tolist() == [1, 2]
    actual = verax.grad(lambda d: (mat.with_data(d) @ vnp.ones(2)).sum())(data)
    assert actual.tolist() == [0, 1, 1, 0]
