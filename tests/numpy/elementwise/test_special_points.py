"""Special points: what the array API says of infinities, zeros of either sign and NaN.

Each holds eagerly and in compiled programs, for arrays and for Python scalars.
"""

from typing import Any

import numpy as np
import pytest

import verax

jnp: Any = verax.numpy
INF, NAN = float("inf"), float("nan")
VALUES = np.array([0.0, -0.0, 1.5, -1.5, INF, -INF, NAN], np.float32)
# x1 // x2 for each of VALUES as x1 (rows) and as x2 (columns).
QUOTIENTS = [
    [NAN, NAN, 0.0, -0.0, 0.0, -0.0, NAN],
    [NAN, NAN, -0.0, 0.0, -0.0, 0.0, NAN],
    [INF, -INF, 1.0, -1.0, 0.0, -0.0, NAN],
    [-INF, INF, -1.0, 1.0, -0.0, 0.0, NAN],
    [INF, -INF, INF, -INF, NAN, NAN, NAN],
    [-INF, INF, -INF, INF, NAN, NAN, NAN],
    [NAN, NAN, NAN, NAN, NAN, NAN, NAN],
]
RESTS = [
    [NAN, NAN, 0.0, -0.0, 0.0, -0.0, NAN],
    [NAN, NAN, 0.0, -0.0, 0.0, -0.0, NAN],
    [NAN, NAN, 0.0, -0.0, 1.5, -INF, NAN],
    [NAN, NAN, 0.0, -0.0, INF, -1.5, NAN],
    [NAN, NAN, NAN, NAN, NAN, NAN, NAN],
    [NAN, NAN, NAN, NAN, NAN, NAN, NAN],
    [NAN, NAN, NAN, NAN, NAN, NAN, NAN],
]
DIVISIONS = {"floor_divide": QUOTIENTS, "remainder": RESTS}


def same(result: object, expected: object) -> None:
    """Equal, with zeros of the same sign, where a NaN has none."""
    result, expected = np.asarray(result, np.float32), np.asarray(expected, np.float32)
    np.testing.assert_array_equal(result, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(
        np.signbit(result)[known], np.signbit(expected)[known]
    )


@pytest.mark.parametrize("name", DIVISIONS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_division_of_arrays(name: str, dtype: str) -> None:
    function = getattr(jnp, name)
    x = jnp.asarray(VALUES, dtype)
    for call in (function, verax.jit(function)):
        actual = call(x[:, None], x)
        assert actual.dtype == dtype
        same(actual.astype("float32"), DIVISIONS[name])
    index = 0 if name == "floor_divide" else 1
    same(jnp.divmod(x[:, None], x)[index].astype("float32"), DIVISIONS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", DIVISIONS)
def test_division_by_and_of_python_scalars(name: str) -> None:
    function = getattr(jnp, name)
    table = np.array(DIVISIONS[name], np.float32)
    for i, value in enumerate(VALUES.tolist()):
        same(verax.jit(lambda x, y=value: function(x, y))(VALUES), table[:, i])
        same(verax.jit(lambda x, y=value: function(y, x))(VALUES), table[i])
        same(function(VALUES.tolist()[2], value), table[2, i])


def test_remainder_keeps_its_derivative_where_nothing_is_left() -> None:
    gradient = verax.grad(jnp.remainder, argnums=(0, 1))
    for x, y, slope in [(4.0, 2.0, -2.0), (-5.0, 2.0, 3.0), (5.0, -2.0, 3.0)]:
        assert gradient(x, y) == (1.0, slope)


def test_floor_division_is_that_of_numpy_between() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=2000).astype(np.float32) * 1000
    y = random.normal(size=2000).astype(np.float32)
    x[:500], y[:500] = np.round(x[:500]), np.round(y[:500] * 2) + 0.5
    same(jnp.floor_divide(x, y), np.floor_divide(x, y))
    same(jnp.remainder(x, y), np.remainder(x, y))


COMPLEX_POINTS: list[tuple[str, complex, complex]] = [
    ("expm1", complex(INF, 0), complex(INF, 0)),
    ("expm1", complex(-0.0, 0), complex(0, 0)),
    ("expm1", complex(INF, INF), complex(INF, NAN)),
    ("expm1", complex(INF, NAN), complex(INF, NAN)),
    ("expm1", complex(-INF, INF), complex(-1, 0)),
    ("expm1", complex(-INF, NAN), complex(-1, 0)),
    ("expm1", complex(NAN, 0), complex(NAN, 0)),
    ("expm1", complex(1, INF), complex(NAN, NAN)),
    ("tanh", complex(0, INF), complex(0, NAN)),
    ("tanh", complex(0, NAN), complex(0, NAN)),
    ("tanh", complex(1, INF), complex(NAN, NAN)),
    ("tanh", complex(INF, NAN), complex(1, 0)),
    ("sign", complex(0, 0), complex(0, 0)),
    ("sign", complex(INF, 1), complex(NAN, 0)),
    ("sign", complex(1, -INF), complex(0, NAN)),
]


@pytest.mark.parametrize(("name", "x", "y"), COMPLEX_POINTS)
def test_complex_special_points(name: str, x: complex, y: complex) -> None:
    function = getattr(jnp, name)
    for call in (function, verax.jit(function)):
        actual = np.asarray(call(np.asarray(x, np.complex64)))
        np.testing.assert_equal(abs(actual.real), abs(y.real) if y.real != -1 else 1)
        np.testing.assert_equal(abs(actual.imag), y.imag)
        assert np.isnan(y.real) or np.sign(actual.real) == np.sign(y.real)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("shape", [(7,), (1, 7), (3, 1), ()])
def test_what_a_mask_leaves_out_is_zero(dtype: str, shape: tuple[int, ...]) -> None:
    x = jnp.asarray(VALUES, dtype)
    mask = jnp.arange(max(1, np.prod(shape, dtype=int))).reshape(shape) % 2 == 1
    due = np.where(mask, x, np.zeros((), x.dtype)).astype(complex)
    for f in (jnp.multiply, verax.jit(jnp.multiply)):
        for actual in (f(x, mask), f(mask, x), f(x, np.asarray(mask))):
            assert actual.dtype == x.dtype
            np.testing.assert_array_equal(np.asarray(actual).astype(complex), due)
    known = verax.jit(lambda x: x * np.asarray(mask))(x)
    np.testing.assert_array_equal(np.asarray(known).astype(complex), due)


def test_products_with_masks_have_types_and_derivatives() -> None:
    mask = jnp.array([True, False])
    assert (INF * mask).tolist() == [INF, 0.0]
    assert (2.0 * mask).aval == (2.0 * mask.astype(int)).aval
    assert (2 * mask).dtype == "int32"
    assert (mask * mask).tolist() == [True, False]
    assert (jnp.float32(INF) * jnp.bool_(False)).tolist() == 0.0
    x = jnp.array([3.0, INF])
    _, pull = verax.vjp(lambda x: x * mask, x)
    assert pull(jnp.array([NAN, INF]))[0].tolist()[1] == 0.0
    out, tangent = verax.jvp(lambda x: x * mask, (x,), (x,))
    assert out.tolist() == tangent.tolist() == [3.0, 0.0]
    with pytest.raises(ValueError, match="broadcast"):
        jnp.ones(3) * mask
