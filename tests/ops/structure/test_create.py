"""Filled and counted arrays: shapes, also as one integer."""

from typing import Any, cast

import numpy as np
import pytest

import verax.numpy as vnp
from verax import lax


def test_a_shape_may_be_one_integer() -> None:
    sizes: list[Any] = [3, np.int32(3), vnp.asarray(3)]
    for n in sizes:
        assert lax.full(n, 1.0).shape == (3,)
        assert lax.full_like(vnp.ones(2), 1, shape=n).shape == (3,)
        assert lax.broadcasted_iota(int, n, 0).tolist() == [0, 1, 2]
        assert lax.reshape(vnp.ones((3, 1)), n).shape == (3,)
    assert lax.full((), 1.0).shape == ()
    with pytest.raises(TypeError, match="shape must be a sequence of integers"):
        lax.full(cast(Any, "3"), 1.0)
    with pytest.raises(TypeError, match="shape must be a sequence of integers"):
        lax.full(cast(Any, 3.0), 1.0)
    with pytest.raises(ValueError, match="negative"):
        lax.full(-3, 1.0)
