"""What errors about tracers advise fits what was asked for."""

from collections.abc import Callable
from typing import Any

import pytest

import verax
import verax.numpy as vnp
from verax.errors import AbstractValueError


@pytest.mark.parametrize(
    ("ask", "advice"),
    [
        (lambda x: vnp.unique(x), r"Pass size=, which fixes the shape"),
        (lambda x: vnp.bincount(x), r"Pass length=, which fixes the shape"),
        (lambda x: vnp.repeat(x, x), r"Pass total_repeat_length=, which fixes"),
        (lambda x: [*range(x[0])], r"for a loop of as many steps, use .*fori_loop"),
        (lambda x: [1, 2][x[0]], r"index a list by a tracer, convert it"),
        (lambda x: vnp.zeros(x[0]), r"static \(static_argnums, static_argnames\)\."),
    ],
)
def test_the_way_out_is_the_one_that_helps(
    ask: Callable[[Any], Any], advice: str
) -> None:
    with pytest.raises(AbstractValueError, match=advice):
        verax.jit(ask)(vnp.array([1, 2, 3]))


def test_an_unbound_axis_names_no_other_library() -> None:
    with pytest.raises(NameError, match="unbound axis name: i") as caught:
        verax.lax.psum(1.0, "i")
    assert "jax." not in str(caught.value)
