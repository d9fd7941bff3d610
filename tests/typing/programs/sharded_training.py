"""Training on a mesh: parameters everywhere, data split, gradients added up."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import verax
import verax.numpy as vnp
from verax import Array, lax, nn, random
from verax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

type Params = list[dict[str, Array]]
type Step = Callable[[Params, Array, Array], tuple[Params, Array]]


def init(key: Array, sizes: list[int]) -> Params:
    def layer(key: Array, size: int, out: int) -> dict[str, Array]:
        scale = vnp.sqrt(2.0 / size)
        return {"w": scale * random.normal(key, (size, out)), "b": vnp.zeros(out)}

    keys = random.split(key, len(sizes) - 1)
    pairs = pairwise(sizes)
    return [layer(key, *pair) for key, pair in zip(keys, pairs, strict=True)]


def predict(params: Params, x: Array) -> Array:
    *hidden, last = params
    for layer in hidden:
        x = verax.checkpoint(nn.silu)(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]


def loss(params: Params, x: Array, y: Array) -> Array:
    return vnp.mean((predict(params, x) - y) ** 2)


def step_on(mesh: Mesh, rate: float) -> Step:
    @partial(
        verax.shard_map,
        mesh=mesh,
        in_specs=(P(), P("data"), P("data")),
        out_specs=(P(), P()),
    )
    def step(params: Params, x: Array, y: Array) -> tuple[Params, Array]:
        value, gradient = verax.value_and_grad(loss)(params, x, y)
        gradient = lax.pmean(gradient, "data")
        params = verax.tree.map(lambda p, g: p - rate * g, params, gradient)
        return params, lax.pmean(value, "data")

    return verax.jit(step)


def waves(count: int) -> tuple[Array, Array]:
    x = vnp.linspace(-1.0, 1.0, count)[:, None]
    return x, vnp.sin(4 * x)


def main() -> float:
    """The loss after training, as a share of that before."""
    count = max(n for n in (1, 2, 4, 8) if n <= verax.device_count())
    mesh = verax.make_mesh((count,), ("data",), (AxisType.Auto,))
    split, whole = (NamedSharding(mesh, spec) for spec in (P("data"), P()))
    x, y = (verax.device_put(part, split) for part in waves(64))
    params: Params = verax.device_put(init(random.key(0), [1, 32, 32, 1]), whole)
    step = step_on(mesh, 0.05)
    history: list[Array] = []
    for _ in range(300):
        params, value = step(params, x, y)
        history.append(value)
    assert x.sharding.is_equivalent_to(split, x.ndim)
    assert {shard.data.shape for shard in x.addressable_shards} == {(64 // count, 1)}
    assert all(not leaf.is_deleted() for leaf in verax.tree.leaves(params))
    return float(history[-1] / history[0])
