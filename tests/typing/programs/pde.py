"""Reaction and diffusion on a line: implicit steps by Newton's method, and modes."""

from collections.abc import Callable
from typing import NamedTuple

import verax
import verax.numpy as vnp
from verax import Array, lax
from verax.scipy import linalg

type Residual = Callable[[Array], Array]


class Newton(NamedTuple):
    x: Array
    residual: Array
    steps: Array


def grid(count: int) -> tuple[Array, float]:
    points, gap = vnp.linspace(0.0, 1.0, count, retstep=True)
    return points, float(gap)


def laplacian(u: Array, gap: float) -> Array:
    inner = (u[2:] - 2 * u[1:-1] + u[:-2]) / gap**2
    return vnp.pad(inner, 1)


def reaction(kind: Array, u: Array) -> Array:
    """The source: none, logistic growth, or two stable states."""
    branches: list[Callable[[Array], Array]] = [
        vnp.zeros_like,
        lambda u: 20.0 * u * (1 - u),
        lambda u: 40.0 * u * (1 - u) * (u - 0.3),
    ]
    return lax.switch(kind, branches, u)


def newton(residual: Residual, start: Array, tolerance: float) -> Newton:
    def unfinished(state: Newton) -> Array:
        small = vnp.abs(state.residual).max() < tolerance
        return ~small & (state.steps < 10)

    def improved(state: Newton) -> Newton:
        value, push = verax.linearize(residual, state.x)
        matrix = verax.vmap(push, out_axes=1)(vnp.eye(state.x.size))
        x = state.x - linalg.solve(matrix, value)
        return Newton(x, residual(x), state.steps + 1)

    first = Newton(start, residual(start), vnp.array(0))
    return lax.while_loop(unfinished, improved, first)


def advance(u: Array, kind: Array, gap: float, dt: float) -> tuple[Array, Array]:
    def residual(new: Array) -> Array:
        change = laplacian(new, gap) * 0.05 + reaction(kind, new)
        return new - u - dt * change

    state = newton(residual, u, 1e-5)
    return state.x, state.steps


@verax.jit(static_argnames=("gap", "steps"))
def solve(u: Array, kind: Array, gap: float, steps: int) -> tuple[Array, Array]:
    def step(u: Array, _: None) -> tuple[Array, Array]:
        return advance(u, kind, gap, 0.01)

    return lax.scan(step, u, length=steps)


def modes(count: int, gap: float) -> tuple[Array, Array]:
    """The lowest modes of diffusion, by the eigenvectors of the Laplacian."""
    matrix = verax.jacobian(lambda u: laplacian(u, gap))(vnp.zeros(count))
    values, vectors = linalg.eigh(-matrix[1:-1, 1:-1])
    return values[:3], vectors[:, :3]


def main() -> float:
    """How far the front has come, as a mean over the three kinds of source."""
    points, gap = grid(48)
    start = vnp.exp(-100 * (points - 0.2) ** 2)
    kinds = vnp.arange(3)
    final, counts = verax.vmap(solve, in_axes=(None, 0, None, None))(
        start, kinds, gap, 20
    )
    assert vnp.atleast_2d(final).shape == (3, 48)
    assert counts.max() < 10
    values, _ = modes(48, gap)
    assert vnp.allclose(values, vnp.pi**2 * vnp.arange(1, 4) ** 2, rtol=0.05)
    factor = linalg.cho_factor(vnp.eye(48) - 0.01 * second_difference(48, gap))
    smooth = linalg.cho_solve(factor, final[1])
    mean, weights = vnp.average(points, weights=smooth, returned=True)
    assert weights > 0
    x, t = vnp.meshgrid(points, vnp.arange(20.0))
    assert x.shape == t.shape == (20, 48)
    return float(mean)


def second_difference(count: int, gap: float) -> Array:
    off = vnp.ones(count - 1)
    bands = vnp.diag(off, 1) + vnp.diag(off, -1) - 2 * vnp.eye(count)
    return bands / gap**2
