"""A Kalman filter and smoother, in a loop and as an associative scan; a fit by vjp."""

from typing import NamedTuple

import verax
import verax.numpy as vnp
from verax import Array, lax, random
from verax.scipy import linalg


class Model(NamedTuple):
    motion: Array
    process: Array
    view: Array
    noise: Array


class Gaussian(NamedTuple):
    mean: Array
    covariance: Array


class Affine(NamedTuple):
    """x to matrix x + offset."""

    matrix: Array
    offset: Array


def model_of(parameters: dict[str, Array]) -> Model:
    dt = 0.1
    motion = vnp.eye(4).at[0, 2].set(dt).at[1, 3].set(dt)
    process = vnp.exp(parameters["process"]) * vnp.eye(4)
    noise = vnp.exp(parameters["noise"]) * vnp.eye(2)
    return Model(motion, process, vnp.eye(2, 4), noise)


def predicted(model: Model, belief: Gaussian) -> Gaussian:
    f = model.motion
    return Gaussian(f @ belief.mean, f @ belief.covariance @ f.T + model.process)


def update(model: Model, prior: Gaussian, seen: Array) -> tuple[Gaussian, Array]:
    h, p = model.view, prior.covariance
    error = seen - h @ prior.mean
    factor = linalg.cho_factor(h @ p @ h.T + model.noise, lower=True)
    gain = linalg.cho_solve(factor, h @ p).T
    spread = vnp.log(vnp.diag(factor[0])).sum()
    fit = -0.5 * error @ linalg.cho_solve(factor, error) - spread
    return Gaussian(prior.mean + gain @ error, p - gain @ h @ p), fit


def filtered(model: Model, seen: Array) -> tuple[Array, Gaussian]:
    def step(belief: Gaussian, y: Array) -> tuple[Gaussian, tuple[Gaussian, Array]]:
        belief, fit = update(model, predicted(model, belief), y)
        return belief, (belief, fit)

    start = Gaussian(vnp.zeros(4), 10.0 * vnp.eye(4))
    _, (beliefs, fits) = lax.scan(step, start, seen)
    return fits.sum(), beliefs


def smoothed(model: Model, beliefs: Gaussian) -> Array:
    """The means given all that was seen, from the end, in log-many steps."""

    def element(belief: Gaussian) -> Affine:
        prior = predicted(model, belief)
        gain = linalg.solve(prior.covariance, model.motion @ belief.covariance).T
        return Affine(gain, belief.mean - gain @ prior.mean)

    def composed(later: Affine, earlier: Affine) -> Affine:
        matrix = earlier.matrix @ later.matrix
        offset = vnp.einsum("...ij,...j->...i", earlier.matrix, later.offset)
        return Affine(matrix, offset + earlier.offset)

    affine = verax.vmap(element)(beliefs)
    last = Affine(vnp.zeros((4, 4)), beliefs.mean[-1])
    affine = verax.tree.map(ended, affine, last)
    return lax.associative_scan(composed, affine, reverse=True).offset


def ended(x: Array, end: Array) -> Array:
    return x.at[-1].set(end)


@verax.jit
def improved(parameters: dict[str, Array], seen: Array) -> dict[str, Array]:
    fit, pull = verax.vjp(lambda p: filtered(model_of(p), seen)[0], parameters)
    (gradient,) = pull(vnp.ones_like(fit))

    def stepped(p: Array, g: Array) -> Array:
        return p + 0.005 * vnp.clip(g, -50, 50)

    return verax.tree.map(stepped, parameters, gradient)


def main() -> float:
    """The error of the smoothed path, as a share of that of what was seen."""
    t = vnp.arange(120) * 0.1
    path = vnp.stack([vnp.sin(t), vnp.cos(0.5 * t)], axis=-1)
    seen = path + 0.2 * random.normal(random.key(0), path.shape)
    parameters = {"process": vnp.array(-3.0), "noise": vnp.array(0.0)}
    for _ in range(30):
        parameters = improved(parameters, seen)
    model = model_of(parameters)
    _, beliefs = filtered(model, seen)
    means = smoothed(model, beliefs)
    _, values, _ = linalg.svd(beliefs.covariance[-1])
    assert values.shape == (4,)
    signs, counts = vnp.unique(vnp.sign(means[:, 2]), return_counts=True)
    assert signs.size == counts.size
    assert counts.sum() == 120
    errors = vnp.abs(means[:, :2] - path).mean(), vnp.abs(seen - path).mean()
    return float(errors[0] / errors[1])
