"""Accuracy asked of elementwise functions."""

import pytest

from verax import lax


def test_accuracy_is_a_mode() -> None:
    assert lax.exp(1.0, accuracy=lax.AccuracyMode.HIGHEST) == lax.exp(1.0)
    with pytest.raises(NotImplementedError, match="no proven error bound"):
        lax.tanh(1.0, accuracy=lax.Tolerance(ulps=2))
