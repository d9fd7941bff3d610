"""Dtypes and weak types of results, as JAX has them, where NumPy's rules do not say."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax

jnp: Any = verax.numpy
special: Any = verax.scipy.special
NARROW = jnp.array([1, 2], "int8")
WEAK = jnp.broadcast_to(jnp.asarray(2), (3,))
WEAK_FLOATS = jnp.broadcast_to(jnp.asarray(2.0), (3, 3))

TYPES: dict[str, tuple[Callable[[], Any], str]] = {
    "angle of int8": (lambda: jnp.angle(NARROW), "f32[2]"),
    "rint of int": (lambda: jnp.rint(2), "f32[]"),
    "radians of complex": (lambda: jnp.radians(2j), "~c64[]"),
    "log10 of float": (lambda: jnp.log10(2.0), "f32[]"),
    "log2 of float": (lambda: jnp.log2(2.0), "~f32[]"),
    "remainder of weak by 0": (lambda: jnp.array(1) % 0, "~i32[]"),
    "fmod of weak by 0": (lambda: jnp.fmod(jnp.array(1), 0), "~i32[]"),
    "remainder of weak by a strong 0": (lambda: jnp.array(1) % np.int32(0), "i32[]"),
    "polyval of weak": (
        lambda: jnp.polyval(jnp.array([1, 2]), jnp.array(2.5)),
        "f32[]",
    ),
    "round to an integer": (lambda: round(jnp.array(2.5)), "i32[]"),
    "round to no decimals": (lambda: round(jnp.array(2.5), 0), "~f32[]"),
    "round several": (lambda: round(jnp.array([1.5, 2.5], "bfloat16")), "i32[2]"),
    "tril of weak": (lambda: jnp.tril(WEAK_FLOATS), "~f32[3,3]"),
    "triu of weak": (lambda: jnp.triu(jnp.stack([WEAK] * 3)), "~i32[3,3]"),
    "vander of int8": (lambda: jnp.vander(NARROW), "i8[2,2]"),
    "vander without columns": (lambda: jnp.vander(NARROW, 0), "i8[2,0]"),
    "choose": (lambda: jnp.choose(0, (1, 2)), "i32[]"),
    "cross": (lambda: jnp.cross(WEAK, WEAK), "i32[3]"),
    "concatenate to a dtype": (lambda: jnp.concatenate([WEAK], dtype=int), "i32[3]"),
    "vstack to a dtype": (lambda: jnp.vstack([WEAK], dtype="int32"), "i32[1,3]"),
    "fft of weak": (lambda: jnp.fft.fft(WEAK), "c64[3]"),
    "irfft of weak": (lambda: jnp.fft.irfft(WEAK), "f32[4]"),
    "fftn of a scalar": (lambda: jnp.fft.fftn(1.5), "c64[]"),
    "rfftn of a scalar": (lambda: jnp.fft.rfftn(1.5), "f32[]"),
    "det by factors": (
        lambda: jnp.linalg.det(jnp.broadcast_to(jnp.asarray(2.0), (4, 4))),
        "f32[]",
    ),
    "unique of weak": (lambda: jnp.unique(WEAK, size=1), "~i32[1]"),
    "union1d of weak": (lambda: jnp.union1d(WEAK, 3, size=2), "~i32[2]"),
    "setdiff1d of weak": (lambda: jnp.setdiff1d(WEAK, 3, size=1), "~i32[1]"),
    "insert into weak": (lambda: jnp.insert(WEAK, 0, np.int8(1)), "~i32[4]"),
    "place in weak": (
        lambda: jnp.place(WEAK, WEAK > 0, NARROW, inplace=False),
        "~i32[3]",
    ),
    "polyadd of weak": (lambda: jnp.polyadd(WEAK, WEAK[:2]), "~i32[3]"),
    "convolve of ints": (lambda: jnp.convolve(NARROW, NARROW), "f32[3]"),
    "correlate of bools": (lambda: jnp.correlate(NARROW > 0, NARROW > 0), "f32[1]"),
    "isin of scalars": (lambda: jnp.isin(1, 2.5), "bool[]"),
    "array_equiv of scalars": (lambda: jnp.array_equiv(1, 2.5), "bool[]"),
    "any of weak": (lambda: jnp.any(jnp.equal(1, 2)), "bool[]"),
    "diagflat of a scalar": (lambda: jnp.diagflat(1, 1), "i32[2,2]"),
    "spence of a scalar": (lambda: special.spence(0.5), "f32[]"),
    "spence of a list": (lambda: special.spence([0.5, 1.0]), "f32[2]"),
    "ndtr of a list": (lambda: special.ndtr([0.5, 1.0]), "f32[2]"),
    "log_ndtr of a list": (lambda: special.log_ndtr([0.5, 1.0]), "f32[2]"),
    "relu of bools": (lambda: verax.nn.relu(NARROW > 1), "~i32[2]"),
    "hard_tanh of a bool": (lambda: verax.nn.hard_tanh(True), "~i32[]"),
    "weak to integers": (lambda: 0.9 ** jnp.arange(3), "f32[3]"),
    "weak to weak integers": (lambda: 0.9**WEAK, "~f32[3]"),
    "unravel_index of int8": (lambda: jnp.unravel_index(NARROW, (3, 4))[0], "i8[2]"),
    "unravel_index of int": (lambda: jnp.unravel_index(5, (3, 4))[0], "~i32[]"),
    "unravel_index beyond int8": (
        lambda: jnp.unravel_index(NARROW, (300, 4))[0],
        "i32[2]",
    ),
}
WIDE_TYPES: dict[str, tuple[Callable[[], Any], str]] = {
    "angle of int8": (lambda: jnp.angle(NARROW), "f64[2]"),
    "rint of bool": (lambda: jnp.rint(True), "f64[]"),
    "convolve of int8": (lambda: jnp.convolve(NARROW, NARROW), "f32[3]"),
    "densities of float32": (
        lambda: jnp.histogramdd(jnp.ones((4, 2), "float32"), 2, density=True)[0],
        "f32[2,2]",
    ),
    "unravel_index of uint8": (
        lambda: jnp.unravel_index(jnp.uint8(5), (300, 400))[1],
        "i64[]",
    ),
}


@pytest.mark.parametrize("name", TYPES)
def test_type(name: str) -> None:
    call, expected = TYPES[name]
    assert str(call().aval) == expected
    assert str(verax.typeof(verax.jit(call)())) == expected


def test_a_power_in_the_state_of_an_optimizer_is_not_weak() -> None:
    def corrected(m: Any, t: Any) -> Any:
        return m / (1 - 0.9**t)

    m = jnp.ones(2, "bfloat16")
    assert str(verax.typeof(verax.jit(corrected)(m, jnp.int32(3)))) == "f32[2]"
    assert str(verax.typeof(corrected(m, jnp.int32(3)))) == "bf16[2]"  # known exponent


@pytest.mark.parametrize("name", WIDE_TYPES)
def test_type_with_64_bits(name: str) -> None:
    call, expected = WIDE_TYPES[name]
    with verax.enable_x64():
        assert str(call().aval) == expected


@pytest.mark.parametrize("other", [[1, 1], (1, 1), {1}, {"a": 1}, []])
@pytest.mark.parametrize("name", ["eq", "ne", "add", "lt", "matmul"])
def test_containers_are_not_operands(name: str, other: Any) -> None:
    apply: Callable[[Any, Any], Any] = getattr(operator, name)
    x = jnp.ones(2)
    for operands in ((x, other), (other, x)):
        with pytest.raises(TypeError):
            apply(*operands)
    with pytest.raises(TypeError, match="takes arrays and scalars, but argument 1"):
        verax.jit(lambda x: x == other)(x)


# ------------------------------------------------------------ what the options forbid

X = jnp.arange(1.0, 7.0).reshape(2, 3)
RANKS: dict[str, Callable[[], Any]] = {
    "polyfit": lambda: jnp.polyfit(X[0], X[1], 1),
    "unpackbits": lambda: jnp.unpackbits(jnp.ones((2, 3), "uint8"), axis=0),
    "delete": lambda: verax.jit(
        lambda i: jnp.delete(X[0], i, assume_unique_indices=True)
    )(jnp.array([0, 1])),
    "insert": lambda: verax.jit(lambda i: jnp.insert(X[0], i, 5.0))(jnp.array([0])),
    "gcd": lambda: jnp.gcd(jnp.ones(1, int), jnp.ones((2, 3), int)),
    "cross": lambda: jnp.cross(X, X[0]),
    "nanstd": lambda: jnp.nanstd(X, where=jnp.ones(3, bool)),
    "polyadd": lambda: jnp.polyadd(X[0], X[0, :2]),
    "outer": lambda: jnp.add.outer(X, X[0]),
}


@pytest.mark.parametrize("name", RANKS)
def test_ranks_are_equal_within_verax(name: str) -> None:
    with verax.numpy_rank_promotion("raise"):
        actual = RANKS[name]()
    np.testing.assert_array_equal(np.asarray(actual), np.asarray(RANKS[name]()))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_places_of_any_dtype_under_strict_promotion(dtype: str) -> None:
    with verax.enable_x64(), verax.numpy_dtype_promotion("strict"):
        actual = jnp.unravel_index(jnp.array([5, 11], dtype), (3, 4))
        assert [(x.dtype, x.tolist()) for x in actual] == [
            (dtype, [1, 2]),
            (dtype, [1, 3]),
        ]


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_logic_of_two_dtypes_is_promotion(name: str) -> None:
    function = getattr(jnp, name)
    with verax.numpy_dtype_promotion("strict"):
        with pytest.raises(verax.dtypes.TypePromotionError):
            function(X, X > 1)
        assert function(X > 1, True).dtype == bool
