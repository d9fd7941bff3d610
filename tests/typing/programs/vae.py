"""A variational autoencoder with parameters in a dataclass, trained on rings."""

from dataclasses import dataclass, field

import numpy as np

import verax
import verax.numpy as vnp
from verax import Array, nn, random
from verax.tree_util import register_dataclass


@register_dataclass
@dataclass(frozen=True)
class Dense:
    kernel: Array
    bias: Array

    def __call__(self, x: Array) -> Array:
        return x @ self.kernel + self.bias


@register_dataclass
@dataclass(frozen=True)
class Vae:
    encoder: list[Dense]
    decoder: list[Dense]
    latent: int = field(default=2, metadata={"static": True})


@verax.custom_vjp
def bounded(x: Array) -> Array:
    """`x`; its gradient is kept between -1 and 1."""
    return x


def bounded_forward(x: Array) -> tuple[Array, None]:
    return x, None


def bounded_backward(_: None, gradient: Array) -> tuple[Array]:
    return (vnp.clip(gradient, -1.0, 1.0),)


bounded.defvjp(bounded_forward, bounded_backward)


def dense(key: Array, size: int, out: int) -> Dense:
    kernel = nn.initializers.glorot_normal()(key, (size, out))
    return Dense(kernel, vnp.zeros(out))


def init(key: Array, pixels: int, hidden: int = 32, latent: int = 2) -> Vae:
    keys = random.split(key, 4)
    encoder = [dense(keys[0], pixels, hidden), dense(keys[1], hidden, 2 * latent)]
    decoder = [dense(keys[2], latent, hidden), dense(keys[3], hidden, pixels)]
    return Vae(encoder, decoder, latent)


def through(layers: list[Dense], x: Array) -> Array:
    for layer in layers[:-1]:
        x = nn.relu(layer(x))
    return layers[-1](x)


def loss(model: Vae, image: Array, key: Array) -> tuple[Array, dict[str, Array]]:
    mean, log_variance = vnp.split(through(model.encoder, image), 2)
    noise = random.normal(key, mean.shape)
    z = mean + vnp.exp(0.5 * log_variance) * noise
    out = bounded(through(model.decoder, z))
    error = -(image * nn.log_sigmoid(out) + (1 - image) * nn.log_sigmoid(-out)).sum()
    divergence = 0.5 * (mean**2 + vnp.exp(log_variance) - log_variance - 1).sum()
    return error + divergence, {"error": error, "divergence": divergence}


def batch_loss(model: Vae, images: Array, key: Array) -> tuple[Array, dict[str, Array]]:
    keys = random.split(key, len(images))
    losses, parts = verax.vmap(loss, in_axes=(None, 0, 0))(model, images, keys)
    return losses.mean(), verax.tree.map(vnp.mean, parts)


@verax.jit
def update(model: Vae, images: Array, key: Array) -> tuple[Vae, dict[str, Array]]:
    derivative = verax.value_and_grad(batch_loss, has_aux=True)
    (value, parts), gradient = derivative(model, images, key)
    model = verax.tree.map(lambda p, g: p - 0.01 * g, model, gradient)
    return model, {**parts, "loss": value}


def rings(count: int, side: int) -> np.ndarray:
    radii = np.linspace(0.3, 0.9, count)[:, None, None]
    line = np.linspace(-1, 1, side)
    distance = np.hypot(line[:, None], line)
    return (np.abs(distance - radii) < 0.2).astype(np.float32).reshape(count, -1)


def main() -> float:
    """The mean loss of the last steps, as a share of that of the first."""
    key, start = random.split(random.key(0))
    images = verax.device_put(rings(64, 12), verax.devices()[0])
    model = init(start, images.shape[1])
    shape = verax.eval_shape(through, model.encoder, images)
    assert shape.shape == (64, 4)
    assert shape.dtype == images.dtype
    history: list[float] = []
    for i in range(150):
        model, parts = update(model, images, random.fold_in(key, i))
        history.append(float(parts["loss"]))
    verax.block_until_ready(model)
    return float(np.mean(history[-20:])) / history[0]
