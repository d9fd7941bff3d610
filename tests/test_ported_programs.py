"""Programs written for JAX, with other imports only; the numbers are those of jax 0.12.

Fixed points differentiated implicitly, a Kalman filter fitted by its likelihood, and a
transformer whose layers are a rematerialised scan under vmap.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import verax as jax
import verax.numpy as jnp
from verax import lax, nn, random
from verax.scipy.linalg import cho_factor, cho_solve


def close(result: Any, expected: Any, tolerance: float = 1e-4) -> None:
    np.testing.assert_allclose(np.asarray(result), expected, tolerance, tolerance)


# --------------------------------------------------------------- implicit derivatives


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def fixed_point(f: Callable[..., Any], a: Any, guess: Any) -> Any:
    def go_on(carry: Any) -> Any:
        before, x = carry
        return jnp.max(jnp.abs(before - x)) > 1e-6

    def body(carry: Any) -> Any:
        _, x = carry
        return x, f(a, x)

    return lax.while_loop(go_on, body, (guess, f(a, guess)))[1]


def forward(f: Callable[..., Any], a: Any, guess: Any) -> Any:
    x = fixed_point(f, a, guess)
    return x, (a, x)


def backward(f: Callable[..., Any], saved: Any, x_bar: Any) -> Any:
    a, x = saved
    _, pull = jax.vjp(lambda a: f(a, x), a)
    total = fixed_point(functools.partial(adjoint, f), (a, x, x_bar), x_bar)
    (a_bar,) = pull(total)
    return a_bar, jnp.zeros_like(x)


def adjoint(f: Callable[..., Any], packed: Any, u: Any) -> Any:
    a, x, x_bar = packed
    _, pull = jax.vjp(lambda x: f(a, x), x)
    return x_bar + pull(u)[0]


fixed_point.defvjp(forward, backward)


def root(a: Any) -> Any:
    return fixed_point(lambda a, x: 0.5 * (x + a / x), a, a)


def test_implicit_derivatives() -> None:
    close(root(2.0), 2**0.5)
    close(jax.grad(root)(2.0), 0.5 * 2**-0.5)
    close(jax.grad(jax.grad(root))(2.0), -0.25 * 2**-1.5)
    points = jnp.array([1.0, 2.0, 3.0])
    close(jax.jit(jax.vmap(jax.grad(root)))(points), 0.5 * np.asarray(points) ** -0.5)


def test_a_network_that_is_a_fixed_point() -> None:
    def layer(a: Any, z: Any) -> Any:
        return jnp.tanh(a["w"] @ z + a["x"])

    def total(a: Any) -> Any:
        return fixed_point(layer, a, jnp.zeros(2)).sum()

    a = {"w": jnp.array([[0.2, -0.4], [0.1, 0.3]]), "x": jnp.array([1.0, -0.5])}
    slope = jax.jit(jax.grad(total))(a)
    close(total(a), 0.36914474)
    close(slope["x"], [0.25388616, 0.8513184])
    close(slope["w"], [[0.22372125, -0.13000052], [0.75017095, -0.43591124]])


# ----------------------------------------------------------------------- Kalman filter


class Model(NamedTuple):
    """x' = A x + noise of covariance Q; y = C x + noise of covariance R."""

    A: Any
    Q: Any
    C: Any
    R: Any


def kalman(model: Model, ys: Any) -> Any:
    def step(carry: Any, y: Any) -> Any:
        mean, cov, total = carry
        mean, cov = model.A @ mean, model.A @ cov @ model.A.T + model.Q
        spread = model.C @ cov @ model.C.T + model.R
        factor = cho_factor(spread, lower=True)
        gain = cho_solve(factor, model.C @ cov).T
        rest = y - model.C @ mean
        volume = jnp.linalg.slogdet(2 * jnp.pi * spread)[1]
        total = total - 0.5 * (rest @ cho_solve(factor, rest) + volume)
        mean, cov = mean + gain @ rest, cov - gain @ spread @ gain.T
        return (mean, cov, total), mean

    (_, _, total), means = lax.scan(step, (jnp.zeros(2), jnp.eye(2), 0.0), ys)
    return total, means


def likelihood(theta: Any) -> Any:
    q, r = jnp.exp(theta)
    turn = jnp.array([[1.0, 0.1], [0.0, 1.0]])
    model = Model(turn, q * jnp.eye(2), jnp.array([[1.0, 0.0]]), r * jnp.eye(1))
    return kalman(model, jnp.sin(jnp.arange(8.0))[:, None])[0]


@pytest.mark.slow(jaxlib=True)
def test_a_kalman_filter_is_fitted() -> None:
    value, slope = jax.value_and_grad(likelihood)(jnp.array([-1.0, 0.0]))
    close(value, -11.265175)
    close(slope, [-0.6785633, -1.8050102], 1e-3)

    def climb(theta: Any, _: None) -> Any:
        value, slope = jax.value_and_grad(likelihood)(theta)
        return theta + 0.05 * slope, value

    _, values = lax.scan(climb, jnp.array([-1.0, 0.0]), None, length=5)
    assert (np.diff(np.asarray(values)) > 0).all()


# ------------------------------------------------------------------------- transformer


class Config(NamedTuple):
    """Sizes; as a pytree its numbers stay numbers under `vmap(in_axes=None)`."""

    vocab: int = 7
    dim: int = 8
    heads: int = 2
    layers: int = 2
    rate: float = 0.1


def initial(key: Any, config: Config) -> Any:
    dim = config.dim
    sizes = {
        "qkv": (dim, 3 * dim),
        "out": (dim, dim),
        "up": (dim, 16),
        "down": (16, dim),
    }

    def layer(key: Any) -> Any:
        keys = random.split(key, len(sizes))
        draw = nn.initializers.lecun_normal()
        return {n: draw(k, s) for k, (n, s) in zip(keys, sizes.items(), strict=True)}

    embed, layers = random.split(key)
    return {
        "embed": random.normal(embed, (config.vocab, dim)),
        "layers": jax.vmap(layer)(random.split(layers, config.layers)),
    }


def attention(p: Any, x: Any, heads: int) -> Any:
    length, dim = x.shape
    parts = jnp.split(x @ p["qkv"], 3, axis=-1)
    q, k, v = (part.reshape(length, heads, dim // heads) for part in parts)
    scores = jnp.einsum("qhd,khd->hqk", q, k) / np.sqrt(dim // heads)
    seen = jnp.tril(jnp.ones((length, length), bool))
    weights = nn.softmax(jnp.where(seen, scores, jnp.finfo(scores.dtype).min))
    return jnp.einsum("hqk,khd->qhd", weights, v).reshape(length, dim) @ p["out"]


def logits(params: Any, tokens: Any, config: Config, key: Any) -> Any:
    @functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable)
    def block(carry: Any, p: Any) -> Any:
        x, key = carry
        key, own = random.split(key)
        x = x + attention(p, nn.standardize(x), config.heads)
        h = nn.gelu(nn.standardize(x) @ p["up"])
        kept = random.bernoulli(own, 1 - config.rate, h.shape)
        h = jnp.where(kept, h / (1 - config.rate), 0.0)
        return (x + h @ p["down"], key), jnp.abs(h).mean()

    start = params["embed"][tokens], key
    (x, _), activity = lax.scan(block, start, params["layers"])
    return x @ params["embed"].T, activity


def loss(params: Any, batch: Any, config: Config, key: Any) -> Any:
    keys = random.split(key, batch.shape[0])
    over = jax.vmap(logits, (None, 0, None, 0))
    actual, activity = over(params, batch[:, :-1], config, keys)
    log_p = jnp.take_along_axis(nn.log_softmax(actual), batch[:, 1:, None], axis=-1)
    return -log_p.mean(), {"activity": activity.mean(0), "config": "small"}


@functools.partial(jax.jit, static_argnames="config", donate_argnums=0)
def descend(params: Any, batch: Any, key: Any, *, config: Config) -> Any:
    slopes = jax.value_and_grad(loss, has_aux=True)
    (value, aux), slope = slopes(params, batch, config, key)
    new = jax.tree.map(lambda p, g: p - 0.05 * g, params, slope)
    return new, value, aux["activity"]


@pytest.mark.slow(jaxlib=True)
def test_a_transformer_learns() -> None:
    config, key = Config(), random.key(0)
    params = initial(key, config)
    batch = random.randint(random.key(1), (4, 6), 0, config.vocab)
    seen = []
    for i in range(3):
        own = random.fold_in(key, i)
        params, *rest = descend(params, batch, own, config=config)
        seen.append(rest)
    close([value for value, _ in seen], [9.3521414, 7.3321648, 3.6908128], 1e-3)
    close(seen[-1][1], [0.43121105, 0.51179832], 1e-3)
