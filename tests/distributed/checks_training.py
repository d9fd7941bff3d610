"""A small transformer, trained over several processes as in one process alone.

The program is the same everywhere; only the shardings of its arguments differ, and XLA
divides it. So each layout must end where one device ends, within rounding: in float64,
where a gradient that is wrong anywhere is far outside of it.
"""

import os
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import verax
import verax.numpy as vnp
from verax.experimental import checkpoint
from verax.experimental.multihost_utils import sync_global_devices
from verax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

FOLDER = Path(os.environ["CHECKS_FOLDER"])
COUNT, DEVICES = verax.process_count(), verax.device_count()
BLOCKS, HEADS, WIDTH, DEPTH = 2, 8, 4, 32  # HEADS * WIDTH == DEPTH
WORDS, LENGTH, BATCH, STEPS = 24, 6, 16, 3
# Only sums are taken in another order (eps 2.2e-16), and three steps add to that; in
# float32 the largest difference of a weight was 4e-6.
TOLERANCE = 1e-12
verax.config.update("enable_x64", True)

FLAT = verax.make_mesh((DEVICES,), ("data",), (AxisType.Auto,))
WIDE = verax.make_mesh((DEVICES,), ("model",), (AxisType.Auto,))
BOTH = verax.make_mesh((2, COUNT), ("data", "model"), (AxisType.Auto,) * 2)


def normalized(x: Any, scale: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return scale * centred / vnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def attention(block: dict[str, Any], x: Any) -> Any:
    """Causal attention; each head has its own matrices."""
    query, key, value = [
        vnp.einsum("btd,dhw->bhtw", x, block[name])
        for name in ("query", "key", "value")
    ]
    scores = vnp.einsum("bhtw,bhsw->bhts", query, key) / np.sqrt(WIDTH)
    mask = np.tril(np.ones((LENGTH, LENGTH), bool))
    weights = verax.nn.softmax(vnp.where(mask, scores, -1e9))
    mixed = vnp.einsum("bhts,bhsw->bhtw", weights, value)
    return vnp.einsum("bhtw,hwd->btd", mixed, block["join"])


def loss_of(weights: dict[str, Any], words: Any) -> Any:
    """The mean cost of the next word."""
    x = weights["words"][words] + weights["places"]
    for block in weights["blocks"]:
        x = x + attention(block, normalized(x, block["scale"]))
        x = x + verax.nn.gelu(x @ block["in"]) @ block["out"]
    logs = verax.nn.log_softmax(x[:, :-1] @ weights["words"].T)
    return -vnp.take_along_axis(logs, words[:, 1:, None], -1).mean()


# Four programs for each process: without it, LLVM takes most of the time of the test.
@partial(verax.jit, compiler_options={"xla_backend_optimization_level": 0})
def train_step(state: Any, words: Any) -> Any:
    """Gradient descent with momentum."""
    weights, speeds = state
    loss, grads = verax.value_and_grad(loss_of)(weights, words)
    speeds = verax.tree.map(lambda v, g: 0.9 * v + g, speeds, grads)
    weights = verax.tree.map(lambda w, v: w - 0.1 * v, weights, speeds)
    return (weights, speeds), loss


def initial_state() -> Any:
    """Weights and their speeds, in NumPy."""
    source = np.random.default_rng(0)

    def draw(*shape: int) -> np.ndarray:
        return 0.2 * source.normal(size=shape)

    def block() -> dict[str, np.ndarray]:
        heads = {name: draw(DEPTH, HEADS, WIDTH) for name in ("query", "key", "value")}
        return {
            **heads,
            "join": draw(HEADS, WIDTH, DEPTH),
            "scale": np.ones(DEPTH),
            "in": draw(DEPTH, 4 * DEPTH),
            "out": draw(4 * DEPTH, DEPTH),
        }

    weights = {
        "words": draw(WORDS, DEPTH),
        "places": draw(LENGTH, DEPTH),
        "blocks": [block() for _ in range(BLOCKS)],
    }
    return weights, verax.tree.map(np.zeros_like, weights)


def batch_of(step: int) -> np.ndarray:
    source = np.random.default_rng(100 + step)
    return source.integers(0, WORDS, (BATCH, LENGTH)).astype(np.int32)


def places(mesh: Mesh) -> Any:
    """The sharding of each leaf of the state: heads and hidden units over `model`."""
    model = "model" if "model" in mesh.axis_names else None
    specs = {
        **dict.fromkeys(("query", "key", "value"), P(None, model)),
        "join": P(model),
        "in": P(None, model),
        "out": P(model),
    }

    def place(path: Any, leaf: Any) -> NamedSharding:
        return NamedSharding(mesh, specs.get(path[-1].key, P()))

    return verax.tree_util.tree_map_with_path(place, initial_state())


def train(state: Any, steps: range, mesh: Mesh | None = None) -> tuple[Any, list[Any]]:
    """The state after the steps, and the losses; without a mesh on one device."""
    losses = []
    for step in steps:
        words: Any = batch_of(step)
        if mesh is not None:
            split = P("data") if "data" in mesh.axis_names else P()
            words = verax.device_put(words, NamedSharding(mesh, split))
        state, loss = train_step(state, words)
        losses.append(float(loss))
    return state, losses


def train_alone() -> tuple[Any, list[Any]]:
    """What process 0 computes on one device, for all: compiling takes longest."""
    file = FOLDER / "alone"
    if verax.process_index() == 0:
        state, losses = train(initial_state(), range(STEPS))
        file.write_bytes(pickle.dumps((verax.device_get(state), losses)))
    sync_global_devices("trained alone")
    state, losses = pickle.loads(file.read_bytes())
    return state, losses


ALONE, LOSSES = train_alone()


def same(state: Any, losses: list[float]) -> None:
    """All losses, and the parts of the state that are here, are those of one device."""
    np.testing.assert_allclose(losses, LOSSES, rtol=TOLERANCE)
    for x, due in zip(verax.tree.leaves(state), verax.tree.leaves(ALONE), strict=True):
        for shard in x.addressable_shards:
            part = np.asarray(due)[shard.index]
            np.testing.assert_allclose(shard.data, part, atol=TOLERANCE)


def trains_as_alone(mesh: Mesh, after: Mesh) -> Any:
    """Train on one mesh, save after a step, restore on `after`, and go on there.

    What it gives is the state on the first mesh.
    """
    folder = FOLDER / "-".join(f"{name}{size}" for name, size in mesh.shape.items())
    state, losses = train(
        verax.device_put(initial_state(), places(mesh)), range(1), mesh
    )
    checkpoint.save(folder, {"state": state, "step": 1})
    whole, more = train(state, range(1, STEPS), mesh)
    same(whole, losses + more)
    like = verax.tree.map(
        lambda x, place: verax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place),
        initial_state(),
        places(after),
    )
    actual = checkpoint.restore(folder, {"state": like, "step": 0})
    assert actual["step"] == 1
    for x, y in zip(
        verax.tree.leaves(actual["state"]), verax.tree.leaves(like), strict=True
    ):
        assert x.sharding == y.sharding
    restored, more = train(actual["state"], range(actual["step"], STEPS), after)
    same(restored, losses + more)
    return whole


def check_the_losses_fall() -> None:
    assert sorted(LOSSES, reverse=True) == LOSSES


def check_data_parallel() -> None:
    trains_as_alone(FLAT, FLAT)


def check_tensor_parallel() -> None:
    state = trains_as_alone(WIDE, FLAT)
    block = state[0]["blocks"][0]
    assert block["query"].addressable_data(0).shape == (DEPTH, HEADS // DEVICES, WIDTH)
    assert block["out"].addressable_data(0).shape == (4 * DEPTH // DEVICES, DEPTH)


def check_both() -> None:
    trains_as_alone(BOTH, WIDE)
