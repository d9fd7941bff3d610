"""Elementwise functions against NumPy, and the programs that they trace to."""

from typing import Any

import numpy as np
import pytest

import verax
from verax.ir.promotion import TypePromotionError

jnp: Any = verax.numpy

RANDOM = np.random.default_rng(0)
VALUES = {
    "float": RANDOM.normal(size=(3, 4)).astype(np.float32),
    "int": RANDOM.integers(-5, 6, (3, 4)).astype(np.int32),
    "unsigned": RANDOM.integers(0, 9, (3, 4)).astype(np.uint32),
    "complex": (RANDOM.normal(size=(3, 4)) + 1j).astype(np.complex64),
    "empty": np.zeros((0, 2), np.float32),
    "scalar": np.float32(0.7),
}
UNARY = [
    "negative",
    "absolute",
    "sign",
    "square",
    "sqrt",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "arcsin",
    "arccos",
    "arctan",
    "arcsinh",
    "arctanh",
    "sinc",
    "isnan",
    "isinf",
    "isfinite",
    "real",
    "imag",
    "conj",
    "angle",
    "logical_not",
]
REAL_UNARY = [
    "deg2rad",
    "rad2deg",
    "fabs",
    "cbrt",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "signbit",
    "isposinf",
    "isneginf",
    "spacing",
    "modf",
    "frexp",
    "nan_to_num",
]
BINARY = [
    "add",
    "subtract",
    "multiply",
    "true_divide",
    "power",
    "float_power",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
]
REAL_BINARY = [
    "floor_divide",
    "remainder",
    "fmod",
    "divmod",
    "copysign",
    "heaviside",
    "logaddexp",
    "logaddexp2",
    "arctan2",
    "hypot",
    "nextafter",
]
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"]


def check(name: Any, result: Any, expected: Any) -> None:
    result = result if isinstance(result, tuple) else (result,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for x, y in zip(result, expected, strict=True):
        assert x.shape == np.shape(y), name
        np.testing.assert_allclose(np.asarray(x), y, 3e-5, 3e-5, err_msg=name)


def numpy_result(name: Any, *args: Any) -> Any:
    with np.errstate(all="ignore"):
        return getattr(np, name)(*args)


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name: Any, kind: Any) -> None:
    check(name, getattr(jnp, name)(VALUES[kind]), numpy_result(name, VALUES[kind]))


@pytest.mark.parametrize("kind", [k for k in VALUES if k != "complex"])
@pytest.mark.parametrize("name", REAL_UNARY)
def test_real_unary(name: Any, kind: Any) -> None:
    x = VALUES[kind].astype(np.float32)
    check(name, getattr(jnp, name)(x), numpy_result(name, x))


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("name", BINARY + REAL_BINARY + BITS)
def test_binary_broadcasts(name: Any, kind: Any) -> None:
    x: Any = VALUES[kind]
    if kind == "complex" and name not in BINARY:
        pytest.skip("real operands only")
    if name in BITS and kind not in ("int", "unsigned"):
        pytest.skip("integers only")
    for y in (x[::-1], x[:1]) if x.ndim else (x,):
        # NumPy refuses negative powers of integers; division by 0 is not defined.
        y = np.abs(y) + y.dtype.type(1) if x.dtype.kind in "iu" else y
        check(name, getattr(jnp, name)(x, y), numpy_result(name, x, y))


def test_python_scalars_adapt() -> None:
    x = jnp.asarray(np.ones(3, np.float16))
    assert (x * 2.5).dtype == np.float16
    assert (2 - x).dtype == np.float16
    assert (jnp.asarray([1, 2]) + 1.5).dtype == np.float32
    assert (jnp.asarray([1, 2]) + 1.5).weak_type
    assert (jnp.asarray([True]) + 1).dtype == np.int32
    with pytest.raises(OverflowError, match="300"):
        jnp.asarray(np.ones(3, np.uint8)) + 300


def test_zeros_keep_their_sign() -> None:
    x = jnp.asarray([1.0, -1.0])
    assert np.signbit(np.asarray(x * -0.0)).tolist() == [True, False]
    assert np.signbit(np.asarray(x * 0.0)).tolist() == [False, True]


@pytest.mark.parametrize(
    ("call", "dtype", "weak"),
    [
        (lambda: jnp.true_divide(1, 2), "float32", True),
        (lambda: jnp.power(2, 3), "int32", True),
        (lambda: jnp.square(True), "int32", False),
        (lambda: jnp.sqrt(4), "float32", True),
        (lambda: jnp.round(jnp.asarray(1.0), 2), "float32", True),
        (lambda: jnp.imag(2.0), "float32", True),
        (lambda: jnp.hypot(3, 4), "float32", True),
        (lambda: jnp.asarray(np.int8(3)) + np.uint8(2), "int16", False),
        (lambda: jnp.bitwise_count(-3), "uint8", False),
    ],
)
def test_result_types(call: Any, dtype: Any, weak: Any) -> None:
    actual = call()
    assert (actual.dtype, actual.weak_type) == (np.dtype(dtype), weak)


def names(function: Any, *args: Any) -> list[str]:
    return [eqn.primitive.name for eqn in verax.make_jaxpr(function)(*args).jaxpr.eqns]


X = np.ones((3, 4), np.float32)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x + x, "add"),
        (lambda x: x * 3.0, "mul"),
        (lambda x: 1 - x, "sub"),
        (lambda x: x / 2, "div"),
        (lambda x: x**2, "integer_pow"),
        (lambda x: x**0.5, "pow"),
        (lambda x: x + x[0], "slice squeeze broadcast_in_dim add"),
        (lambda x: jnp.maximum(x, 0), "max"),
        (lambda x: jnp.sin(x), "sin"),
        (lambda x: x < 1, "lt"),
        (lambda x: jnp.clip(x, 0, 1), "max min"),
        (lambda x: jnp.isinf(x), "abs eq"),
        (lambda x: x % 2, "rem lt select_n add"),
        (lambda x: jnp.real(x), ""),
    ],
)
def test_equations(function: Any, expected: Any) -> None:
    actual = names(function, X)
    assert len(actual) <= len(expected.split())
    assert actual[-1:] == expected.split()[-1:]


def test_a_scalar_is_a_literal_of_the_arrays_dtype() -> None:
    (eqn,) = verax.make_jaxpr(lambda x: x * 3)(X).jaxpr.eqns
    assert repr(eqn.invars[1]) == "3.0:f32[]"


def test_refusals() -> None:
    with pytest.raises(TypeError, match=r"add .* argument 1 is \[1, 2\]"):
        jnp.add(jnp.ones(2), [1, 2])
    with pytest.raises(
        ValueError,
        match=r"add got incompatible shapes .*: \(2,\), \(3,\)",
    ):
        jnp.add(jnp.ones(2), jnp.ones(3))
    with pytest.raises(ValueError, match="not well defined for complex-valued inputs"):
        jnp.hypot(1j, 2)
    with pytest.raises(TypePromotionError, match="float8_e4m3fn"):
        jnp.ones(2, "float8_e4m3fn") + jnp.ones(2, "float8_e5m2")


def test_integer_powers() -> None:
    x = np.array([-2, 0, 3], np.int32)
    y = np.array([3, 0, 5], np.int32)
    assert jnp.power(x, y).tolist() == [-8, 1, 243]
    with pytest.raises(TypeError, match="negative"):
        jnp.power(x, -1)


@pytest.mark.parametrize(
    ("x", "y", "dtype"),
    [
        (3, np.int8(3), np.int8),
        (3, np.array(3, np.uint8), np.uint8),
        (True, np.int8(3), np.int8),
        (3.0, np.int8(3), np.float32),
        (np.int8(3), 3, np.int8),
    ],
)
def test_the_type_of_a_power_is_that_under_jit(x: Any, y: Any, dtype: Any) -> None:
    for power in (jnp.power, verax.jit(jnp.power)):
        assert power(x, y).dtype == dtype
        assert not power(x, y).weak_type
        assert power(x, y) == x**3


def test_round() -> None:
    assert jnp.round(np.array([0.5, 1.5, 2.5], np.float32)).tolist() == [0, 2, 2]
    assert jnp.round(np.array([1234, 1250, 1350]), -2).tolist() == [1200, 1200, 1400]
    check("round", jnp.round(np.float32(1.2345), 2), np.float32(1.23))


def test_frexp_of_subnormals() -> None:
    x = np.array([0, 1e-40, -3, 1e38, 5e-45], np.float32)
    check("frexp", jnp.frexp(x), np.frexp(x))
    assert jnp.ldexp(np.float32(5e-45), 200).tolist() == float(
        np.ldexp(np.float32(5e-45), 200)
    )


@pytest.mark.parametrize(
    ("function", "point", "slope"),
    [
        (jnp.sinc, 0.0, 0.0),
        (lambda x: jnp.hypot(x, 4.0), 3.0, 0.6),
        (lambda x: jnp.logaddexp(x, x), 1.0, 1.0),
        (lambda x: jnp.frexp(x)[0], 6.0, 0.125),
        (lambda x: jnp.copysign(x, -1.0), 2.0, -1.0),
        (lambda x: jnp.clip(x, 0.0, 1.0), 0.5, 1.0),
    ],
)
def test_gradients(function: Any, point: Any, slope: Any) -> None:
    np.testing.assert_allclose(float(verax.grad(function)(point)), slope, 1e-5, 1e-6)


def test_hypot_has_a_gradient_where_a_side_is_subnormal() -> None:
    x = np.array([6e-8, 1e-7, 0, 300], np.float16)
    y = np.array([0, -6e-8, 6e-8, 400], np.float16)
    for compile in (lambda f: f, verax.jit):
        slopes = compile(verax.grad(lambda *xs: jnp.hypot(*xs).sum(), (0, 1)))(x, y)
        np.testing.assert_allclose(slopes[0], [1, 0.894, 0, 0.6], 1e-2)
        np.testing.assert_allclose(slopes[1], [0, -0.447, 1, 0.8], 1e-2)


def test_numbers_of_python_alone() -> None:
    assert float(jnp.heaviside(0.0, 0.5)) == 0.5
    assert float(jnp.heaviside(2, 3)) == 1
    actual = verax.nn.logsumexp(1.0, None, 2.0)
    np.testing.assert_allclose(float(actual), 1 + np.log(2), 1e-6)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("remainder", (-7, 3)),
        ("remainder", (-7.5, 3)),
        ("fmod", (-7, 3)),
        ("divmod", (7, 2)),
        ("sinc", (0.25,)),
        ("heaviside", (0.0, 0.5)),
        ("gcd", (4, 6)),
        ("lcm", (4, 6)),
    ],
)
def test_weak_operands_give_weak_results(name: str, args: Any) -> None:
    for first in (args[0], jnp.asarray(args[0])):
        for last in (args[-1], jnp.asarray(args[-1])):
            given = (first,) if len(args) == 1 else (first, last)
            for leaf in verax.tree.leaves(getattr(jnp, name)(*given)):
                assert leaf.weak_type, (name, given)


def test_closeness() -> None:
    x = np.array([1.0, np.nan, np.inf], np.float32)
    assert jnp.isclose(x, x).tolist() == [True, False, True]
    assert jnp.allclose(x, x, equal_nan=True)
    assert not jnp.array_equal(x, x)
    assert jnp.array_equal(x, x, equal_nan=True)
    assert not jnp.array_equal(x, x[:2])


def test_arrays_of_64_bits_outlive_the_block_with_x64() -> None:
    with verax.enable_x64(True):
        places, values = verax.numpy.arange(3), verax.numpy.ones(2)
    assert (places + 1).dtype == (1 + places).dtype == np.int32
    assert (
        (values * 2.5).dtype == verax.jit(lambda x: 2 * x)(values).dtype == np.float32
    )


WEAK_ROW = jnp.broadcast_to(jnp.asarray(1.5) * 1.0, (2,))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: jnp.isinf(jnp.inf), "bool"),
        (lambda: jnp.isneginf(2.5), "bool"),
        (lambda: jnp.signbit(-1), "bool"),
        (lambda: jnp.array_equal(2, 3), "bool"),
        (lambda: jnp.heaviside(np.array([True]), 2), "float32"),
        (lambda: jnp.deg2rad(WEAK_ROW), "float32"),
        (lambda: jnp.rad2deg(1.0), "~float32"),
        (lambda: jnp.sinc(WEAK_ROW), "float32"),
        (lambda: jnp.sinc(1j), "~complex64"),
        (lambda: jnp.logaddexp2(2, np.array([True])), "float32"),
        (lambda: jnp.logaddexp2(2, 1j), "~complex64"),
        (lambda: jnp.gcd(2, np.array([True])), "int32"),
        (lambda: jnp.lcm(2, 3), "~int32"),
        (lambda: jnp.power(2, jnp.asarray(2)), "~int32"),
        (lambda: jnp.power(jnp.asarray(1.5), jnp.int8(2)), "~float32"),
        (lambda: jnp.full_like(2.5, jnp.asarray(2)), "~float32"),
        (lambda: jnp.full_like(WEAK_ROW, np.array([1, 2])), "float32"),
    ],
)
@pytest.mark.parametrize("wrap", [lambda f: f, verax.jit], ids=["eager", "jit"])
def test_weak_types_as_in_jax(call: Any, expected: str, wrap: Any) -> None:
    actual = wrap(call)()
    assert f"{'~' * actual.weak_type}{actual.dtype}" == expected


def test_sinc_is_right_far_from_zero() -> None:
    x = np.array(
        [1.0000001, 100.25, 1000.001, 1e6 + 0.5, 3e7, 1e30, np.inf], np.float32
    )
    wide = x.astype(np.float64)
    whole = np.round(np.where(np.isinf(wide), 0, wide))
    rest = np.where(np.isinf(wide), 0, wide) - whole
    sign = 1 - 2 * (whole % 2)
    expected = sign * np.sin(np.pi * rest) / np.pi / wide
    for f in (jnp.sinc, verax.jit(jnp.sinc)):
        np.testing.assert_allclose(f(x), expected, 3e-7)
        np.testing.assert_allclose(f(-x), expected, 3e-7)
    slopes = verax.vmap(verax.grad(jnp.sinc))(x)
    far = (sign * np.cos(np.pi * rest) - expected) / wide
    np.testing.assert_allclose(slopes[:-1], far[:-1], 1e-5, 1e-12)
    assert slopes[-1] == 0
    assert jnp.sinc(jnp.bfloat16(0.3)).dtype == jnp.bfloat16
