"""What the laws have found, each as the small case to which it shrank."""

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.ir.avals import ShapedArray
from verax.ir.forms.parser import parse_jaxpr
from verax.ops.table import PRIMITIVES
from verax.verify.cases.case import Case
from verax.verify.checking.functions import COMPILED, ENGINE
from verax.verify.laws import LAWS


def case(text: str, *values: np.ndarray) -> Case:
    """The case of a printed program and one call of it."""
    return Case(parse_jaxpr(text, PRIMITIVES), tuple(x[None] for x in values))


def test_rsqrt_of_a_complex_infinity_is_zero() -> None:
    """NumPy divides by an infinite complex number to NaN."""
    program = "{ lambda ; a:c64[1]. let b:c64[1] = rsqrt a in (b,) }"
    infinite = np.array([complex(0.015625, np.inf)], np.complex64)
    actual = case(program, infinite)
    assert ENGINE.evaluate(actual.jaxpr, actual.values)[0] == 0
    COMPILED(ENGINE, actual)


def test_sort_of_nothing_with_a_second_operand_compiles() -> None:
    """The lowering gathered one element out of none."""
    program = (
        "{ lambda ; a:f32[0] b:f32[0]. let c:f32[0] d:f32[0] = "
        "sort[dimension=0 is_stable=True num_keys=1] a b in (c, d) }"
    )
    empty = np.zeros(0, np.float32)
    COMPILED(ENGINE, case(program, empty, empty))


def test_derivative_that_cancels_is_zero_to_rounding_errors() -> None:
    """Both products of the duality are sums of roundings here; that is no mistake."""
    program = "{ lambda ; a:c128[2]. let b:c128[2] = div a a in (b,) }"
    actual = case(program, np.array([-2.3 - 2.62j, -2.1 - 2.4j]))
    LAWS["linear"](ENGINE, actual)
    assert actual.jaxpr.out_avals == (ShapedArray((2,), np.dtype(np.complex128)),)


def test_bessel_functions_compile_to_double_precision() -> None:
    """The coefficients of the compiled form were off by a hundred units."""
    for name in ("bessel_i0e", "bessel_i1e"):
        program = f"{{ lambda ; a:f64[5]. let b:f64[5] = {name} a in (b,) }}"
        x = np.array([0.0, 1e-3, -5.3, 7.9, 20.0])
        COMPILED(ENGINE, case(program, x))


def test_exponents_at_the_end_of_their_dtype_do_not_wrap_round() -> None:
    """The derivative took -128 - 1 for 127."""
    program = "{ lambda ; a:f64[] b:i8[]. let c:f64[] = pow a b in (c,) }"
    actual = case(program, np.array(1.25), np.array(-128, np.int8))
    pushed, _ = ENGINE.jvp(actual.jaxpr, (True, False))
    values = (np.array(1.25), np.array(-128, np.int8), np.array(1.0))
    slope = ENGINE.evaluate(pushed, values)[1]
    np.testing.assert_allclose(slope, -128 * 1.25**-129, rtol=1e-12)


def test_zero_to_a_complex_power_is_zero() -> None:
    """XLA makes NaN of it where the exponent is not real."""
    program = "{ lambda ; a:c64[4] b:c64[4]. let c:c64[4] = pow a b in (c,) }"
    zeros = np.zeros(4, np.complex64)
    COMPILED(ENGINE, case(program, zeros, np.array([1 + 1j, 0.1 - 2j, 2, 0], "c8")))


def test_batched_updates_are_as_weak_as_single_ones() -> None:
    """A strong update of a weak array became weak where starts were batched."""
    for x, update in (("~i32[3]", "i32[1]"), ("i32[3]", "~i32[3]")):
        program = (
            f"{{ lambda ; a:{x} b:{update} c:i32[]. let d:i32[3] = "
            "dynamic_update_slice a b c in (d,) }"
        )
        jaxpr = parse_jaxpr(program, PRIMITIVES)
        batched, _ = ENGINE.batch(jaxpr, 2, (None, None, 0))
        assert not batched.out_avals[0].weak_type


@pytest.mark.parametrize(
    "algorithm", ["F64_F64_F64", "BF16_BF16_BF16", "TF32_TF32_F32_X3"]
)
@pytest.mark.parametrize("contracted", [True, False])
def test_small_products_compile_by_any_algorithm(
    algorithm: str, contracted: bool
) -> None:
    """XLA's own loops refuse algorithms; they are not needed where types say it all."""
    numbers = (((0,), (0,)) if contracted else ((), ()), ((), ()))
    x, y = vnp.array([1.0, 2.0, 3.0]), vnp.array([0.5, 1.5, 2.5])

    def product(x: verax.Array, y: verax.Array) -> verax.Array:
        return verax.lax.dot_general(x, y, numbers, precision=algorithm)

    with verax.enable_x64():
        compiled = verax.jit(product)(x, y)
        np.testing.assert_array_equal(np.asarray(compiled), np.asarray(product(x, y)))


def test_narrow_indices_reach_no_further_than_they_do() -> None:
    """XLA compared int8 starts with 128, which they cannot hold (jaxlib 0.11)."""
    numbers = verax.lax.ScatterDimensionNumbers((0, 1), (), (1,))

    @verax.jit
    def write(x: verax.Array, i: verax.Array, u: verax.Array) -> verax.Array:
        return verax.lax.scatter(x, i, u, numbers, mode="clip")

    ones = vnp.ones((5, 2), "int32")
    actual = write(vnp.zeros((5, 130), "int32"), vnp.array([8], "int8"), ones)
    assert np.nonzero(np.asarray(actual)[0])[0].tolist() == [8, 9]
