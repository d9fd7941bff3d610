"""What was found while functions were documented: series that end before a pole, limits
that were NaN, arguments that were not read, and messages that named another function.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import verax
import verax.numpy as jnp
from property_tests.levels import NIGHTLY, by_turns
from verax import lax, nn
from verax.nn import reductions
from verax.numpy.fft.transform import transform
from verax.scipy import fft as cosines, special, stats

INF = float("inf")


def message(kind: type[Exception], call: Callable[[], Any]) -> str:
    """What a call says that raises an exception of that class."""
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


# ------------------------------------------------------------- hypergeometric functions


@pytest.mark.slow
@pytest.mark.parametrize(
    "x", by_turns([-20.0, -1.0, 0.3, 0.5, 0.95, 1.0, 2.0], 2, NIGHTLY)
)
@pytest.mark.parametrize(
    "of", [(-2.0, 1.0, -3.0), (1.5, -4.0, -5.0), (-5.0, -1.0, -3.0)]
)
def test_the_series_of_gauss_ends_before_the_pole(of: Any, x: float) -> None:
    a, b, c = of
    expected = scipy.special.hyp2f1(a, b, c, x)
    for array in (special.hyp2f1(a, b, c, x), special.hyp2f1(b, a, c, x)):
        np.testing.assert_allclose(array, expected, rtol=1e-5)


@pytest.mark.slow
def test_the_series_of_gauss_may_end_at_the_pole() -> None:
    # 1 + x + x² + x³, whichever parameter it is that ends it.
    for a, b in ((-3.0, 1.0), (1.0, -3.0)):
        assert special.hyp2f1(a, b, -3.0, 0.5).item() == 1.875
        assert special.hyp2f1(a, b, -3.0, 2.0).item() == 15.0


@pytest.mark.slow
def test_hypergeometric_functions_are_infinite_at_the_pole() -> None:
    assert special.hyp2f1(-4.0, 1.0, -3.0, 0.5).item() == INF
    assert special.hyp2f1(0.5, 1.0, -3.0, 0.5).item() == INF
    assert special.hyp1f1(jnp.array([-3.0, 0.5]), -2.0, 1.0).tolist() == [INF, INF]
    assert special.hyp2f1(0.0, 1.0, -1.0, 0.5).item() == 1.0
    assert special.hyp1f1(0.0, -1.0, 0.5).item() == 1.0


@pytest.mark.parametrize("x", [-100.0, -1.0, 0.5, 1.0, 100.0])
@pytest.mark.parametrize("of", [(-1.0, -2.0), (-2.0, -2.0), (-4.0, -9.0)])
def test_the_series_of_kummer_ends_before_the_pole(of: Any, x: float) -> None:
    a, b = of
    expected = scipy.special.hyp1f1(a, b, x)
    for function in (special.hyp1f1, verax.jit(special.hyp1f1)):
        np.testing.assert_allclose(function(a, b, x), expected, rtol=1e-5)


def test_derivatives_of_series_that_end_before_the_pole() -> None:
    # 1 + 2x/3 + x²/3, and 1 - x / b.
    slope = verax.grad(special.hyp2f1, 3)(-2.0, 1.0, -3.0, 0.5)
    assert slope.item() == pytest.approx(1.0)
    slopes = verax.grad(special.hyp1f1, (1, 2))(-1.0, -2.0, 1.0)
    assert [t.item() for t in slopes] == pytest.approx([0.25, 0.5])


# ---------------------------------------------------------------- limits and far places


@pytest.mark.parametrize("power", [-2.0, -1.0, 0.0, 0.5, 1.0])
@pytest.mark.parametrize("x", [0.0, 1.0, 2.0, INF])
def test_boxcox_at_the_ends(x: float, power: float) -> None:
    expected = scipy.special.boxcox(x, power)
    for array in (special.boxcox(x, power), special.boxcox1p(x - 1, power)):
        np.testing.assert_allclose(array, expected, rtol=1e-6)


def test_derivatives_of_boxcox_at_power_0() -> None:
    assert verax.grad(special.boxcox)(0.0, 0.0).item() == INF
    assert verax.grad(special.boxcox)(2.0, 0.0).item() == 0.5
    by_power = verax.grad(special.boxcox, 1)(2.0, 0.0).item()
    assert by_power == pytest.approx(math.log(2.0) ** 2 / 2)


@pytest.mark.parametrize("order", [0, 1, 3, 28, 29, 30])
def test_log_ndtr_takes_all_orders_in_float32(order: int) -> None:
    x = np.array([-1e30, -100.0, -30.0, -10.5], np.float32)
    array = special.log_ndtr(jnp.array(x), order)
    with np.errstate(over="ignore"):
        expected = scipy.special.log_ndtr(x.astype(float)).astype(np.float32)
    np.testing.assert_allclose(array, expected, rtol=1e-6 if order > 1 else 2e-4)
    slopes = verax.vmap(verax.grad(lambda x: special.log_ndtr(x, order)))(jnp.array(x))
    np.testing.assert_allclose(slopes[1:], -x[1:], rtol=2e-2)


@pytest.mark.parametrize("z", [-10j, -30j, 1 - 30j, -1 - 30j, -1e9j, 0.01 - 27j])
@pytest.mark.parametrize("compiled", [False, True])
def test_wofz_overflows_by_parts(z: complex, compiled: bool) -> None:
    wofz = verax.jit(special.wofz) if compiled else special.wofz
    out, expected = wofz(np.complex64(z)), scipy.special.wofz(np.complex64(z))
    assert complex(out) == complex(expected)


def test_wofz_keeps_small_parts_beside_infinite_ones() -> None:
    z = complex(1e-20, -9.6)
    out, expected = special.wofz(np.complex64(z)), scipy.special.wofz(z)
    assert out.real.item() == INF
    assert out.imag.item() == pytest.approx(expected.imag, rel=1e-4)


@pytest.mark.parametrize("name", ["i0", "i1"])
def test_bessel_functions_overflow_only_where_they_are_too_large(name: str) -> None:
    x = np.array([-91.0, 89.0, 90.0, 91.0], np.float32)
    expected = getattr(scipy.special, name)(x.astype(float))
    np.testing.assert_allclose(getattr(special, name)(x), expected, rtol=1e-6)
    assert np.isinf(getattr(special, name)(jnp.array([-92.0, 92.0]))).all()


# ------------------------------------------------------------------------------- dtypes


@pytest.mark.parametrize("size", [0, 1, 2, 5])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "int32"])
def test_kaiser_has_the_default_float(size: int, dtype: str) -> None:
    out = jnp.kaiser(size, jnp.array(3, dtype))
    assert str(out.aval) == f"f32[{size}]"
    np.testing.assert_allclose(out, np.kaiser(size, 3.0), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "bool", "float16", "complex64"])
@pytest.mark.parametrize(("shape", "axis"), [((0,), 0), ((2, 0), 1), ((0, 3), None)])
def test_mode_of_nothing_is_a_float(dtype: str, shape: Any, axis: Any) -> None:
    value, count = stats.mode(jnp.ones(shape, dtype), axis)
    assert np.isnan(value).all()
    assert not np.asarray(count).any()
    for out in (value, count):
        assert out.dtype == np.float32
        assert not out.weak_type


@pytest.mark.parametrize("transform", [cosines.dctn, cosines.idctn])
def test_dctn_along_no_axes(transform: Callable[..., Any]) -> None:
    x = jnp.array([[1, 2], [3, 4]])
    assert transform(x, axes=()).dtype == np.int32
    assert "type" in message(ValueError, lambda: transform(x, 7, axes=()))


def test_collapse_of_no_dimensions_puts_one_in() -> None:
    assert lax.collapse(jnp.ones((2, 3)), 1, 1).shape == (2, 1, 3)


def test_mxfp8_has_no_global_scale() -> None:
    config = nn.get_scaled_dot_general_config("mxfp8", jnp.float32(2.0))
    assert config.global_scale is None


# ----------------------------------------------------------------------------- messages


def test_multigammaln_names_its_dimension() -> None:
    said = message(ValueError, lambda: special.multigammaln(3.0, -1))
    assert said == "multigammaln: d must not be negative, but is -1"
    assert "multigammaln" in message(
        TypeError,
        lambda: special.multigammaln(3.0, 1.5),  # type: ignore[arg-type]
    )
    assert special.multigammaln(3.0, 0).item() == 0.0


@pytest.mark.parametrize("arrays", [jnp.ones((2, 2)), [jnp.ones(2), jnp.ones(2)]])
def test_stack_writes_to_no_output(arrays: Any) -> None:
    out: Any = np.zeros((2, 2))
    said = message(NotImplementedError, lambda: jnp.stack(arrays, out=out))
    assert said.startswith("stack: out=")


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2"])
@pytest.mark.parametrize("axes", [None, 3])
def test_transforms_over_two_axes_want_a_pair(name: str, axes: Any) -> None:
    said = message(
        TypeError, lambda: getattr(jnp.fft, name)(jnp.ones((2, 2)), axes=axes)
    )
    assert said == f"{name} runs over a pair of axes, not {axes}"


X, Y = jnp.ones((2, 2)), jnp.ones((3, 3))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("append", lambda: jnp.append(X, Y, axis=0)),
        ("append", lambda: jnp.append(X, X, axis=5)),
        ("append", lambda: jnp.append(1.0, 2.0, axis=0)),
        ("append", lambda: jnp.append("a", 2.0)),  # type: ignore[arg-type]
        ("concat", lambda: jnp.concat([X, Y])),
        ("concat", lambda: jnp.concat([X, X], axis=5)),
        ("concat", lambda: jnp.concat([1.0])),
        ("concat", lambda: jnp.concat([])),
        ("concatenate", lambda: jnp.concatenate([X, Y])),
        ("block", lambda: jnp.block([[X, Y]])),
        ("tile", lambda: jnp.tile(X, -1)),
        ("tile", lambda: jnp.tile(X, (2, -1))),
        ("repeat", lambda: jnp.repeat(X, -1)),
        ("repeat", lambda: jnp.repeat(X, -1, axis=1)),
        ("repeat", lambda: jnp.repeat(X, np.array([1, -1]), axis=1)),
        ("repeat", lambda: jnp.repeat(X, 1, total_repeat_length=-1)),
        ("approx_min_k", lambda: lax.approx_min_k(jnp.ones(3, complex), 2)),
        ("approx_max_k", lambda: lax.approx_max_k(jnp.ones(3, complex), 2)),
        ("cholesky", lambda: lax.linalg.cholesky(jnp.eye(2, dtype=int))),
        ("cholesky", lambda: lax.linalg.cholesky(jnp.eye(2, dtype=bool))),
        ("conj", lambda: lax.conj(jnp.ones(2, int))),
        ("conj", lambda: lax.conj(jnp.ones(2, "bfloat16"))),
        ("conj", lambda: lax.conj(1)),
    ],
)
def test_messages_begin_with_the_function(name: str, call: Callable[[], Any]) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    said = str(caught.value)
    assert said.startswith((f"{name} ", f"{name}:"))
    assert "Python scalar" not in said


def test_docstrings_name_the_class_that_is_raised() -> None:
    x = jnp.ones(2, complex)
    message(ValueError, lambda: transform("rfft", "RFFT", x, None, None, None))
    message(ValueError, lambda: reductions.as_mask("softmax", X, X))
    for function in (transform, reductions.as_mask):
        assert "TypeError" not in (function.__doc__ or "")


# ---------------------------------------------------------------------- ragged products


def numbers(pairs: Any, cut: int, groups: Any = ()) -> lax.RaggedDotDimensionNumbers:
    return lax.RaggedDotDimensionNumbers(pairs, (cut,), groups)


def refusal(kind: type[Exception], *args: Any, **options: Any) -> str:
    return message(kind, lambda: lax.ragged_dot_general(*args, **options))


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_a_cut_batch_dimension_changes_nothing(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=size) for size in ((2, 4, 5, 3), (4, 2, 3, 6)))
    pairs = (((3,), (2,)), ((0, 1), (1, 0)))
    cut = numbers(pairs, 1)
    out = lax.ragged_dot_general(x, y, jnp.full(shape, 1), cut)
    np.testing.assert_allclose(out, lax.dot_general(x, y, pairs), rtol=1e-6)
    assert "(2, 3), got (4, 3)" in refusal(TypeError, x, y, jnp.ones((4, 3), int), cut)


def test_offsets_are_for_groups_of_the_right_operand() -> None:
    x, y, sizes = jnp.ones((2, 4)), jnp.ones((4, 5)), jnp.array([1, 3])
    contracted = numbers((((1,), (0,)), ((), ())), 1)
    batched = numbers((((), ()), ((1,), (0,))), 1)
    for cut in (contracted, batched):
        said = refusal(NotImplementedError, x, y, sizes, cut, group_offset=0)
        assert "group_offset" in said


@pytest.mark.parametrize("offset", [1, np.array([1]), jnp.array(1)])
def test_an_offset_is_one_integer(offset: Any) -> None:
    x, sizes = jnp.ones((4, 1)), jnp.array([1, 2, 1])
    y = jnp.array([[[10.0]], [[20.0]]])
    rows = [0.0, 10.0, 10.0, 20.0]
    free = numbers((((1,), (1,)), ((), ())), 0, (0,))
    general = lax.ragged_dot_general(x, y, sizes, free, group_offset=offset)
    assert general.ravel().tolist() == rows
    out = lax.ragged_dot(x, y, sizes, group_offset=offset)
    assert out.ravel().tolist() == rows
    for wrong in (1.0, jnp.array([0, 1])):
        said = refusal(TypeError, x, y, sizes, free, group_offset=wrong)
        assert "group_offset" in said


@pytest.mark.parametrize("group", [-1, 3])
def test_groups_are_a_dimension_of_the_right_operand(group: int) -> None:
    x, y, sizes = jnp.ones((4, 1)), jnp.ones((2, 1, 1)), jnp.array([1, 3])
    ragged = numbers((((1,), (1,)), ((), ())), 0, (group,))
    assert "rhs group dimension" in refusal(TypeError, x, y, sizes, ragged)
