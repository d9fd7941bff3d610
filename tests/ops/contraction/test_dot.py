"""Products: dtypes, precisions and algorithms, derivatives, errors."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.ops.agreement import both, trace
from tests.ops.laws import ENGINE
from verax.ir.avals import ShapedArray
from verax.ops.contraction import dot
from verax.ops.contraction.precision import DotAlgorithmPreset, Precision, precision_of
from verax.ops.elementwise import arith
from verax.rules.rows.builder import Builder
from verax.rules.values.array import Array
from verax.rules.values.state import interpreting

MATRICES = (((1,), (0,)), ((), ()))


def test_dot_general_dtypes() -> None:
    x = np.full((2, 300), 100, np.int8)
    (y,) = both(
        lambda x: dot.dot_general(
            x, x, (((1,), (1,)), ((), ())), preferred_element_type=np.int32
        ),
        x,
    )
    assert y.dtype == np.int32
    assert y[0, 0] == 3_000_000
    flags = np.array([[True, False], [True, True]])
    (z,) = both(lambda x: dot.dot(x, x), flags)
    assert z.tolist() == [[True, False], [True, True]]
    half = np.ones((2, 2), ml_dtypes.bfloat16)
    (w,) = both(lambda x: dot.dot(x, x, preferred_element_type=np.float32), half)
    assert w.dtype == np.float32
    (v,) = both(lambda x, y: dot.dot(x, y), half, np.ones((2, 2), np.float32))
    assert v.dtype == np.float32


def test_the_gradient_of_a_wide_product_has_the_narrow_dtype() -> None:
    x = np.arange(6, dtype=ml_dtypes.bfloat16).reshape(2, 3)

    def f(x: Array) -> Array:
        numbers = (((1,), (1,)), ((), ()))
        # Its cotangents meet factors of the dtype of x.
        y = arith.mul(x, ml_dtypes.bfloat16(1))
        return dot.dot_general(y, y, numbers, preferred_element_type=np.float32)

    forward, tangent, _ = ENGINE.linearize(trace(f, x), (True,))
    _, *saved = ENGINE.evaluate(forward, [x])
    linear = (False,) * len(saved) + (True,)
    back, _ = ENGINE.transpose(tangent, linear, (True,))
    (ct,) = ENGINE.evaluate(back, [*saved, np.ones((2, 2), np.float32)])
    assert ct.dtype == x.dtype
    assert ct.astype(float).tolist() == [[6, 10, 14], [6, 10, 14]]


@pytest.mark.parametrize(
    "algorithm", ["F32_F32_F32", "BF16_BF16_F32", "BF16_BF16_F32_X3", "F16_F16_F16"]
)
def test_algorithms(algorithm: str) -> None:
    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    (y,) = both(lambda x: dot.dot_general(x, x, MATRICES, precision=algorithm), x)
    assert y.tolist() == [[2, 3], [6, 11]]


def test_precisions_have_many_names() -> None:
    assert precision_of(None) is None
    assert precision_of("high") == (Precision.HIGH, Precision.HIGH)
    assert precision_of(("highest", None)) == (Precision.HIGHEST, Precision.DEFAULT)
    assert precision_of("F32_F32_F32") is DotAlgorithmPreset.F32_F32_F32
    with pytest.raises(ValueError, match="precision must be"):
        precision_of("exact")


def test_dot_errors() -> None:
    x = np.ones((2, 3), np.float32)
    with pytest.raises(TypeError, match="equal size"):
        trace(lambda x: dot.dot(x, x), x)
    with pytest.raises(ValueError, match="named twice"):
        trace(lambda x: dot.dot_general(x, x, (((1,), (1,)), ((1,), (1,)))), x)


def test_a_product_of_floats_made_integer_has_no_tangent() -> None:
    x = np.array([[1.5, 2.5], [0.5, 1.0]], np.float32)
    product = dot.dot_general
    jaxpr = trace(lambda x: product(x, x, MATRICES, None, np.int32), x)
    program, mask = ENGINE.jvp(jaxpr, (True,))
    assert mask == (False,)
    assert ENGINE.evaluate(program, [x, x])[0].tolist() == [[3, 6], [1, 2]]


@pytest.mark.parametrize("preferred", [None, np.float32])
def test_a_preferred_type_makes_weak_products_strong(preferred: Any) -> None:
    weak = ShapedArray((2, 2), np.dtype(np.float32), True)
    builder = Builder("a test")
    x = builder.input(weak)
    with interpreting(builder):
        y = dot.dot_general(x, x, MATRICES, preferred_element_type=preferred)
    assert y.aval.weak_type == (preferred is None)
