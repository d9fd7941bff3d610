"""Products of short floats that are summed in float32, in every place of dimensions."""

from itertools import product

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e5m2"])
def test_transposes_folded_into_products_of_short_floats_compile(dtype: str) -> None:
    x = vnp.array(np.arange(64.0).reshape(8, 8) / 64, vnp.float32)

    def f(x: verax.Array, left: int, right: int) -> verax.Array:
        y, z = x.astype(dtype), (x * 2).astype(dtype)
        numbers = (((left,), (right,)), ((), ()))
        return lax.dot_general(y, z, numbers, preferred_element_type=vnp.float32).T

    for left, right in product((0, 1), repeat=2):
        compiled = verax.jit(f, static_argnums=(1, 2))(x, left, right)
        np.testing.assert_allclose(compiled, f(x, left, right), rtol=1e-6)
