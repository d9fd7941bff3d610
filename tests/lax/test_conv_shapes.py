"""Shapes of convolutions, as the convolutions have them."""

import numpy as np
import pytest

from verax import lax


def test_shapes_of_convolutions() -> None:
    names = ("NHWC", "HWIO", "NHWC")
    x, kernel = np.zeros((2, 9, 8, 3), np.float32), np.zeros((3, 4, 3, 5), np.float32)
    for pad in ("SAME", "VALID"):
        conv = lax.conv_general_dilated(x, kernel, (2, 1), pad, dimension_numbers=names)
        shape = lax.conv_general_shape_tuple(x.shape, kernel.shape, (2, 1), pad, names)
        assert conv.shape == shape
        turned = lax.conv_transpose(x, kernel, (2, 1), pad, dimension_numbers=names)
        assert turned.shape == lax.conv_transpose_shape_tuple(
            x.shape, kernel.shape, (2, 1), pad, names
        )
    with pytest.raises(ValueError, match="exceed the sizes"):
        lax.conv_shape_tuple((1, 1, 2), (1, 1, 1), (1,), [(-2, -2)])
