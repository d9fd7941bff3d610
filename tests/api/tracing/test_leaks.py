"""Tracers that outlive their trace: the error names who made, holds and uses them."""

import functools
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

import verax
import verax.numpy as vnp
from verax.rules.values.object_holders import DEPTH, holder

KEPT: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_is_kept() -> Iterator[None]:
    yield
    KEPT.clear()
    Model.best = None


@pytest.fixture
def notes(few_objects: None) -> Iterator[Any]:
    """A module that keeps tracers, and that the collector shows beside few objects."""
    module: Any = ModuleType("notes")
    module.kept = []
    sys.modules["notes"] = module
    yield module
    del sys.modules["notes"]


class Model:
    """Keeps what it is given in several places."""

    best: Any = None

    def __init__(self) -> None:
        self.state: Any = None
        self.table: dict[str, Any] = {}


class Slotted:
    __slots__ = ("state",)
    state: Any


def leak(keep: Callable[[Any], object]) -> None:
    def fun(x: Any) -> Any:
        keep(vnp.sin(x))
        return x

    verax.jit(fun)(1.0)


def message(use: Callable[[], Any]) -> str:
    with pytest.raises(verax.LeakedTracer) as error:
        use()
    return str(error.value)


def check(use: Callable[[], Any], by: str) -> None:
    text = message(lambda: use() + 1)
    assert f", held by {by}, used at {__file__}:" in text
    assert f"created on line {__file__}:" in text


def test_a_global_holds_it() -> None:
    leak(KEPT.append)
    check(lambda: KEPT[0], f"item 0 of the global 'KEPT' of module {__name__}")


def test_an_object_holds_it() -> None:
    model, slotted = Model(), Slotted()
    leak(lambda y: setattr(model, "state", y))
    check(lambda: model.state, "the attribute 'state' of an object of class Model")
    leak(lambda y: setattr(slotted, "state", y))
    check(lambda: slotted.state, "the attribute 'state' of an object of class Slotted")
    leak(lambda y: model.table.update(w=[0, y]))
    check(
        lambda: model.table["w"][1],
        "item 1 of entry 'w' of the attribute 'table' of an object of class Model",
    )


def test_a_class_holds_it() -> None:
    leak(lambda y: setattr(Model, "best", y))
    check(lambda: Model.best, "the attribute 'best' of class Model")


def test_a_cache_holds_it() -> None:
    @functools.lru_cache
    def table(n: int) -> Any:
        return vnp.ones(3) * n

    verax.jit(lambda x: x + table(2))(1.0)
    name = "test_a_cache_holds_it.<locals>.table"
    check(lambda: table(2), f"the cache around {name}")


def test_a_closure_holds_it() -> None:
    held: Any = None

    def keep(y: Any) -> None:
        nonlocal held
        held = y

    leak(keep)
    text = message(lambda: held + 1)
    assert ", held by the variable 'held' that test_a_closure_holds_it" in text


def test_default_values_hold_it() -> None:
    def fun(x: Any) -> Any:
        y = vnp.sin(x)

        def later(a: Any = y) -> Any:
            return a

        KEPT.append(later)
        return x

    verax.jit(fun)(1.0)
    text = message(lambda: KEPT[0]() + 1)
    assert ", held by item 0 of the default values of test_default_values" in text


def test_the_message_is_made_when_it_is_read() -> None:
    leak(KEPT.append)
    with pytest.raises(verax.LeakedTracer) as error:
        KEPT[0] + 1
    assert str(error.value) == str(error.value)
    again = pickle.loads(pickle.dumps(error.value))
    assert type(again) is verax.LeakedTracer
    assert "has left the function" in str(again)


def test_arguments_are_named() -> None:
    def fun(params: Any, *, scale: Any) -> Any:
        KEPT.append(params["w"])
        return scale

    verax.jit(fun)({"b": 0.0, "w": 1.0}, scale=2.0)
    text = message(lambda: KEPT[0] + 1)
    assert "an input of that trace (argument params['w'] of fun)" in text


@pytest.mark.slow
def test_the_search_ends() -> None:
    """What is in many places, and in none with a name, costs a bounded time."""
    x = object()
    nest: Any = [x]
    for _ in range(3 * DEPTH):
        nest = [nest, [nest]]
    assert isinstance(holder(x), str)
    loop: list[Any] = [x]
    loop.append(loop)
    holder(x)

    class Hostile:
        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError("no")

    kept = Hostile()
    object.__setattr__(kept, "y", x)
    holder(x)
    del kept


@pytest.mark.slow
@pytest.mark.parametrize(
    "transform",
    [
        verax.jit,
        verax.vmap,
        lambda f: verax.grad(lambda x: f(x).sum()),
        verax.make_jaxpr,
        lambda f: verax.jit(verax.vmap(f)),
        lambda f: verax.jit(lambda x: verax.lax.map(f, x)),
        lambda f: verax.jit(lambda x: verax.lax.cond(x[0] > 0, f, f, x)),
        lambda f: lambda x: verax.vjp(f, x),
        lambda f: verax.jit(verax.checkpoint(f)),
    ],
)
def test_no_transformation_lets_one_go_unnoticed(
    transform: Callable[..., Any], notes: Any
) -> None:
    def keeping(x: Any) -> Any:
        notes.kept.append(vnp.sin(x))
        return x * 2

    transform(keeping)(vnp.ones(2))
    assert message(lambda: notes.kept[0] + 1)
    with verax.checking_leaks():
        text = message(lambda: transform(keeping)(vnp.ones(2)))
    assert text.startswith("Leaked trace: a tracer has left ")
    assert f"item {len(notes.kept) - 1} of the global 'kept' of module notes" in text
    with verax.checking_leaks():
        transform(lambda x: x * 2)(vnp.ones(2))


@pytest.mark.slow
def test_many_leaks_are_listed(notes: Any) -> None:
    def fun(x: Any) -> Any:
        notes.kept.extend([x * i for i in range(5)])
        return x

    with verax.checking_leaks():
        text = message(lambda: verax.jit(fun)(1.0))
    lines = text.splitlines()
    assert lines[0] == "Leaked trace: 5 tracers have left fun, which was traced:"
    assert all(
        line.startswith("  type ~f32[], it was created on") for line in lines[1:4]
    )
    assert lines[4] == "  and 2 more"
    assert lines[5].startswith("Return the value from the function")


@pytest.mark.slow
def test_the_block_traces_anew(notes: Any) -> None:
    jitted = verax.jit(lambda x: notes.kept.append(x) or x)
    jitted(1.0)
    with verax.checking_leaks():
        message(lambda: jitted(1.0))
    jitted(1.0)  # what was compiled before the block is there still
    assert len(notes.kept) == 2


def test_cycles_of_garbage_are_no_leaks() -> None:
    def fun(x: Any) -> Any:
        def power(n: int) -> Any:
            return x if n == 0 else power(n - 1) * x

        return power(3)

    with verax.checking_leaks():
        assert float(verax.jit(fun)(2.0)) == 16.0
        assert float(verax.grad(fun)(2.0)) == 32.0


def test_inner_functions_may_close_over_outer_tracers() -> None:
    with verax.checking_leaks():

        @verax.jit
        def outer(x: Any) -> Any:
            inner = verax.jit(lambda y: y * x)
            return inner(x) + verax.lax.fori_loop(0, 2, lambda i, a: a + x, x)

        assert float(outer(3.0)) == 18.0


def test_the_names_of_the_option() -> None:
    assert verax.config.check_tracer_leaks is False
    with verax.check_tracer_leaks():
        assert verax.config.jax_check_tracer_leaks is True
        with verax.check_tracer_leaks(False):
            verax.jit(lambda x: KEPT.append(x) or x)(1.0)  # type: ignore[func-returns-value]  # for the side effect
    assert len(KEPT) == 1


def test_other_threads_have_their_own_message() -> None:
    actual: list[str] = []

    def fun(x: Any) -> Any:
        thread = threading.Thread(target=lambda: actual.append(message(lambda: x + 1)))
        thread.start()
        thread.join()
        return x

    verax.jit(fun)(1.0)
    assert "was used in a thread other than" in actual[0]
