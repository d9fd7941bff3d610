"""Effects happen exactly as often as the program says, whatever is done to it.

A program is written once against two worlds: one of Python, in which a mark is an entry
in a list, and one of verax, in which it is a callback. Programs nest loops, choices and
calls; transformations follow in any order. Every lane must leave the marks that the
program leaves in Python, in its order if the callbacks are ordered.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
from attrs import frozen
from hypothesis import given, settings, strategies as st

import verax
from verax import lax
from verax.api.tracing.apply import ENGINE
from verax.experimental import io_callback
from verax.ir.jaxpr import Jaxpr
from verax.ops.calls.call import inline
from verax.transforms.passes.cse import cse

HALF = np.float32(0.5)
type Mark = tuple[int, float]
type Step = Callable[[Any], Any]


class World(Protocol):
    """What programs are written in; values are numbers."""

    def mark(self, tag: int, x: Any) -> Any: ...
    def show(self, tag: int, x: Any) -> None: ...
    def loop(self, tag: int, step: Step, x: Any) -> Any: ...
    def until(self, tag: int, step: Step, x: Any) -> Any: ...
    def choose(self, then: Step, other: Step, x: Any) -> Any: ...
    def call(self, step: Step, x: Any) -> Any: ...
    def again(self, step: Step, x: Any) -> Any: ...


class Plain:
    """Python on NumPy scalars."""

    def __init__(self) -> None:
        self.log: list[Mark] = []

    def mark(self, tag: int, x: Any) -> Any:
        self.log.append((tag, float(x)))
        return x

    def show(self, tag: int, x: Any) -> None:
        self.mark(tag, x)
        self.mark(tag if x > 1 else -tag, x)

    def loop(self, tag: int, step: Step, x: Any) -> Any:
        start = x
        for _ in range(3):
            self.mark(tag, start)
            x = step(x)
        return x

    def until(self, tag: int, step: Step, x: Any) -> Any:
        count = 0
        while self.mark(tag, x) < 2 and count < 3:
            x, count = step(x) + HALF, count + 1
        return x

    def choose(self, then: Step, other: Step, x: Any) -> Any:
        return then(x) if x > 1 else other(x)

    def call(self, step: Step, x: Any) -> Any:
        return step(x)

    again = call


@frozen(eq=False)
class Traced:
    """verax; a mark is a callback of the given kind."""

    log: list[Mark]
    kind: str
    ordered: bool

    def note(self, tag: int) -> Callable[[Any], None]:
        return lambda x: self.log.append((tag, float(x)))

    def mark(self, tag: int, x: Any) -> Any:
        if self.kind == "debug":
            verax.debug.callback(self.note(tag), x, ordered=self.ordered)
        else:
            shown = lax.stop_gradient(x)
            io_callback(self.note(tag), None, shown, ordered=self.ordered)
        return x

    def show(self, tag: int, x: Any) -> None:
        """A call and a choice that have no results."""
        verax.jit(lambda x: self.silent(tag, x))(x)
        lax.cond(
            x > 1, lambda x: self.silent(tag, x), lambda x: self.silent(-tag, x), x
        )

    def silent(self, tag: int, x: Any) -> None:
        self.mark(tag, x)

    def loop(self, tag: int, step: Step, x: Any) -> Any:
        """Each step marks what no step changes, too."""

        def body(carry: Any, _: None) -> Any:
            self.mark(tag, x)
            return step(carry), None

        return lax.scan(body, x, None, length=3)[0]

    def until(self, tag: int, step: Step, x: Any) -> Any:
        def more(state: Any) -> Any:
            return (self.mark(tag, state[0]) < 2) & (state[1] < 3)

        def body(state: Any) -> Any:
            return step(state[0]) + HALF, state[1] + 1

        return lax.while_loop(more, body, (x, 0))[0]

    def choose(self, then: Step, other: Step, x: Any) -> Any:
        return lax.cond(x > 1, then, other, x)

    def call(self, step: Step, x: Any) -> Any:
        return verax.jit(step)(x)

    def again(self, step: Step, x: Any) -> Any:
        return verax.checkpoint(step)(x)


def halved(x: Any) -> Any:
    """Exact in binary, so that all worlds agree, with a derivative that needs x."""
    return (x * HALF + HALF) * (verax.numpy.sin(x) * np.float32(0) + np.float32(1))


@frozen
class Node:
    """A piece of a program: what it does, with pieces inside."""

    kind: str
    tag: int
    inner: tuple["Node", ...]

    def run(self, world: World, x: Any) -> Any:
        """The piece on `x`."""
        parts = [partial(node.run, world) for node in self.inner]
        match self.kind:
            case "mark":
                return halved(world.mark(self.tag, x))
            case "then":
                return parts[1](parts[0](x))
            case "show":
                world.show(self.tag, x)
                return halved(x)
            case "loop":
                return world.loop(self.tag, parts[0], x)
            case "until":
                return world.until(self.tag, parts[0], x)
            case "choose":
                return world.choose(parts[0], parts[1], x)
            case "call":
                return world.call(parts[0], x)
            case _:
                return world.again(parts[0], x)

    def holds(self, kind: str) -> bool:
        return self.kind == kind or any([node.holds(kind) for node in self.inner])


SIZES = {
    **{"mark": 0, "show": 0, "loop": 1, "until": 1, "call": 1, "again": 1},
    **{"then": 2, "choose": 2},
}


@st.composite
def nodes(draw: st.DrawFn, depth: int = 2) -> Node:
    kind = draw(st.sampled_from([*SIZES] if depth else ["mark", "show"]))
    inner = [draw(nodes(depth=depth - 1)) for _ in range(SIZES[kind])]
    return Node(kind, draw(st.integers(1, 9)), tuple(inner))


def pushed(f: Step) -> Step:
    return lambda x: verax.jvp(f, (x,), (x * 0 + 1,))[1]


def pulled(f: Step) -> Step:
    def derivative(x: Any) -> Any:
        y, pull = verax.vjp(f, x)
        return pull(y * 0 + 1)[0]

    return derivative


def linear(f: Step) -> Step:
    return lambda x: verax.linearize(f, x)[1](x * 0 + 1)


TRANSFORMS: dict[str, Callable[[Step], Step]] = {
    "jit": verax.jit,
    "checkpoint": verax.checkpoint,
    "jvp": pushed,
    "vjp": pulled,
    "linearize": linear,
}
LANES = (0.5, 3.0, 1.25)


def expected(node: Node, x: float) -> list[Mark]:
    world = Plain()
    node.run(world, np.float32(x))
    return world.log


def check(log: list[Mark], node: Node, xs: tuple[float, ...], ordered: bool) -> None:
    """Every lane has left its marks, and nothing else has."""
    due = [expected(node, x) for x in xs]
    everything = [mark for marks in due for mark in marks]
    assert sorted(log) == sorted(everything)
    if ordered:
        for marks in due:
            left = iter(log)
            assert all(mark in left for mark in marks), (log, marks)


def rewrites(jaxpr: Jaxpr) -> list[Jaxpr]:
    """The program, and what has the same effects by law."""
    slim, _ = ENGINE.dce(jaxpr, (False,) * len(jaxpr.outvars))
    kept, _ = ENGINE.dce(jaxpr, (True,) * len(jaxpr.outvars))
    return [jaxpr, cse(jaxpr), inline(jaxpr), kept, slim]


@given(
    nodes(),
    st.lists(st.sampled_from([*TRANSFORMS]), max_size=3),
    st.integers(0, 3),
    st.sampled_from(["debug", "io"]),
    st.booleans(),
)
@settings(deadline=None)
def test_effects_happen_once_and_in_order(
    node: Node, names: list[str], place: int, kind: str, ordered: bool
) -> None:
    if node.holds("until"):
        names = [name for name in names if name not in ("vjp", "linearize")]
    log: list[Mark] = []
    world = Traced(log, kind, ordered)

    f: Step = partial(node.run, world)
    batched = place <= len(names)
    for i, name in enumerate(names):
        f = verax.vmap(f) if i == place else f
        f = TRANSFORMS[name](f)
    f = verax.vmap(f) if place == len(names) else f
    xs = LANES if batched else LANES[:1]
    x = verax.numpy.asarray(xs if batched else xs[0], dtype="float32")
    for run in (f, verax.jit(f)):
        log.clear()
        run(x)
        verax.effects_barrier()
        check(log, node, xs, ordered)
    for jaxpr in rewrites(verax.make_jaxpr(f)(x).jaxpr):
        log.clear()
        ENGINE.evaluate(jaxpr, [np.asarray(x)][: len(jaxpr.invars)])
        check(log, node, xs, ordered)
