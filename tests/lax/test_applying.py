"""Functions of the user applied to what is gathered, or called by name."""

from typing import Any

import numpy as np

import verax
from verax import lax


def test_scatter_apply_counts_duplicates() -> None:
    z = np.arange(12, dtype=np.float32).reshape(4, 3)
    rows = lax.ScatterDimensionNumbers((1,), (0,), (0,))

    def apply(z: Any) -> Any:
        places = np.array([[0], [0], [9]])
        return lax.scatter_apply(
            z, places, lambda v: 2 * v + 1, rows, update_shape=(3, 3)
        )

    wanted = z.copy()
    wanted[0] = 2 * (2 * z[0] + 1) + 1
    np.testing.assert_array_equal(apply(z), wanted)
    np.testing.assert_array_equal(verax.jit(apply)(z), wanted)


def test_composite_is_a_call_by_name() -> None:
    scaled = lax.composite(lambda x, factor: x * factor, "my.scaled")
    assert float(scaled(2.0, factor=3.0)) == 6.0
    text = str(verax.make_jaxpr(lambda x: scaled(x, factor=3.0))(2.0))
    assert "my.scaled" in text
    assert float(verax.grad(lambda x: scaled(x, factor=3.0))(2.0)) == 3.0
