"""What is read in several places is stored; a program computes what it did."""

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


def windows(x: Array) -> Array:
    """Weighted neighbours of each element that has all of them, by slices."""
    rows, columns = x.shape
    places = [(i, j) for i in range(3) for j in range(3)]
    parts = [x[i : rows - 2 + i, j : columns - 2 + j] for i, j in places]
    return sum([part * (k + 1.0) for k, part in enumerate(parts[1:])], parts[0])


def test_what_windows_read_is_stored() -> None:
    """XLA computes it for each place of a window: 40 times as long for `tanh`."""
    assert barriers(lambda x: windows(vnp.exp(x))) == 1
    assert barriers(lambda x: windows(windows(x))) == 1
    assert barriers(lambda x: windows(x * x[0] + vnp.flip(x))) == 1
    # A slice that is cut again is read where that is read.
    assert barriers(lambda x: windows(vnp.exp(x)[:, 1:])) == 1


def test_parts_that_make_a_whole_are_computed_once_anyway() -> None:
    assert barriers(lambda x: vnp.split(vnp.exp(x), 2)) == 0
    assert barriers(lambda x: vnp.exp(x)[::2] + vnp.exp(x)[1::2]) == 0
    assert barriers(lambda x: windows(x + 1)) == 0


def test_a_loop_that_pads_does_not_compute_much() -> None:
    assert barriers(lambda x: vnp.pad(vnp.tanh(x), 1)) == 1
    assert barriers(lambda x: vnp.pad(x * x[:, :1] - x[:1], 1)) == 1
    assert barriers(lambda x: vnp.pad(vnp.tanh(x), ((1, 1), (0, 1)))) == 0
    assert barriers(lambda x: vnp.pad(windows(x) * 2 + x[0, 0], 1)) == 0


def test_what_several_such_loops_read_is_stored_once() -> None:
    def both(x: Array) -> Array:
        y = x * x[:, :1] - x[:1]
        return vnp.pad(y * 2, 1) + vnp.pad(y * 3, 1)

    assert barriers(both) == 1


def test_what_a_convolution_copies_is_stored() -> None:
    """A constant in the loop that copies makes it several times as slow."""

    def conv(x: Array, layout: str = "NCHW") -> Array:
        k = lax.optimization_barrier(x[:3, :3, :3, :3])
        specs = (layout, "OIHW", layout)
        return lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=specs)

    first, last = np.ones((8, 3, 16, 16), "f4"), np.ones((8, 16, 16, 3), "f4")
    before = barriers(conv, first)
    assert barriers(lambda x: conv(vnp.maximum(x, 0)), first) == before + 1
    assert barriers(lambda x: conv(vnp.maximum(x, 0), "NHWC"), last) == before


def test_what_several_loops_read_is_stored_where_it_takes_long() -> None:
    def sums(x: Array) -> Array:
        """Weighted neighbours, whose sign and square two other arrays need."""
        y = windows(x) - windows(vnp.flip(x))
        kept = vnp.where(y > 0, y, 0)
        return vnp.dot(kept, vnp.ones((kept.shape[1], 3))).sum() + vnp.cumsum(y * y)

    assert barriers(sums) == 1
    assert barriers(lambda x: (windows(x) + 1) * 2) == 0
    assert barriers(lambda x: (vnp.cumsum(x + 1), vnp.cumsum((x + 1) * 2))) == 0


def test_derivatives_of_what_is_stored() -> None:
    def total(x: Array) -> Array:
        return (windows(vnp.exp(windows(vnp.sin(x)))) ** 2).sum()

    expected = verax.jit(verax.grad(total), cpu_lowerings="xla")(X)
    np.testing.assert_allclose(verax.jit(verax.grad(total))(X), expected, rtol=1e-4)


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


def test_sizes_that_are_not_known_are_left_alone() -> None:
    (n,) = verax.export.symbolic_shape("n")

    def f(x: Any) -> Array:
        wide = vnp.broadcast_to(vnp.exp(X)[None], (x.shape[0], *X.shape))
        return vnp.pad(vnp.tanh(wide[:, 1:] * x[:, None, None]), 1)

    jaxpr = verax.make_jaxpr(f)(verax.ShapeDtypeStruct((n,), "float32")).jaxpr
    assert "optimization_barrier" not in str(with_stored_pieces(jaxpr))
