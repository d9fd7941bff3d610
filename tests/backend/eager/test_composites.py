"""What is remembered of a function is what it gives, whatever came before."""

import itertools
from typing import Any, cast

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.api.tracing.apply import ENGINE
from verax.backend.eager.composites import recipe, remembered
from verax.backend.eager.interpreter import planned
from verax.backend.runtime.metrics import RECORDER
from verax.ir.jaxpr import NO_PARAMS
from verax.numpy.linalg.outer_products import vector_product
from verax.ops.elementwise.arith import sign_p
from verax.ops.elementwise.convert import ConvertParams, convert_element_type_p
from verax.ops.elementwise.remainder import rem_p
from verax.ops.elementwise.select import select_n_p
from verax.rules.rows.eager_costs import HUGE
from verax.rules.rows.row import Row
from verax.rules.values.state import State

FUNCTIONS = (
    vnp.sum, vnp.prod, vnp.max, vnp.min, vnp.ptp, vnp.all, vnp.any, vnp.count_nonzero,
    vnp.mean, vnp.var, vnp.std, vnp.argmax, vnp.argmin, vnp.cumsum, vnp.cumprod,
    vnp.sort, vnp.argsort, vnp.linalg.norm, verax.nn.softmax, verax.nn.log_softmax,
)  # fmt: skip
ARRAYS = (
    np.array([[1.5, -0.0, 0.0], [np.nan, -2.0, np.inf]], np.float32),
    np.arange(6, dtype=np.int32).reshape(2, 3),
    np.array([[True, False, True], [False, False, True]]),
    np.array([[1, 2, -3], [3, 3, 0]], np.float16),
    np.array([[1 + 2j, 0, -1j], [3, 3, 0]], np.complex64),
)


def outcome(function: Any, *args: Any, **kwargs: Any) -> tuple[object, object]:
    """The result as type and bytes, or the error."""
    try:
        actual = function(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)
    return actual.aval, np.asarray(actual).tobytes()


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("array", ARRAYS, ids=lambda x: x.dtype.name)
@pytest.mark.parametrize("axis", [None, 0, -1, 2, 1.0, True])
def test_the_remembered_call_is_the_call(
    function: Any, array: np.ndarray, axis: Any
) -> None:
    x = vnp.asarray(array)
    plain = outcome(function.__wrapped__, x, axis=axis)
    for _ in range(2):
        assert outcome(function, x, axis=axis) == plain
        assert outcome(function, x, axis) == outcome(function.__wrapped__, x, axis)


def cache_info() -> Any:
    return cast(Any, recipe).cache_info()


def test_what_is_written_down_is_used_again() -> None:
    x = vnp.arange(5.0)
    before = cache_info()
    first, second = vnp.mean(x), vnp.mean(x + 1)
    after = cache_info()
    assert (first.item(), second.item()) == (2.0, 3.0)
    assert after.hits > before.hits


def test_equal_arguments_of_other_classes_are_other_calls() -> None:
    x = vnp.ones((2, 3))
    assert vnp.sum(x, axis=1).shape == (2,)
    with pytest.raises(TypeError):
        vnp.sum(x, axis=1.0)  # type: ignore[arg-type]  # that is the point
    assert vnp.sum(x, axis=(0, 1)).shape == ()
    with pytest.raises(TypeError):
        vnp.sum(x, axis=(0, 1.0))  # type: ignore[arg-type]  # the same


def test_the_configuration_is_part_of_the_call() -> None:
    x = vnp.arange(3, dtype=vnp.uint8)
    assert vnp.sum(x).dtype == vnp.uint32
    with verax.enable_x64(True):
        assert vnp.sum(x).dtype == vnp.uint64
    assert vnp.sum(x).dtype == vnp.uint32


def test_arrays_among_the_arguments_and_transformations() -> None:
    x = vnp.arange(4.0)
    mask = x > 1
    assert vnp.mean(x, where=mask).item() == 2.5
    assert vnp.mean(x, where=~mask).item() == 0.5
    assert verax.grad(vnp.mean)(x).tolist() == [0.25] * 4
    assert verax.vmap(vnp.sum)(vnp.ones((3, 2))).tolist() == [2.0] * 3
    assert verax.jit(vnp.std)(x).item() == pytest.approx(vnp.std(x).item())


def test_a_sum_of_negative_zeros_is_zero() -> None:
    x = vnp.array([-0.0, -0.0])
    assert not np.signbit(np.asarray(vnp.sum(x)))
    assert not np.signbit(np.asarray(vnp.sum(vnp.stack([x, x]), axis=0))).any()


def test_small_and_large_arrays_agree() -> None:
    x = vnp.ones(1 << 16, vnp.int32)
    assert vnp.sum(x).item() == 2 * vnp.sum(x[: 1 << 15]).item() == 1 << 16


def test_defaults_given_as_keywords_of_the_array() -> None:
    x = vnp.arange(3.0)
    assert vnp.sum(a=x).item() == vnp.sum(x).item()


def floats(*shape: int) -> verax.Array:
    values = np.random.default_rng(len(shape)).standard_normal(shape)
    return vnp.asarray(values.astype(np.float32))


A, B, V, ROWS = floats(4, 4), floats(4, 4) + 3, floats(4), vnp.array([[2, 0, -1, 3]])
CALLS: dict[str, tuple[Any, ...]] = {
    "isclose": (vnp.isclose, A, B),
    "allclose": (vnp.allclose, A, V),
    "array_equal": (vnp.array_equal, A, A),
    "floor_divide": (vnp.floor_divide, A, 2),
    "remainder": (vnp.remainder, ROWS, 3),
    "of arrays": (vnp.remainder, A, V),
    "divmod": (vnp.divmod, A, B),
    "outer": (vnp.outer, V, V),
    "cross": (vector_product, A[:, :3], B[:, :3], -1, -1, -1),
    "kron": (vnp.kron, A, V),
    "roll": (vnp.roll, A, 2, 1),
    "tril": (vnp.tril, A, -1),
    "diag": (vnp.diag, V, 1),
    "split": (vnp.split, A, 2),
    "diff": (vnp.diff, A, 2),
    "interp": (vnp.interp, V, vnp.arange(4.0), V),
    "take": (vnp.take, A, ROWS, 0),
    "take_along_axis": (vnp.take_along_axis, A, ROWS, 0),
    "median": (vnp.median, A, 1),
    "polyval": (vnp.polyval, V, A),
    "nanmax": (vnp.nanmax, vnp.log(A)),
    "clip": (vnp.clip, A, -1, 1),
    "einsum": (vnp.einsum, "ij,jk->ik", A, B),
    "solve": (vnp.linalg.solve, A, V),
    "det": (vnp.linalg.det, A),
    "slogdet": (vnp.linalg.slogdet, A),
    "gelu": (verax.nn.gelu, A),
    "relu": (verax.nn.relu, A),
    "one_hot": (verax.nn.one_hot, ROWS[0], 4),
    "logsumexp": (verax.nn.logsumexp, A, 1),
    "xlogy": (verax.scipy.special.xlogy, A, B),
}


def leaves(function: Any, *args: Any) -> list[tuple[object, object]]:
    actual = verax.tree.leaves(function(*args))
    return [(x.aval, np.asarray(x).tobytes()) for x in actual]


@pytest.mark.parametrize("call", CALLS)
def test_several_arrays_and_several_results(call: str) -> None:
    function, *args = CALLS[call]
    plain = leaves(function.__wrapped__, *args)
    tree = verax.tree.structure(function.__wrapped__(*args))
    for _ in range(2):
        assert leaves(function, *args) == plain
        assert verax.tree.structure(function(*args)) == tree


@pytest.mark.slow
def test_large_arrays_are_computed_by_one_program() -> None:
    x, y = floats(1 << 16), floats(1 << 16) + 2
    calls: tuple[tuple[Any, ...], ...] = (
        (vnp.var, x),
        (vnp.isclose, x, y),
        (vnp.floor_divide, x, y),
        (verax.nn.gelu, x),
        (verax.nn.softmax, x.reshape(256, 256)),
        (vnp.divmod, x, 3),
        (vnp.median, x),
    )
    for function, *args in calls:
        due = verax.tree.leaves(function.__wrapped__(*args))
        for got, want in zip(verax.tree.leaves(function(*args)), due, strict=True):
            assert got.aval is want.aval
            np.testing.assert_allclose(
                np.asarray(got), np.asarray(want), rtol=2e-5, atol=2e-6
            )


def test_whole_numbers_are_remembered_if_they_are_few() -> None:
    x = vnp.arange(200)
    before = cache_info().misses
    for n in range(60, 70):
        assert vnp.remainder(x, n).tolist() == (np.arange(200) % n).tolist()
        assert vnp.remainder(x, np.int32(n)).tolist() == vnp.remainder(x, n).tolist()
    assert cache_info().misses > before
    assert vnp.floor_divide(x, True).tolist() == x.tolist()


def test_results_that_do_not_depend_on_values() -> None:
    x = floats(3)
    same = remembered(lambda x: vnp.arange(3) + 0 * vnp.arange(3))
    first: Any = same(x)
    second = same(x)
    first.delete()
    assert second.tolist() == [0, 1, 2]
    assert not np.asarray(second).flags.writeable


def test_deleted_arrays_raise_where_functions_are_remembered() -> None:
    for x in (floats(4), floats(1 << 16)):
        vnp.isclose(x, x)
        y: Any = x + 0
        y.delete()
        with pytest.raises(RuntimeError, match="deleted"):
            vnp.isclose(x, y)


@pytest.mark.parametrize("n", [8, HUGE])
def test_costly_rows_are_compiled_where_they_are_large(n: int) -> None:
    x, y = vnp.arange(n) - n // 2, vnp.arange(n)[::-1]
    f = x.astype(np.float32)
    operations: tuple[tuple[Row[Any], Any, Any], ...] = (
        (select_n_p, NO_PARAMS, (x < y, x, y)),
        (rem_p, NO_PARAMS, (x, vnp.int32(7))),
        (sign_p, NO_PARAMS, (f,)),
        (convert_element_type_p, ConvertParams(np.dtype(np.int32)), (f,)),
    )
    for row, params, args in operations:
        plan = planned(ENGINE, row, params, *[a.aval for a in args])
        assert (plan.evaluate is None) is (n == HUGE)
        got = np.asarray(row.call(params, *args))
        assert row.evaluate is not None
        [due] = row.evaluate(ENGINE, params, [np.asarray(a) for a in args])
        np.testing.assert_array_equal(got, due)


CONDITIONS = (
    np.array([True, False, True]),
    np.array([0, 3, -1], np.int32),
    np.array([np.nan, -0.0, 2.0], np.float32),
    np.array([[1.0], [0.0]], np.float32),
    np.array(True),
)
CHOICES = (
    np.array([1.0, -0.0, np.inf], np.float32),
    np.array([4, 5, 6], np.int32),
    np.array([[1j], [2.0]], np.complex64),
    np.float32(7.0),
)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(CONDITIONS)))
def test_where_of_arrays_is_what_a_program_makes_of_it(number: int) -> None:
    condition: Any = vnp.asarray(CONDITIONS[number])
    weak = vnp.asarray(2.5)
    choices: list[Any] = [weak, *map(vnp.asarray, CHOICES)]
    for x, y in itertools.product(choices, choices[:2]):
        due: Any = verax.jit(vnp.where)(condition, x, y)
        for _ in range(2):
            got: Any = vnp.where(condition, x, y)
            assert got.aval is due.aval
            assert got.numpy().tobytes() == due.numpy().tobytes()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "complex64"])
@pytest.mark.parametrize("axis", [None, 0, (0, 1)])
def test_sums_of_negative_zeros_are_zeros(dtype: str, axis: Any) -> None:
    x = -vnp.zeros((2, 3), dtype)
    for total in (vnp.sum(x, axis=axis), verax.jit(vnp.sum)(x)):
        assert total.dtype == dtype
        parts = np.asarray(total).astype(np.complex64)
        assert not np.signbit(parts.real).any()
        assert not np.signbit(parts.imag).any()


def test_joining_like_arrays_checks_what_it_is_told() -> None:
    x = vnp.ones((2, 3))
    assert vnp.concatenate([x, x]).shape == (4, 3)
    assert vnp.concatenate((x, x), axis=1).shape == (2, 6)
    assert vnp.concatenate((x, x), axis=-1).shape == (2, 6)
    assert vnp.concatenate((x, x), axis=None).shape == (12,)
    for axis in (2, -3):
        with pytest.raises(ValueError, match="out of bounds"):
            vnp.concatenate((x, x), axis=axis)
    with pytest.raises(ValueError, match="at least one dimension"):
        vnp.concatenate([vnp.float32(1), vnp.float32(1)])


def stepped(x: Any, n: int) -> Any:
    """What adds to itself in a loop."""
    actual = verax.lax.while_loop(lambda y: (y < n).any(), lambda y: y + x, x * 0)
    return {"found": actual, "more": actual - x}


def test_loops_are_compiled_with_what_is_around_them() -> None:
    x = vnp.array([1.0, 2.0, 3.0])
    call = remembered(stepped)
    for n in (5, 7, 5, 7):
        due = verax.jit(stepped, static_argnums=1)(x, n)
        for key, value in call(x, n).items():
            assert np.array_equal(value, due[key])
    made = RECORDER.counts["compiles"]
    for n in (5, 7):
        call(x + 1, n)
    assert RECORDER.counts["compiles"] == made
    (compute, _) = [recipe(State.shared, stepped, None, x.aval, n) for n in (5, 7)]
    assert compute is not None
    traced = verax.make_jaxpr(lambda x: call(x, 5))(x)
    assert [eqn.primitive.name for eqn in traced.eqns].count("while") == 1


def test_what_is_remembered_is_what_is_traced() -> None:
    x, y = vnp.array([1.5, -2.0, 0.0, -0.0]), vnp.array([2.0, -0.5, -3.0, 0.0])
    i, j = vnp.array([12, -18, 0, 7]), vnp.array([-8, 27, 5, 0])
    cases: tuple[tuple[Any, tuple[Any, ...]], ...] = (
        (vnp.frexp, (x,)),
        (vnp.ldexp, (x, j)),
        (vnp.copysign, (x, y)),
        (vnp.heaviside, (x, y)),
        (vnp.heaviside, (x, 0.5)),
        (vnp.spacing, (x,)),
        (vnp.gcd, (i, j)),
        (vnp.lcm, (i, j)),
        (vnp.gcd, (i, 6)),
        (vnp.left_shift, (i, j)),
        (vnp.right_shift, (i, j)),
        (vnp.logical_xor, (x, i)),
        (vnp.gradient, (x,)),
        (vnp.gradient, (x, 2)),
        (vnp.unwrap, (x * 4,)),
        (vnp.poly, (x,)),
        (vnp.polyint, (x, 2)),
        (vnp.polymul, (x, y)),
        (vnp.convolve, (x, y)),
        (vnp.correlate, (x, y, "same")),
        (vnp.packbits, (x > 0,)),
        (vnp.fft.fftshift, (x,)),
        (vnp.put_along_axis, (x, vnp.array([1, 2]), y[:2], 0)),
        (vnp.append, (x, i)),
        (vnp.resize, (x, (2, 3))),
        (vnp.cov, (x, y)),
        (vnp.vecdot, (x, y)),
        (vnp.average, (x,)),
        (vnp.linalg.matrix_rank, (vnp.outer(x, y),)),
    )
    for function, args in cases:
        options = {"inplace": False} if function is vnp.put_along_axis else {}
        plain = getattr(function, "func", function).__wrapped__
        due = plain(*args, **options)
        for _ in range(2):
            actual = function(*args, **options)
            leaves = zip(verax.tree.leaves(actual), verax.tree.leaves(due), strict=True)
            for leaf, other in leaves:
                assert leaf.aval == other.aval
                assert np.asarray(leaf).tobytes() == np.asarray(other).tobytes()
