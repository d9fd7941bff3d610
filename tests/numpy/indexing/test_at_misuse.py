"""Arithmetic with `x.at[index]` itself is an error that says what was meant."""

from collections.abc import Callable
from typing import Any

import pytest

import verax.numpy as vnp


@pytest.mark.parametrize(
    "call",
    [
        lambda at: at + 1,
        lambda at: 1 + at,
        lambda at: at * 2,
        lambda at: 2 * at,
        lambda at: at - 1,
        lambda at: at / 2,
        lambda at: at**2,
    ],
)
@pytest.mark.parametrize("index", [0, slice(1, None)])
def test_an_update_is_no_array(call: Callable[[Any], Any], index: Any) -> None:
    with pytest.raises(TypeError, match=r"read it as x\[index\], or write"):
        call(vnp.ones(3).at[index])
