"""Law: a function and its rules read the same state, whoever calls the function.

Programs make functions with rules in Python loops, over what the loops change. The
value beside a gradient is the value, bit for bit; and rules that read the loop's
variables from around them mean what rules mean that are made by a function for each.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import verax
from tests.fuzz.programs import flat_source
from tests.fuzz.running import XS, X, space_of

SPACE = space_of("verax")
some = settings(max_examples=max(10, settings().max_examples // 4), deadline=None)


WAYS: tuple[Callable[[Any], object], ...] = (
    lambda f: verax.make_jaxpr(verax.grad(f))(X),
    lambda f: verax.make_jaxpr(verax.grad(verax.jit(f)))(X),
    lambda f: verax.make_jaxpr(verax.vmap(verax.grad(f)))(XS),
    lambda f: verax.make_jaxpr(verax.grad(lambda x: verax.grad(f)(x)[0]))(X),
)


def program(seed: int, late: bool) -> Any:
    space = dict(SPACE)
    exec(flat_source(seed, late).text, space)
    return space["f"]


def bits(x: Any) -> bytes:
    return np.asarray(x).tobytes()


@some
@given(st.integers(0, 1 << 32))
def test_the_value_beside_a_gradient_is_the_value(seed: int) -> None:
    f = program(seed, late=True)
    value, slope = verax.value_and_grad(f)(X)
    assert bits(value) == bits(f(X))
    bound = program(seed, late=False)
    assert bits(bound(X)) == bits(value)
    assert bits(verax.grad(bound)(X)) == bits(slope)
    later = verax.linearize(verax.jit(bound), X)[0]
    np.testing.assert_allclose(later, value, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@some
@given(st.integers(0, 1 << 32))
def test_derivatives_of_programs_read_what_the_program_read(seed: int) -> None:
    late, bound = program(seed, late=True), program(seed, late=False)
    for way in WAYS:
        # Rules that wait are equal only for equal code; what they say is written out.
        written = [str(way(f)) for f in (late, bound)]
        assert written[0] == written[1]
