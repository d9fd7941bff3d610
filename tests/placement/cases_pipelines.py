"""Pipelines on eight devices are loops over blocks on one."""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from property_tests.levels import rarely
from verax import lax
from verax.distributed import pipeline, pipeline_value_and_grad
from verax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

DEPTH, WIDTH, ROWS = 8, 6, 16
SCHEDULES = ("gpipe", "1f1b")
MESHES = [((4,), ("stage",)), ((2, 4), ("data", "stage"))]
draw = np.random.default_rng(0).normal


@pytest.fixture(autouse=True)
def doubles() -> Any:
    """In float64, rounding hides no wrong gradient."""
    with verax.enable_x64(True):
        yield


def block(own: dict[str, Any], h: Any) -> Any:
    return vnp.tanh(h @ own["w"] + own["b"])


def mse(h: Any, y: Any) -> Any:
    return vnp.mean((h - y) ** 2)


def looped(block: Callable[[Any, Any], Any], params: Any, x: Any) -> Any:
    return lax.scan(lambda h, own: (block(own, h), None), x, params)[0]


def looped_loss(params: Any, x: Any, y: Any) -> Any:
    return mse(looped(block, params, x), y)


PARAMS = {"w": draw(size=(DEPTH, WIDTH, WIDTH)) / 2, "b": draw(size=(DEPTH, WIDTH))}
X, Y = draw(size=(2, ROWS, WIDTH))


def at_once(*functions: Callable[..., Any]) -> Callable[..., list[Any]]:
    """One program for what these functions give: compiling takes longest."""
    return verax.jit(lambda *args: [f(*args) for f in functions])


def line(size: int) -> Mesh:
    return verax.make_mesh((size,), ("stage",))


def same(actual: Any, expected: Any, tolerance: float = 1e-12) -> None:
    assert verax.tree.structure(actual) == verax.tree.structure(expected)
    for a, b in zip(
        verax.tree.leaves(actual), verax.tree.leaves(expected), strict=True
    ):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        a, b = np.asarray(a, float), np.asarray(b, float)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("stages", "microbatches"),
    rarely(
        product([1, 2, 4], [1, 2, 8]),
        *[(1, 1), (1, 2), (1, 8), (2, 1), (2, 2), (4, 2)],
    ),
)
def test_values_and_gradients(stages: int, microbatches: int) -> None:
    mesh = line(stages)
    model = pipeline(block, mesh=mesh, microbatches=microbatches)
    by_hand = verax.value_and_grad(lambda p, x, y: mse(model(p, x), y), (0, 1))
    steps = [
        pipeline_value_and_grad(
            block, mse, mesh=mesh, microbatches=microbatches, schedule=schedule
        )
        for schedule in SCHEDULES
    ]
    out, both, *others = at_once(lambda p, x, y: model(p, x), by_hand, *steps)(
        PARAMS, X, Y
    )
    same(out, looped(block, PARAMS, X))
    expected = verax.value_and_grad(looped_loss, (0, 1))(PARAMS, X, Y)
    same(both, expected)
    for other in others:
        same(other, (expected[0], expected[1][0]))


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_another_axis_splits_the_rows(kind: AxisType) -> None:
    mesh = verax.make_mesh((2, 4), ("data", "stage"), (kind, kind))
    params = verax.device_put(PARAMS, NamedSharding(mesh, P("stage")))
    x, y = verax.device_put((X, Y), NamedSharding(mesh, P("data")))
    model = pipeline(block, mesh=mesh, microbatches=4)
    steps = [
        pipeline_value_and_grad(
            block, mse, mesh=mesh, microbatches=4, schedule=schedule
        )
        for schedule in SCHEDULES
    ]
    together = at_once(lambda p, x, y: model(p, x), steps[0])
    out, *pairs = [*together(params, x, y), steps[1](params, x, y)]
    same(out, looped(block, PARAMS, X))
    assert out.addressable_data(0).shape == (ROWS // 2, WIDTH)
    due = verax.value_and_grad(looped_loss)(PARAMS, X, Y)
    for loss, grads in pairs:
        same((loss, grads), due)
        assert grads["w"].addressable_data(0).shape == (DEPTH // 4, WIDTH, WIDTH)


@pytest.mark.parametrize(("shape", "names"), MESHES)
def test_a_tick_sends_one_microbatch_on(
    shape: tuple[int, ...], names: tuple[str, ...]
) -> None:
    """Each loop over ticks has one collective for each way, whatever axes there are."""
    mesh = verax.make_mesh(shape, names)
    params = verax.device_put(PARAMS, NamedSharding(mesh, P("stage")))
    x, y = verax.device_put((X, Y), NamedSharding(mesh, P(*names[:-1])))
    model = pipeline(block, mesh=mesh, microbatches=4)
    forward = model.lower(params, x).compile().as_text()
    assert forward.count(" collective-permute(") == 1
    for schedule, count in (("gpipe", 2), ("1f1b", 4)):
        step = pipeline_value_and_grad(
            block, mse, mesh=mesh, microbatches=4, schedule=schedule
        )
        text = step.lower(params, x, y).compile().as_text()
        assert text.count(" collective-permute(") == count
        assert " all-gather(" not in forward + text


def test_the_mesh_in_force_and_the_name_of_the_axis() -> None:
    model = pipeline(block, axis="pipe", microbatches=2)
    with verax.set_mesh(verax.make_mesh((4, 2), ("pipe", "rest"))):
        same(model(PARAMS, X), looped(block, PARAMS, X))


def test_other_transformations() -> None:
    model = pipeline(block, mesh=line(2), microbatches=2)
    loop = partial(looped, block)
    tangents = verax.tree.map(np.ones_like, (PARAMS, X))
    pushed = [partial(verax.jvp, f) for f in (model, loop)]
    same(*at_once(*pushed)((PARAMS, X), tangents))
    batch = np.stack([X, Y])
    same(
        verax.vmap(model, (None, 0))(PARAMS, batch),
        verax.vmap(loop, (None, 0))(PARAMS, batch),
    )

    def curvature(f: Any) -> Any:
        return verax.grad(lambda b: verax.grad(energy(f))(b).sum())

    def energy(f: Any) -> Any:
        return lambda b: f({**PARAMS, "b": b}, X).sum()

    same(*at_once(curvature(model), curvature(loop))(PARAMS["b"]))


def test_narrow_floats() -> None:
    weights, x = vnp.asarray(PARAMS["w"], vnp.bfloat16), vnp.asarray(X, vnp.bfloat16)

    def narrow(w: Any, h: Any) -> Any:
        return vnp.tanh(h @ w)

    def loss(h: Any) -> Any:
        return vnp.mean(h.astype(vnp.float32) ** 2)

    model = pipeline(narrow, mesh=line(2), microbatches=4)
    steps = [
        pipeline_value_and_grad(
            narrow, loss, mesh=line(2), microbatches=4, schedule=schedule
        )
        for schedule in SCHEDULES
    ]
    out, *actual = at_once(model, *steps)(weights, x)
    same(out, looped(narrow, weights, x), 0)
    due = verax.value_and_grad(lambda w: loss(looped(narrow, w, x)))(weights)
    for one in actual:
        same(one, due, 2**-8)  # the spacing of bfloat16 at 1


def embed(table: Any, words: dict[str, Any]) -> Any:
    return {"h": vnp.exp(table[words["at"]]), "at": words["at"], "on": words["at"] > 1}


def mixed(own: Any, h: dict[str, Any]) -> Any:
    row = h["h"] / vnp.sqrt((h["h"] ** 2).sum(-1, keepdims=True))
    return {**h, "h": vnp.exp(row @ own) + h["at"][:, None]}


def head(weights: Any, h: dict[str, Any]) -> Any:
    return vnp.where(h["on"][:, None], vnp.log(h["h"]), 0) @ weights


@pytest.mark.parametrize(
    ("stages", "microbatches", "schedule"),
    rarely(
        [(*sizes, s) for sizes in [(1, 2), (4, 1), (8, 16)] for s in SCHEDULES],
        *[(1, 2, "gpipe"), (4, 1, "1f1b"), (8, 16, "gpipe")],
    ),
)
def test_first_and_last_layers(stages: int, microbatches: int, schedule: str) -> None:
    """Trees between blocks, with integers and truth values that have no gradients."""
    params = {
        "last": draw(size=(WIDTH, 3)),
        "first": draw(size=(5, WIDTH)),
        "blocks": PARAMS["w"],
    }
    words = {"at": np.random.default_rng(1).integers(0, 5, ROWS)}
    targets = draw(size=(ROWS, 3))

    def loss(params: Any) -> Any:
        out = looped(mixed, params["blocks"], embed(params["first"], words))
        return mse(head(params["last"], out), targets)

    step = pipeline_value_and_grad(
        mixed,
        mse,
        first=embed,
        last=head,
        mesh=line(stages),
        microbatches=microbatches,
        schedule=schedule,
    )
    due = verax.jit(verax.value_and_grad(loss))(params)
    same(step(params, words, targets), due, 1e-9)


@pytest.mark.parametrize("schedule", rarely(SCHEDULES, "gpipe"))
def test_training(schedule: str) -> None:
    step = pipeline_value_and_grad(
        block, mse, mesh=line(4), microbatches=4, schedule=schedule
    )

    def trained(gradient: Any, params: Any) -> tuple[Any, list[float]]:
        @verax.jit
        def update(state: Any) -> Any:
            params, speed = state
            loss, grads = gradient(params, X, Y)
            speed = verax.tree.map(lambda v, g: 0.9 * v + g, speed, grads)
            return (
                verax.tree.map(lambda p, v: p - 0.1 * v, params, speed),
                speed,
            ), loss

        state, losses = (params, verax.tree.map(vnp.zeros_like, params)), []
        for _ in range(5):
            state, loss = update(state)
            losses.append(float(loss))
        return state, losses

    # They lie as the results do, so that one program makes all steps.
    specs = {"w": P("stage", None, None), "b": P("stage", None)}
    places = {name: NamedSharding(line(4), spec) for name, spec in specs.items()}
    lying = verax.device_put(PARAMS, places)
    state, losses = trained(step, lying)
    due, expected = trained(verax.value_and_grad(looped_loss), PARAMS)
    same(state, due, 1e-11)
    np.testing.assert_allclose(losses, expected, rtol=1e-12)
    assert losses[-1] < losses[0]


def test_ticks_without_a_microbatch_make_no_nan() -> None:
    """Later blocks have no value for what goes into earlier ones, let alone a slope."""

    def picky(own: Any, h: Any) -> Any:
        return vnp.sqrt(h - own["least"]) + own["more"]

    params = {"least": 10.0 * np.arange(4), "more": 10.0 * np.arange(1, 5)}
    x, y = 1 + X**2, Y
    assert np.isnan(picky({"least": 10.0, "more": 0.0}, x[:1])).any()

    def loss(params: Any) -> Any:
        return mse(vnp.log(looped(picky, params, x) - 40), y)

    due = verax.jit(verax.value_and_grad(loss))(params)
    assert all(np.isfinite(leaf).all() for leaf in verax.tree.leaves(due))
    model = pipeline(picky, mesh=line(4), microbatches=4)
    by_hand = verax.value_and_grad(lambda p, x, y: mse(vnp.log(model(p, x) - 40), y))
    steps = [
        pipeline_value_and_grad(
            picky,
            lambda h, y: mse(vnp.log(h - 40), y),
            mesh=line(4),
            microbatches=4,
            schedule=schedule,
        )
        for schedule in SCHEDULES
    ]
    for actual in at_once(by_hand, *steps)(params, x, y):
        same(actual, due, 1e-9)


def test_one_forward_one_backward_holds_few_microbatches() -> None:
    """With 64 microbatches, what is set aside is far from what the loop remembers."""

    def temporaries(schedule: str, block: Any, microbatches: int) -> int:
        step = pipeline_value_and_grad(
            block, mse, mesh=line(4), microbatches=microbatches, schedule=schedule
        )
        rows = verax.ShapeDtypeStruct((8 * microbatches, 32), vnp.float32)
        params = (
            verax.ShapeDtypeStruct((8, 32, 128), vnp.float32),
            verax.ShapeDtypeStruct((8, 128, 32), vnp.float32),
        )
        analysis = step.lower(params, rows, rows).compile().memory_analysis()
        return int(analysis.temp_size_in_bytes)

    def wide(own: Any, h: Any) -> Any:
        return vnp.tanh(h @ own[0]) @ own[1]

    by_loop = temporaries("gpipe", wide, 64)
    inputs_kept = temporaries("gpipe", verax.checkpoint(wide), 64)
    few = temporaries("1f1b", wide, 64)
    assert few < inputs_kept / 1.3 < by_loop / 2.6
    # What grows with their number is the batch itself: x and y, cut and whole.
    batch = 2 * 8 * 64 * 32 * 4
    assert few - temporaries("1f1b", wide, 8) <= 2 * batch


UNEVEN = {"w": PARAMS["w"][:2], "b": PARAMS["b"]}
IDS = np.arange(16)
WRONG: list[tuple[type[Exception], str, Callable[[], Any]]] = [
    (ValueError, "no axis 'x', only 'stage'", lambda: run(axis="x")),
    (ValueError, "16 rows of x .* 3 microbatches", lambda: run(microbatches=3)),
    (ValueError, "8 blocks .* 3 stages along 'stage'", lambda: run(mesh=line(3))),
    (ValueError, "needs a mesh", lambda: run(mesh=None)),
    (ValueError, "at least 1 microbatch", lambda: run(microbatches=0)),
    (TypeError, "integer as microbatches", lambda: run(microbatches="4")),
    (TypeError, r"\[4, 6\] and returns .*\[4, 2\]", lambda: run(lambda p, h: h[:, :2])),
    (ValueError, r"x\[0\] is a scalar", lambda: run(lambda p, h: h, x=(1, X))),
    (TypeError, "int64.* and returns float", lambda: run(lambda p, h: h * 1.0, x=IDS)),
    (TypeError, "same structure", lambda: run(lambda p, h: [h])),
    (ValueError, r"'b'\] has 8 blocks .*'w'\] has 2", lambda: run(params=UNEVEN)),
    (ValueError, r"parameters\['b'\] is a scalar", lambda: run(params={"b": 1.0})),
    (ValueError, "the parameters has no arrays", lambda: run(params={})),
    (TypeError, "float scalar", lambda: grads(lambda h, y: h)),
    (TypeError, "float scalar", lambda: grads(lambda h, y: (h.sum(), y.sum()))),
    (TypeError, r"\['b'\] is int", lambda: grads(params={"b": np.arange(8)})),
    (ValueError, 'must be "1f1b" or "gpipe"', lambda: grads(schedule="zb")),
    (ValueError, "keys 'blocks', 'first'", lambda: grads(first=embed)),
    (ValueError, "x has 16 rows and target 0 has 8", lambda: grads(y=Y[:8])),
]


def run(own: Any = block, params: Any = PARAMS, x: Any = X, **options: Any) -> Any:
    return pipeline(own, **{"mesh": line(4), "microbatches": 4, **options})(params, x)


def grads(loss: Any = mse, params: Any = PARAMS, y: Any = Y, **options: Any) -> Any:
    own = block if params is PARAMS else lambda p, h: h
    options = {"mesh": line(4), "microbatches": 4, **options}
    return pipeline_value_and_grad(own, loss, **options)(params, X, y)


@pytest.mark.parametrize(("kind", "message", "call"), WRONG)
def test_errors(kind: type[Exception], message: str, call: Callable[[], Any]) -> None:
    with pytest.raises(kind, match=message):
        call()
