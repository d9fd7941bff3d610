"""`verax.debug.watch_steps`: curves of a training, by line."""

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from tests.typing.programs import gpt
from verax import lax, nn
from verax.debug import watch, watch_steps

RATE = 0.05
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
Y = np.array([0.0, 1.0, 1.0, 0.0], np.float32)


def loss(w: Any, x: Any, y: Any) -> Any:
    h = nn.silu(x @ w["in"])
    out = h @ w["out"]
    return vnp.mean((out - y) ** 2)


def step(w: Any, x: Any, y: Any) -> Any:
    value, slope = verax.value_and_grad(loss)(w, x, y)
    return verax.tree.map(lambda p, g: p - RATE * g, w, slope), value


def weights() -> Any:
    rng = np.random.default_rng(0)
    draw = {"in": rng.normal(size=(3, 5)), "out": rng.normal(size=5)}
    return {k: vnp.asarray(v, vnp.float32) for k, v in draw.items()}


def trained(run: Callable[..., Any], steps: int = 12) -> tuple[Any, list[float]]:
    """The weights after some steps, and the losses on the way."""
    w, losses = weights(), []
    for _ in range(steps):
        w, value = run(w, X, Y)
        losses.append(float(value))
    return w, losses


def line_in(f: Callable[..., Any], offset: int) -> int:
    return f.__code__.co_firstlineno + offset


@pytest.mark.parametrize("every", [1, 5, 100])
@pytest.mark.parametrize("donate", [None, 0])
def test_a_training_is_the_same_bit_for_bit(every: int, donate: int | None) -> None:
    plain = verax.jit(step, donate_argnums=donate)
    watched = watch_steps(verax.jit(step, donate_argnums=donate), every=every)
    wanted, losses = trained(plain)
    found, same = trained(watched)
    assert losses == same
    verax.tree.map(np.testing.assert_array_equal, found, wanted)
    assert watched.history.steps.tolist() == [*range(0, 12, every)]
    assert watched.step == 12


def test_donated_state_is_gone_after_steps_that_measure() -> None:
    watched = watch_steps(verax.jit(step, donate_argnums=0), every=2)
    before = weights()
    for _ in range(3):
        after, _ = watched(before, X, Y)
        assert all(x.is_deleted() for x in verax.tree.leaves(before))
        before = after


def test_other_steps_run_the_function_itself() -> None:
    own = verax.jit(step)
    watched = watch_steps(own, every=4)
    assert watched.programs.run is own
    trained(watched)
    programs = watched.programs
    counts = [len(f.programs) for f in (own, programs.measure, programs.together)]
    assert counts == [1, 1, 0]


def test_effects_happen_once() -> None:
    told: list[float] = []

    def counting(ref: Any, x: Any) -> Any:
        ref[...] = ref[...] + x
        verax.debug.callback(lambda x: told.append(float(x)), x, ordered=True)
        return vnp.sin(x) * 2

    ref = verax.new_ref(vnp.zeros(()))
    watched = watch_steps(verax.jit(counting), every=2)
    for i in range(4):
        watched(ref, float(i))
    verax.effects_barrier()
    assert told == [0, 1, 2, 3]
    assert float(ref[...]) == 6
    assert watched.history.steps.tolist() == [0, 2]


@pytest.mark.slow
def test_curves_are_those_of_watch() -> None:
    watched = watch_steps(step, every=3)
    w, reports = weights(), []
    for i in range(9):
        if i % 3 == 0:
            reports.append(verax.jit(watch(step))(w, X, Y)[1])
        w, _ = watched(w, X, Y)
    line = line_in(loss, 1)
    for kind in ("value", "cotangent"):
        entry = watched.history.by_line(line, kind)[-1]
        assert entry.steps.tolist() == [0, 3, 6]
        for measure in ("least", "greatest", "mean", "std", "zeros"):
            wanted = [getattr(r.by_line(line, kind)[-1], measure) for r in reports]
            np.testing.assert_array_equal(getattr(entry, measure), wanted)
    assert watched.last is not None
    assert str(watched.last) == str(reports[-1])


def test_names_of_curves_and_the_log() -> None:
    told: list[tuple[int, dict[str, float]]] = []
    watched = watch_steps(step, every=4, log=lambda i, xs: told.append((i, xs)))
    trained(watched)
    line = line_in(loss, 2)
    name = f"test_watched_steps.py:{line}/std"
    assert [i for i, _ in told] == [0, 4, 8]
    curve = [numbers[name] for _, numbers in told]
    assert watched.history[name].tolist() == curve
    assert len({*curve}) == 3
    assert {tuple(numbers) for _, numbers in told} == {tuple(told[0][1])}
    assert len({e.name for e in watched.history.lines}) == len(watched.history.lines)
    back = [e.name for e in watched.history.by_line(line - 1, "cotangent")]
    assert back[0].startswith(f"test_watched_steps.py:{line - 1}/cotangent")
    assert f"{back[0]}/std" in told[0][1]
    with pytest.raises(KeyError, match="there is no such curve"):
        watched.history["train.py:1/std"]


def test_several_values_of_a_line_are_told_apart() -> None:
    def both(x: Any) -> Any:
        a, b = vnp.sin(x), vnp.sin(x * 2)
        return a * b

    watched = watch_steps(both)
    watched(vnp.ones(3))
    names = [e.name.rpartition(":")[2] for e in watched.history.lines]
    line = line_in(both, 1)
    assert names == [f"{line}/sin", f"{line}/sin.2", f"{line + 1}"]


def test_what_is_computed_again_has_one_curve() -> None:
    def block(x: Any) -> Any:
        y = vnp.sin(x)
        return vnp.cos(y)

    def slope(x: Any) -> Any:
        return verax.grad(lambda x: vnp.sum(verax.checkpoint(block)(x)))(x)

    watched = watch_steps(slope, every=1)
    for i in range(3):
        watched(vnp.arange(3.0) + i)
    assert len(watched.history.by_line(line_in(block, 1), "value")) == 1


def test_equal_at_first_and_unlike_later() -> None:
    def f(x: Any, y: Any) -> Any:
        a, b = vnp.sin(x), vnp.sin(y)
        return a * b

    told: list[dict[str, float]] = []
    watched = watch_steps(f, every=1, log=lambda _, xs: told.append(xs))
    for i in (0, 1, 0):
        watched(vnp.ones(3), vnp.ones(3) + i)
    curves = watched.history.by_line(line_in(f, 1))
    assert [len(e.steps) for e in curves] == [3, 3]
    assert [len(numbers) for numbers in told] == [18, 27, 27]


def test_keep_and_start() -> None:
    watched = watch_steps(verax.jit(lambda x: x * 2), every=10, keep=2, start=95)
    for i in range(40):
        watched(float(i))
    assert watched.history.steps.tolist() == [120, 130]
    assert watched.step == 135
    watched.step = 140
    watched(1.0)
    assert watched.history.steps.tolist() == [130, 140]


def test_static_arguments_methods_and_keywords() -> None:
    class Model:
        scale = 3.0

        @functools.partial(verax.jit, static_argnums=(0, 2), donate_argnums=1)
        def step(self, x: Any, power: int) -> Any:
            y = x * self.scale
            return y**power

    watched = watch_steps(Model().step, every=2)
    for _ in range(3):
        assert watched(vnp.full(2, 2.0), 2).tolist() == [36, 36]
    assert [e.greatest.tolist() for e in watched.history.lines] == [[6, 6], [36, 36]]

    @functools.partial(verax.jit, static_argnames="mode")
    def moded(x: Any, *, mode: str) -> Any:
        return x + 1 if mode == "up" else x - 1

    named = watch_steps(moded, every=1)
    assert [named(1.0, mode=m) for m in ("up", "down")] == [2, 0]


def test_programs_of_several_shapes() -> None:
    def f(x: Any) -> Any:
        y = vnp.sin(x)
        return y.sum()

    watched = watch_steps(verax.jit(f), every=1)
    for n in (2, 3):
        watched(vnp.ones(n))
    first, _ = watched.history.lines
    assert (first.type, first.steps.tolist()) == ("f32[3]", [0, 1])


def test_places_of_outputs() -> None:
    device = verax.devices()[0]
    place = verax.sharding.SingleDeviceSharding(device)
    run = verax.jit(lambda x: {"y": x * 2}, out_shardings={"y": place})
    watched = watch_steps(run, every=1)
    assert watched(vnp.ones(2))["y"].tolist() == [2, 2]
    assert watched.history.lines[0].greatest.tolist() == [2]


@pytest.mark.slow
def test_a_loop_in_a_step() -> None:
    def many(w: Any, xs: Any) -> Any:
        def body(w: Any, x: Any) -> Any:
            new = w - RATE * x * w
            return new, new.sum()

        return lax.scan(body, w, xs)

    watched = watch_steps(verax.jit(many), every=1)
    w, sums = watched(vnp.ones(3), X)
    wanted = verax.jit(many)(vnp.ones(3), X)
    verax.tree.map(np.testing.assert_array_equal, (w, sums), wanted)
    assert watched.history.by_line(line_in(many, 2))


def test_within_a_transformation_it_is_the_step_alone() -> None:
    watched = watch_steps(lambda x: vnp.sin(x) * 2, every=1)
    assert verax.grad(watched)(0.0) == 2
    assert verax.eval_shape(watched, vnp.ones(3)).shape == (3,)
    assert (watched.step, len(watched.history.steps)) == (0, 0)
    assert watched.history.lines == ()
    assert "0 values at 0 steps" in str(watched.history)


def test_the_first_bad_step_is_named() -> None:
    def f(x: Any) -> Any:
        y = vnp.log(x)
        return y * 2

    watched = watch_steps(f, every=1)
    for x in (2.0, 1.0, 0.0, -1.0):
        watched(x)
    assert watched.history.lines[0].notes == "NaN from step 3, infinite from step 2"
    assert "NaN from step 3" in str(watched.history)
    assert "NaN from step 3" in watched.history._repr_html_()
    assert repr(watched) == "<WatchedSteps of f: 4 measured>"


class Axes:
    """What `plot` needs of axes."""

    def __init__(self) -> None:
        self.curves: list[tuple[Any, Any, str]] = []
        self.texts: list[str] = []

    def plot(self, xs: Any, ys: Any, label: str) -> None:
        self.curves.append((xs, ys, label))

    def set_xlabel(self, text: str) -> None:
        self.texts.append(text)

    set_ylabel = set_title = set_xlabel

    def legend(self, fontsize: str) -> None:
        self.texts.append("legend")


def test_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = watch_steps(step, every=2)
    trained(watched, 4)
    line, axes = line_in(loss, 1), Axes()
    assert watched.plot("greatest", line, axes) is axes
    curves = watched.history.by_line(line)
    assert len(axes.curves) == len(curves)
    np.testing.assert_array_equal(axes.curves[0][1], curves[0].greatest)
    assert axes.texts == ["step", "greatest", "step", "legend"]
    name = curves[0].name
    assert len(watched.plot(lines=[name], axes=Axes()).curves) == 1
    assert len(watched.plot(axes=Axes()).curves) == len(watched.history.lines)
    with pytest.raises(ValueError, match="plot draws least"):
        watched.plot("median", axes=Axes())
    with pytest.raises(ValueError, match="nothing was measured at 1;"):
        watched.plot(lines=1, axes=Axes())
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="matplotlib, which is not installed"):
        watched.plot()


@pytest.mark.slow(nightly=True)
def test_a_transformer() -> None:
    config = gpt.Config(layers=1)
    params = gpt.init(config, verax.random.key(0))
    zeros = verax.tree.map(vnp.zeros_like, params)
    batch: Any = np.random.default_rng(0).integers(
        0, config.vocabulary, (4, config.context + 1)
    )
    watched = watch_steps(gpt.train_step, every=2)
    states = []
    for run in (gpt.train_step, watched):
        found = params, gpt.Adam(zeros, zeros, vnp.int32(0)), vnp.zeros(())
        for _ in range(3):
            found = run(found[0], found[1], config, batch)
        states.append(found)
    verax.tree.map(np.testing.assert_array_equal, *states)
    assert {e.kind for e in watched.history.lines} == {"value", "cotangent"}


def test_wrong_calls() -> None:
    with pytest.raises(TypeError, match="watch_steps takes a function"):
        watch_steps(3)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(TypeError, match="watch_steps: log takes a function"):
        watch_steps(step, log=3)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(ValueError, match="every is 0, and must be at least 1"):
        watch_steps(step, every=0)
    with pytest.raises(ValueError, match="keep is 0, and must be at least 1"):
        watch_steps(step, keep=0)
