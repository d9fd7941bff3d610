"""What is cut and joined in several ways is stored; a program computes what it did."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from tests.transforms.passes.values import assert_same_values
from verax import Array, lax
from verax.transforms.passes.pieces import LARGE, with_stored_pieces

X: Any = np.random.default_rng(0).standard_normal((80, 60)).astype("f4")
assert X.size >= LARGE


def stencil(x: Array) -> Array:
    """Neighbours along both dimensions."""
    sides = [vnp.roll(x, shift, axis) for shift in (1, -1) for axis in (0, 1)]
    return sum(sides, -4 * x)


def barriers(function: Callable[[Any], object], x: Any = X) -> int:
    """How many values the pass stores in a program, which computes the same."""
    closed = verax.make_jaxpr(function)(x)
    after = with_stored_pieces(closed.jaxpr)
    assert_same_values(closed, after, x)
    return [eqn.primitive.name for eqn in after.eqns].count("optimization_barrier")


def test_a_cotangent_of_rolled_arrays_is_stored() -> None:
    gradient = verax.grad(lambda x: (stencil(x) ** 2).sum())
    assert barriers(gradient) == 1
    np.testing.assert_array_equal(
        verax.jit(gradient)(X), verax.jit(gradient, cpu_lowerings="xla")(X)
    )


def test_a_stencil_of_a_stencil_stores_the_inner_one() -> None:
    assert barriers(lambda x: stencil(stencil(x))) == 1
    assert barriers(lambda x: stencil(stencil(x)) * stencil(x)) == 1


def test_loops_store_it_inside() -> None:
    def steps(x: Array) -> Array:
        return lax.fori_loop(0, 3, lambda i, x: stencil(stencil(x)), x)

    closed = verax.make_jaxpr(steps)(X)
    after = with_stored_pieces(closed.jaxpr)
    assert_same_values(closed, after, X)
    assert str(after).count("optimization_barrier") == 1


@pytest.mark.parametrize(
    "function",
    [
        stencil,
        lambda x: stencil(x * 2),
        lambda x: vnp.roll(stencil(x), 1, 0),
        lambda x: stencil(x + x[::-1]),
        lambda x: (lambda y: y[1:] + y[:-1])(stencil(x)),
        lambda x: (lambda y: vnp.concatenate([y[1:], y[2:], x]))(stencil(x)),
        lambda x: stencil(lax.optimization_barrier(stencil(x))),
    ],
)
def test_others_are_computed_where_they_are_read(
    function: Callable[[Array], Array],
) -> None:
    closed = verax.make_jaxpr(function)(X)
    assert with_stored_pieces(closed.jaxpr) is closed.jaxpr or (
        str(with_stored_pieces(closed.jaxpr)) == str(closed.jaxpr)
    )


def test_small_arrays_are_left_alone() -> None:
    assert barriers(lambda x: stencil(stencil(x)), X[:8, :8]) == 0
