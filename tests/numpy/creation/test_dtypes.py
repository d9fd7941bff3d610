"""Dtype names and questions about dtypes."""

import pickle
from typing import Any

import numpy as np
import pytest

import verax

jnp: Any = verax.numpy


def test_scalar_types() -> None:
    x = jnp.float16(3)
    assert (x.dtype, x.shape, x.weak_type) == (np.dtype("float16"), (), False)
    assert jnp.float32.dtype == np.dtype("float32")
    assert jnp.bfloat16 == jnp.ones(1, "bfloat16").dtype
    assert np.dtype(jnp.float32) == np.float32
    assert jnp.ones(2, jnp.int8).dtype == jnp.int8
    assert hash(jnp.int8) == hash(np.int8)  # so sets find it, as in JAX
    assert pickle.loads(pickle.dumps(jnp.int8)) == jnp.int8
    assert isinstance(np.int8(1), jnp.int8)


@pytest.mark.parametrize(
    ("below", "above", "expected"),
    [
        (jnp.float32, jnp.floating, True),
        (jnp.bfloat16, jnp.floating, True),
        (jnp.bfloat16, jnp.inexact, True),
        (jnp.int8, jnp.integer, True),
        (jnp.uint8, jnp.signedinteger, False),
        (jnp.bool_, jnp.integer, False),
        (jnp.float32, jnp.float32, True),
        (jnp.float32, jnp.float64, False),
        (jnp.floating, jnp.inexact, True),
        ("complex64", jnp.complexfloating, True),
        (float, jnp.generic, True),
    ],
)
def test_issubdtype(below: Any, above: Any, expected: Any) -> None:
    assert jnp.issubdtype(below, above) is expected


def test_isdtype() -> None:
    assert jnp.isdtype(jnp.bfloat16, "real floating")
    assert jnp.isdtype(jnp.int8, ("bool", "signed integer"))
    assert not jnp.isdtype(jnp.int8, jnp.uint8)
    with pytest.raises(ValueError, match="numeric"):
        jnp.isdtype(jnp.int8, "odd")


def test_promotion() -> None:
    assert jnp.promote_types("int8", "uint8") == np.int16
    assert jnp.promote_types("float16", "bfloat16") == np.float32
    assert jnp.result_type(jnp.int8(1), 2.0) == np.float32
    assert jnp.result_type("int8", 2) == np.int8
    assert jnp.result_type(np.zeros(2), 1) == np.float32
    assert jnp.can_cast("int8", "int16")
    assert not jnp.can_cast("int16", "int8")


def test_limits() -> None:
    assert float(jnp.finfo(jnp.bfloat16).eps) == 0.0078125
    assert jnp.iinfo("int8").max == 127
    with pytest.raises(ValueError, match="finfo"):
        jnp.finfo(int)
