"""Callbacks of programs over several devices: the first calls, with whole arrays.

Inside `shard_map` each device calls, with its part.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.experimental import checkify, io_callback
from verax.rules.programs.host import CallbackError
from verax.sharding import AxisType, NamedSharding, PartitionSpec as P

MESH = verax.make_mesh((8,), ("x",))
VALUES = np.arange(16, dtype=np.float32)


def sharded() -> verax.Array:
    x: verax.Array = verax.device_put(VALUES, NamedSharding(MESH, P("x")))
    return x


@pytest.mark.parametrize("ordered", [False, True])
def test_effects_happen_once_and_not_on_each_device(ordered: bool) -> None:
    seen: list[Any] = []

    @verax.jit
    def f(x: Any) -> Any:
        def step(c: Any, _: None) -> Any:
            verax.debug.callback(lambda c: seen.append(c.tolist()), c, ordered=ordered)
            return c + 1, None

        return lax.scan(step, x, None, length=2)[0]

    assert f(sharded()).tolist() == (VALUES + 2).tolist()
    verax.effects_barrier()
    assert seen == [VALUES.tolist(), (VALUES + 1).tolist()]


def test_results_and_failures_come_back() -> None:
    def host(x: Any) -> Any:
        if x[0] < 0:
            raise ValueError("negative")
        return np.asarray(x) * 2

    f = verax.jit(lambda x: verax.pure_callback(host, x, x) + x)
    assert f(sharded()).tolist() == (VALUES * 3).tolist()
    with pytest.raises(CallbackError, match="raised ValueError: negative"):
        np.asarray(f(sharded() - 1))
    assert f(sharded()).tolist() == (VALUES * 3).tolist()


def test_a_program_of_another_device() -> None:
    x = verax.device_put(vnp.ones(3), verax.devices()[3])
    seen: list[Any] = []
    f = verax.jit(lambda x: (verax.debug.callback(seen.append, x), x * 2)[1])
    assert f(x).devices() == {verax.devices()[3]}
    verax.effects_barrier()
    assert [y.tolist() for y in seen] == [[1.0, 1.0, 1.0]]


def test_pure_callbacks_are_called_once() -> None:
    seen: list[Any] = []

    def host(x: Any) -> Any:
        seen.append(x.shape)
        return np.asarray(x) * 2

    out = verax.jit(lambda x: verax.pure_callback(host, x, x))(sharded())
    assert out.tolist() == (VALUES * 2).tolist()
    assert seen == [(16,)]


GRID = verax.make_mesh((4, 2), ("x", "y"))
RESULT = verax.ShapeDtypeStruct((), np.float32)
SPLIT = P("x")
X = np.arange(8, dtype=np.float32)
PAIRS = [*X.reshape(4, 2).tolist(), *X.reshape(4, 2).tolist()]
"""The parts of X along "x", each on two devices."""


def parts_seen(
    body: Callable[..., Any],
    ins: Any = SPLIT,
    outs: Any = SPLIT,
    x: Any = X,
    around: Callable[..., Any] = lambda f: f,
) -> tuple[list[Any], Any]:
    """With what a callback was called, sorted, and the result of the program.

    `body(note, x)` gives `note` to a callback; it returns the sum of its argument.
    """
    seen: list[Any] = []

    def note(*xs: Any) -> Any:
        seen.append([np.asarray(x).tolist() for x in xs])
        return np.float32(sum([np.sum(x) for x in xs]))

    mapped = verax.shard_map(
        lambda x: body(note, x), mesh=GRID, in_specs=ins, out_specs=outs
    )
    out = verax.jit(around(mapped))(x)
    verax.effects_barrier()
    return sorted(seen), np.asarray(out).tolist()


def shown(note: Any, x: Any) -> Any:
    verax.debug.callback(note, x)
    return x


@pytest.mark.parametrize("call", [verax.pure_callback, io_callback])
def test_each_device_calls_with_its_part(call: Any) -> None:
    sums = X.reshape(4, 2).sum(1).tolist()
    actual = parts_seen(lambda note, x: call(note, RESULT, x)[None])
    assert actual == (sorted([[x] for x in PAIRS]), sums)
    both = P(("x", "y"))
    actual = parts_seen(lambda note, x: call(note, RESULT, x)[None], both, both)
    assert actual == ([[[x]] for x in X], X.tolist())


@pytest.mark.parametrize("call", [verax.pure_callback, io_callback])
def test_operands_that_are_the_same_everywhere(call: Any) -> None:
    actual = parts_seen(lambda note, x: call(note, RESULT, x), P(), P())
    assert actual == ([[X.tolist()]] * 8, X.sum())
    actual = parts_seen(lambda note, x: call(note, RESULT, x)[None], P(), P("x"))
    assert actual == ([[X.tolist()]] * 8, [X.sum()] * 4)


def test_effects_of_each_device() -> None:
    def silent(note: Any, x: Any) -> Any:
        verax.debug.callback(note)
        verax.debug.callback(note, np.float32(3))
        return x

    assert parts_seen(silent) == ([[]] * 8 + [[3.0]] * 8, X.tolist())
    assert parts_seen(shown)[0] == sorted([[x] for x in PAIRS])


def test_effects_of_a_program_without_arguments() -> None:
    seen: list[int] = []
    f = verax.shard_map(
        lambda: verax.debug.callback(lambda: seen.append(1)),
        mesh=GRID,
        in_specs=(),
        out_specs=None,
    )
    verax.jit(f)()
    verax.effects_barrier()
    assert seen == [1] * 8


def test_loops_and_maps_around_callbacks() -> None:
    def loop(note: Any, x: Any) -> Any:
        return lax.scan(lambda c, t: (shown(note, c + t), None), x[0] * 0, x)[0][None]

    both = P(("x", "y"))
    assert parts_seen(loop, both, both) == ([[x] for x in X], X.tolist())

    def inside(note: Any, x: Any) -> Any:
        return verax.vmap(lambda x: io_callback(note, RESULT, x))(x)

    assert parts_seen(inside) == (sorted([[x] for x in [*X, *X]]), X.tolist())
    two = np.stack([X, X + 10])
    seen, out = parts_seen(shown, x=two, around=verax.vmap)
    assert out == two.tolist()
    assert seen == sorted([[x] for x in np.tile(two.reshape(8, 2), (2, 1)).tolist()])


def test_derivatives_of_what_shows_its_part() -> None:
    def loss(f: Any) -> Any:
        return verax.grad(lambda x: (f(x) ** 2).sum())

    assert parts_seen(shown, around=loss) == (
        sorted([[x] for x in PAIRS]),
        (2 * X).tolist(),
    )


def test_a_branch_that_some_parts_take_is_called_by_the_first_device() -> None:
    def body(note: Any, x: Any) -> Any:
        return lax.cond(x[0] > 3, lambda x: shown(note, x), lambda x: x * 2, x)

    seen, out = parts_seen(body)
    assert seen == [[[4, 5]], [[6, 7]]]
    assert out == [0, 2, 4, 6, 4, 5, 6, 7]

    def loop(note: Any, x: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < 3, lambda c: shown(note, c + 2), x)

    seen, out = parts_seen(loop)
    assert seen == [[[2, 3]], [[4, 5]], [[4, 5]]]
    assert out == [4, 5, 4, 5, 4, 5, 6, 7]


@pytest.mark.parametrize("method", ["sequential", "expand_dims", None])
def test_pure_callbacks_in_branches_and_loops_of_parts(method: str | None) -> None:
    def body(note: Any, x: Any) -> Any:
        def sum_of(x: Any) -> Any:
            return verax.pure_callback(note, RESULT, x, vmap_method=method)

        y = lax.cond(x[0] > 3, sum_of, lambda x: -x[0], x)
        z = lax.switch(lax.axis_index("x"), [sum_of, lambda x: x[0]], x)
        w = lax.while_loop(lambda c: c[0] < 5, lambda c: c + sum_of(c), x)
        return vnp.stack([y, z, w[0]])[None]

    seen, out = parts_seen(body)
    assert out == [[0, 1, 13], [-2, 2, 7], [9, 4, 13], [13, 6, 6]]
    assert [[4, 5]] in seen
    assert [[0, 1]] in seen


def test_ordered_callbacks_take_one_part_after_the_other() -> None:
    def body(note: Any, x: Any) -> Any:
        return io_callback(note, RESULT, x, ordered=True)[None]

    seen, out = parts_seen(body)
    assert seen == [[x] for x in X.reshape(4, 2).tolist()]
    assert out == X.reshape(4, 2).sum(1).tolist()


def test_a_map_over_some_axes_of_the_mesh() -> None:
    seen: list[Any] = []

    def note(x: Any) -> None:
        seen.append(x.tolist())

    f = verax.shard_map(
        lambda x: shown(note, x),
        mesh=GRID,
        in_specs=P("x"),
        out_specs=P("x"),
        axis_names={"x"},
    )
    assert verax.jit(f)(X).tolist() == X.tolist()
    verax.effects_barrier()
    assert sorted(seen) == X.reshape(4, 2).tolist()


@pytest.mark.parametrize("method", ["sequential", "expand_dims", None])
def test_the_batch_methods_are_for_vmap_alone(method: str | None) -> None:
    def body(note: Any, x: Any) -> Any:
        return verax.pure_callback(note, RESULT, x, vmap_method=method)[None]

    assert parts_seen(body)[0] == sorted([[x] for x in PAIRS])


def test_failures_of_one_part() -> None:
    def host(x: Any) -> Any:
        if x[0] == 4:
            raise ValueError("a bad part")
        return x

    f = verax.jit(
        verax.shard_map(
            lambda x: verax.pure_callback(host, x, x),
            mesh=GRID,
            in_specs=P("x"),
            out_specs=P("x"),
        )
    )
    with pytest.raises(CallbackError, match="raised ValueError: a bad part"):
        f(X).block_until_ready()
    assert f(X + 10).tolist() == (X + 10).tolist()


def test_programs_say_along_which_axes_a_callback_runs() -> None:
    f = verax.shard_map(
        lambda x: shown(print, x), mesh=GRID, in_specs=P("x"), out_specs=P("x")
    )
    text = str(verax.make_jaxpr(f)(X))
    assert "axes=(x,)" in text
    assert "axes=" not in str(verax.make_jaxpr(lambda x: shown(print, x))(X))


@pytest.mark.parametrize("method", ["sequential", "expand_dims", None])
def test_each_device_of_pmap_calls_with_its_part(method: str | None) -> None:
    seen: list[list[float]] = []

    def note(x: Any) -> Any:
        seen.append(np.asarray(x).tolist())
        return np.asarray(x) * 2

    xs = np.arange(16, dtype=np.float32).reshape(8, 2)
    f = verax.pmap(lambda x: verax.pure_callback(note, x, x, vmap_method=method))
    assert f(xs).tolist() == (xs * 2).tolist()
    assert sorted(seen) == xs.tolist()


def test_vmap_asks_for_a_method() -> None:
    with pytest.raises(verax.errors.MissingRule, match="vmap_method"):
        verax.vmap(lambda x: verax.pure_callback(np.sin, x, x))(VALUES)


TWO = verax.make_mesh((2, 4), ("x", "y"))


@pytest.mark.parametrize("ordered", [False, True])
def test_partitioned_callbacks_see_what_each_device_has(ordered: bool) -> None:
    seen: list[tuple[list[Any], list[Any]]] = []

    def note(x: Any, y: Any) -> None:
        seen.append((np.asarray(x).tolist(), np.asarray(y).tolist()))

    @verax.jit
    def f(x: Any, y: Any) -> Any:
        verax.debug.callback(note, x, y, ordered=ordered, partitioned=True)
        return x * 2

    x = verax.device_put(VALUES.reshape(2, 8), NamedSharding(TWO, P("x", "y")))
    y = verax.device_put(VALUES[:4], NamedSharding(TWO, P("y")))
    assert f(x, y).tolist() == (VALUES.reshape(2, 8) * 2).tolist()
    verax.effects_barrier()
    whole = [(VALUES.reshape(2, 8).tolist(), VALUES[:4].tolist())]
    parts = [
        ([[8.0 * i + 2 * j, 8.0 * i + 2 * j + 1]], [float(j)])
        for i in range(2)
        for j in range(4)
    ]
    assert sorted(seen) == (whole if ordered else parts)


def test_partitioned_prints(capfd: pytest.CaptureFixture[str]) -> None:
    @verax.jit
    def f(x: Any) -> Any:
        verax.debug.print("{}", x, partitioned=True)
        verax.vmap(lambda row: verax.debug.print("of {}", row, partitioned=True))(x)
        return x

    f(sharded())
    verax.effects_barrier()
    lines = capfd.readouterr().out.splitlines()
    assert len([line for line in lines if line.startswith("[")]) == 8
    assert len([line for line in lines if line.startswith("of ")]) == 16
    assert f(np.ones(2, np.float32)).tolist() == [1.0, 1.0]
    verax.effects_barrier()
    assert capfd.readouterr().out.splitlines() == ["[1. 1.]", "of 1.0", "of 1.0"]


def test_partitioned_callbacks_in_shard_map_and_with_types_of_explicit_axes() -> None:
    seen: list[Any] = []

    def g(x: Any) -> Any:
        verax.debug.callback(lambda x: seen.append(x.tolist()), x, partitioned=True)
        return x

    mapped = verax.shard_map(g, mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    mapped(VALUES)
    verax.effects_barrier()
    assert sorted(seen) == VALUES.reshape(8, 2).tolist()
    seen.clear()
    mesh = MESH.update(axis_types=(AxisType.Explicit,))
    verax.jit(g)(verax.device_put(VALUES, NamedSharding(mesh, P("x"))))
    verax.effects_barrier()
    assert sorted(seen) == VALUES.reshape(8, 2).tolist()


def test_eager_checks_and_prints_of_arrays_in_parts() -> None:
    """The host looks at the values; no program is made for that."""

    def positive(x: Any) -> Any:
        checkify.check(vnp.all(x > 0), "the least is {}", x.min())
        verax.debug.callback(lambda x: seen.append(np.asarray(x).tolist()), x)
        return x

    seen: list[Any] = []
    for f in (positive, verax.vmap(positive)):
        with pytest.raises(checkify.JaxRuntimeError, match=r"least is 0\.0"):
            f(sharded())
    assert positive(sharded() + 1).sharding == sharded().sharding
    verax.effects_barrier()
    assert seen == [(VALUES + 1).tolist()]
