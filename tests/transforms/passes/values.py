"""What tests of passes have in common: a program computes what it did."""

from typing import Any

import numpy as np

from verax import transforms


def assert_same_values(before: Any, after: Any, *args: Any) -> None:
    """Whether two programs give the same bits, and the second is well formed."""
    transforms.check(after)
    pairs = zip(*(transforms.evaluate(p, *args) for p in (before, after)), strict=True)
    for x, y in pairs:
        np.testing.assert_array_equal(x, y)
