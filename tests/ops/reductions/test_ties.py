"""Derivatives of extremes among more ties than a narrow float can count."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp


@pytest.mark.parametrize("f", [vnp.max, vnp.min], ids=["max", "min"])
@pytest.mark.parametrize("dtype", [vnp.float16, vnp.bfloat16])
@pytest.mark.parametrize("count", [5_000, 70_000])
def test_ties_are_counted_in_more_digits(f: Any, dtype: Any, count: int) -> None:
    x = vnp.zeros(count, dtype)
    share = np.float32(1 / count).astype(dtype)
    np.testing.assert_array_equal(verax.grad(lambda x: f(x))(x), np.full(count, share))
    tangent = verax.jvp(f, (x,), (vnp.ones_like(x),))[1]
    assert (tangent.item(), tangent.dtype) == (1.0, dtype)
