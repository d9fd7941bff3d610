"""Loops with a memory plan: what they cost, what they store, and bad input."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from tests.lax.counting import evaluations
from verax import lax
from verax.ir.forms.parser import parse_closed
from verax.ir.jaxpr import Jaxpr
from verax.ir.reports.check import check_jaxpr
from verax.ir.walk import close, walk
from verax.lax.scanning import blocks_of, even_blocks
from verax.ops.control.any_lane import any_lane
from verax.ops.control.scan_params import ScanParams
from verax.ops.elementwise.trig import sin_p
from verax.ops.table import PRIMITIVES
from verax.rules.rows.infer import infer

WRONG: Any = lax
"""For calls that type checkers refuse."""

WIDTH = 7
START = np.linspace(0.1, 0.9, WIDTH, dtype=np.float32)


def scanned(length: int, checkpoints: int | str | None) -> Callable[[Any], Any]:
    """A loop with one sine in each step, which the derivative of the step reads."""

    def step(c: Any, _: None) -> Any:
        return vnp.sin(c) * c + 0.5, None

    return lambda c: lax.scan(step, c, None, length, checkpoints=checkpoints)[0].sum()


def iterated(max_steps: int, checkpoints: int | str) -> Callable[[Any, Any], Any]:
    """A bounded loop of n steps with one sine in each."""

    def f(c: Any, n: Any) -> Any:
        return lax.while_loop(
            lambda s: s[0] < n,
            lambda s: (s[0] + 1, vnp.sin(s[1]) * s[1] + 0.5),
            (0, c),
            max_steps=max_steps,
            checkpoints=checkpoints,
        )[1].sum()

    return f


def stored(jaxpr: Jaxpr) -> int:
    """How many carries the loops stack at a time: here, and in one loop inside.

    The one integer that says whether a block has run is no carry.
    """
    own = inside = 0
    for eqn in jaxpr.eqns:
        if isinstance(eqn.params, ScanParams):
            stacks = eqn.outvars[eqn.params.num_carry :]
            count = eqn.params.length
            own += sum([count for v in stacks if v.aval.size == count * WIDTH])
        inside = max([inside, *map(stored, eqn.params.subjaxprs())])
    return own + inside


PLANS: list[tuple[int, int | str, tuple[int, ...]]] = [
    (100, "sqrt", (10, 10)),
    (100, "log", (4, 3, 3, 3)),
    (100, 100, (100,)),
    (100, 20, (10, 10)),
    (100, 15, (5, 5, 4)),
    (7, "sqrt", (3, 3)),
    (1, "log", (1,)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("length", "checkpoints", "blocks"), PLANS)
def test_evaluations_and_storage_of_scan(
    length: int, checkpoints: int | str, blocks: tuple[int, ...]
) -> None:
    assert blocks_of("scan", length, checkpoints) == blocks
    f, plain = scanned(length, checkpoints), scanned(length, None)
    assert evaluations(sin_p, f, START)[0] == length
    count, actual = evaluations(sin_p, verax.value_and_grad(f), START)
    assert count == (len(blocks) + 1) * length
    np.testing.assert_allclose(actual[1], verax.grad(plain)(START), rtol=1e-5)
    np.testing.assert_allclose(verax.jit(verax.grad(f))(START), actual[1], rtol=1e-5)
    assert stored(verax.make_jaxpr(verax.grad(f))(START).jaxpr) <= sum(blocks)


@pytest.mark.slow
@pytest.mark.parametrize("checkpoints", ["sqrt", "log", 100])
def test_evaluations_and_storage_of_bounded_loops(checkpoints: int | str) -> None:
    """The cost goes by the steps that are done."""
    f, blocks = iterated(100, checkpoints), blocks_of("while_loop", 100, checkpoints)
    for n in (0, 1, 37, 100, 120):
        steps = min(n, 100)
        assert evaluations(sin_p, f, START, n)[0] == steps
        count, actual = evaluations(sin_p, verax.value_and_grad(f), START, n)
        assert count == (len(blocks) + 1) * steps
        due = verax.grad(scanned(steps, None))(START)
        np.testing.assert_allclose(actual[1], due, rtol=1e-5)
        np.testing.assert_allclose(verax.jit(verax.grad(f))(START, n), due, rtol=1e-5)
    assert stored(verax.make_jaxpr(verax.grad(f))(START, 3).jaxpr) <= sum(blocks)


def names(f: Callable[..., Any], *args: Any) -> list[str]:
    return [eqn.primitive.name for _, eqn in walk(verax.make_jaxpr(f)(*args).jaxpr)]


LOOPS: dict[str, Callable[[Any], Any]] = {
    "bounded_while": lambda x: iterated(100, "log")(x, 3),
    "checkpointed_scan": scanned(100, "log"),
}


@pytest.mark.parametrize("name", LOOPS)
def test_all_but_reverse_mode_is_one_loop(name: str) -> None:
    f = LOOPS[name]
    for g in (f, lambda x: verax.jvp(f, (x,), (x,)), lambda x: verax.vmap(f)(x[None])):
        actual = names(g, START)
        assert actual.count(name) == 1
        assert "scan" not in actual
    assert name not in names(verax.grad(f), START)


@pytest.mark.parametrize("name", LOOPS)
def test_rewritten_programs_are_well_formed(name: str) -> None:
    f = LOOPS[name]
    for g in (f, verax.grad(f), verax.hessian(f)):
        check_jaxpr(verax.make_jaxpr(g)(START).jaxpr, infer)
        check_jaxpr(verax.make_jaxpr(verax.vmap(g))(START[None]).jaxpr, infer)
    closed = verax.make_jaxpr(f)(START)
    assert parse_closed(str(closed), PRIMITIVES, closed.consts) == closed
    assert not close(closed).constvars


@pytest.mark.slow
def test_blocks_are_skipped_when_all_lanes_have_ended() -> None:
    """Only single steps are chosen lane by lane."""
    f, ns = iterated(100, "log"), vnp.array([3, 0, 90])
    g = verax.vmap(verax.grad(f), (None, 0))
    actual = names(g, START, ns)
    assert "any_lane" not in names(verax.jit(f), START, 3)
    assert actual.count("cond") >= 3
    due = [verax.grad(scanned(int(n), None))(START) for n in ns]
    np.testing.assert_allclose(g(START, ns), due, rtol=1e-5)
    np.testing.assert_allclose(verax.jit(g)(START, ns), due, rtol=1e-5)


def test_any_lane_is_one_answer_for_all() -> None:
    flags = vnp.array([[False, True], [False, False]])
    assert not bool(any_lane(flags[0, 0]))
    rows = verax.vmap(any_lane)(flags.T)
    assert rows.tolist() == [[True, False]] * 2
    every = verax.vmap(verax.vmap(any_lane), out_axes=None)(flags)
    assert every.tolist() == [True, True]
    with pytest.raises(TypeError, match="takes a boolean predicate"):
        any_lane(vnp.ones(2))


def logarithms(x: Any) -> Any:
    """As long as it is positive: one more logarithm would be NaN."""
    return lax.while_loop(lambda c: c > 0.0, vnp.log, x, max_steps=10)


@pytest.mark.slow
def test_what_comes_after_the_end_makes_no_nan() -> None:
    xs = vnp.array([0.5, 1.0, 2.0, 20.0, 1e8])

    def by_hand(x: float) -> tuple[float, float]:
        slope = 1.0
        while x > 0:
            slope, x = slope / x, np.log(x)
        return x, slope

    due = np.array([by_hand(float(x)) for x in xs])
    np.testing.assert_allclose(verax.vmap(logarithms)(xs), due[:, 0], rtol=1e-5)
    for f in (
        verax.vmap(verax.grad(logarithms)),
        verax.grad(lambda xs: verax.vmap(logarithms)(xs).sum()),
        lambda xs: verax.jvp(verax.vmap(logarithms), (xs,), (vnp.ones(5),))[1],
        lambda xs: vnp.stack([verax.grad(logarithms)(x) for x in xs]),
    ):
        np.testing.assert_allclose(f(xs), due[:, 1], rtol=1e-4)


@pytest.mark.slow
def test_fori_loop_takes_plans() -> None:
    def f(x: Any, n: Any) -> Any:
        return lax.fori_loop(0, n, lambda i, c: c * x + i, x, max_steps=9)

    def g(x: Any, n: int) -> Any:
        return lax.fori_loop(0, n, lambda i, c: c * x + i, x, checkpoints="log")

    def plain(x: Any, n: int) -> Any:
        c = x
        for i in range(min(n, 9)):
            c = c * x + i
        return c

    for n in (0, 1, 5, 9):
        due = verax.grad(plain)(1.1, n)
        np.testing.assert_allclose(verax.jit(verax.grad(f))(1.1, n), due, rtol=1e-5)
        np.testing.assert_allclose(verax.grad(g)(1.1, n), due, rtol=1e-5)
    np.testing.assert_allclose(verax.jit(f)(1.1, 20), plain(1.1, 9), rtol=1e-5)
    np.testing.assert_allclose(f(1.1, 20), plain(1.1, 9), rtol=1e-5)
    with verax.disable_jit():
        np.testing.assert_allclose(f(1.1, 20), plain(1.1, 9), rtol=1e-5)
        assert float(logarithms(2.0)) == pytest.approx(np.log(np.log(2.0)))


@pytest.mark.slow
def test_integers_keys_and_trees_are_carried() -> None:
    def step(state: dict[str, Any]) -> dict[str, Any]:
        key, other = verax.random.split(state["key"])
        noise = verax.random.uniform(other)
        return {"key": key, "n": state["n"] + 1, "x": state["x"] * noise}

    def f(x: Any, **plan: Any) -> Any:
        start = {"key": verax.random.key(3), "n": 0, "x": x}
        end = lax.while_loop(lambda s: s["n"] < 5, step, start, **plan)
        return end["x"]

    slope = verax.grad(lambda x: f(x, max_steps=20))(2.0)
    np.testing.assert_allclose(slope * 2.0, f(2.0), rtol=1e-6)

    def rows(x: Any, **plan: Any) -> Any:
        keys = verax.random.split(verax.random.key(1), 7)

        def step(c: Any, k: Any) -> Any:
            c = c * verax.random.uniform(k)
            return c, (c, k)

        x, (ys, _) = lax.scan(step, x, keys, **plan)
        x, (zs, _) = lax.scan(step, x, keys, reverse=True, **plan)
        return x + ys.sum() + zs[0]

    due = verax.grad(rows)(2.0)
    actual = verax.grad(lambda x: rows(x, checkpoints="sqrt"))(2.0)
    np.testing.assert_allclose(actual, due, rtol=1e-6)


def test_blocks_have_room_and_little_more() -> None:
    for steps in (1, 2, 3, 10, 99, 1000, 1025):
        for depth in range(1, 8):
            blocks = even_blocks(steps, depth)
            assert steps <= np.prod(blocks) < steps * 2 ** (depth - 1) + 1
    assert even_blocks(0, 3) == (0,)


@pytest.mark.slow
@pytest.mark.parametrize("checkpoints", ["log", 9])
def test_effects_happen_once(checkpoints: int | str) -> None:
    """What is computed again does not call back again."""
    seen: list[float] = []

    def step(c: Any) -> Any:
        verax.debug.callback(lambda x: seen.append(float(x)), c)
        return vnp.sin(c) * c + 0.5

    def bounded(x: Any) -> Any:
        return lax.while_loop(
            lambda c: c < 1.05, step, x, max_steps=9, checkpoints=checkpoints
        )

    def scanning(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, c: step(c), x, checkpoints=checkpoints)

    for f in (bounded, scanning):
        for g in (f, verax.value_and_grad(f), verax.jit(verax.grad(f))):
            seen.clear()
            g(0.3)
            verax.effects_barrier()
            np.testing.assert_allclose(seen, [0.3, 0.588656, 0.826848], rtol=1e-4)


BAD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: scanned(1000, 10)(START),
        ValueError,
        "at least 20 are needed, and 'log' takes 20",
    ),
    (lambda: scanned(10, "all")(START), TypeError, "'sqrt' or 'log'"),
    (lambda: scanned(10, True)(START), TypeError, "number of carries"),
    (lambda: iterated(-1, "log")(START, 3), ValueError, "at least 0, not -1"),
    (lambda: iterated(1.5, "log")(START, 3), TypeError, "max_steps must be an integer"),  # type: ignore[arg-type]  # that is the mistake
    (
        lambda: lax.while_loop(lambda c: c, lambda c: c, 1.0, max_steps=3),
        TypeError,
        r"ShapedArray\(float32\[\]\)\]. It is <lambda> \(.*test_checkpointed.py:\d+\)",
    ),
    (
        lambda: WRONG.while_loop(lambda c: True, lambda c: (c, c), 1.0, max_steps=3),
        TypeError,
        "carry output must have the same pytree structure",
    ),
    (
        lambda: verax.jit(
            lambda n: lax.fori_loop(0, n, lambda i, c: c, 0, checkpoints="log")
        )(3),
        ValueError,
        "checkpoints need max_steps",
    ),
]


@pytest.mark.parametrize("index", range(len(BAD)))
def test_bad_input(index: int) -> None:
    call, error, text = BAD[index]
    with pytest.raises(error, match=text):
        call()
