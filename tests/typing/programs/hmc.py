"""Hamiltonian Monte Carlo: many chains under vmap, draws under scan, dual averaging."""

from collections.abc import Callable
from dataclasses import dataclass

import verax
import verax.numpy as vnp
from verax import Array, lax, random
from verax.tree_util import register_dataclass

type LogDensity = Callable[[Array], Array]


@register_dataclass
@dataclass(frozen=True)
class Phase:
    """A point of phase space with the density there and its gradient."""

    position: Array
    momentum: Array
    log_density: Array
    gradient: Array


@register_dataclass
@dataclass(frozen=True)
class Chain:
    position: Array
    key: Array
    log_step: Array
    accepted: Array


def banana(x: Array) -> Array:
    return -0.5 * (x[0] ** 2 + 4.0 * (x[1] - 0.5 * x[0] ** 2) ** 2)


def leapfrog(density: LogDensity, start: Phase, size: Array, steps: int) -> Phase:
    value_and_gradient = verax.value_and_grad(density)

    def step(i: Array, phase: Phase) -> Phase:
        momentum = phase.momentum + 0.5 * size * phase.gradient
        position = phase.position + size * momentum
        value, gradient = value_and_gradient(position)
        momentum = momentum + 0.5 * size * gradient
        return Phase(position, momentum, value, gradient)

    return lax.fori_loop(0, steps, step, start)


def energy(phase: Phase) -> Array:
    return 0.5 * vnp.vdot(phase.momentum, phase.momentum) - phase.log_density


def transition(density: LogDensity, chain: Chain, adapting: Array) -> Chain:
    key, for_momentum, for_choice, for_length = random.split(chain.key, 4)
    momentum = random.normal(for_momentum, chain.position.shape)
    value, gradient = verax.value_and_grad(density)(chain.position)
    start = Phase(chain.position, momentum, value, gradient)
    jitter = random.uniform(for_length, minval=0.8, maxval=1.2)
    end = leapfrog(density, start, jitter * vnp.exp(chain.log_step), steps=12)
    chance = vnp.exp(vnp.minimum(0.0, energy(start) - energy(end)))
    accept = random.uniform(for_choice) < chance

    def adapted(log_step: Array) -> Array:
        return log_step + 0.05 * (chance - 0.95)

    def kept(log_step: Array) -> Array:
        return log_step

    position = vnp.where(accept, end.position, chain.position)
    log_step = lax.cond(adapting, adapted, kept, chain.log_step)
    return Chain(position, key, log_step, chain.accepted + accept)


def sample(density: LogDensity, key: Array, warmup: int, draws: int) -> Array:
    def step(chain: Chain, i: Array) -> tuple[Chain, Array]:
        chain = transition(density, chain, i < warmup)
        return chain, chain.position

    first, rest = random.split(key)
    start = Chain(random.normal(first, (2,)), rest, vnp.log(0.1), vnp.array(0))
    _, positions = lax.scan(step, start, vnp.arange(warmup + draws))
    return positions[warmup:]


@verax.jit(static_argnames=("warmup", "draws"))
def sample_banana(keys: Array, warmup: int, draws: int) -> Array:
    return verax.vmap(lambda key: sample(banana, key, warmup, draws))(keys)


def main() -> float:
    """The mean of the second coordinate, which is 0.5."""
    keys = random.split(random.key(3), 16)
    draws = sample_banana(keys, warmup=200, draws=400)
    draws = verax.block_until_ready(draws)
    counts, _, _ = vnp.histogram2d(draws[..., 0].ravel(), draws[..., 1].ravel(), bins=8)
    assert counts.sum() == draws.size // 2
    hessian = verax.hessian(banana)(vnp.zeros(2))
    assert vnp.allclose(hessian, vnp.diag(vnp.array([-1.0, -4.0])))
    return float(draws[..., 1].mean())
