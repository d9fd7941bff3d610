"""Meshes with explicit axes and others, where the compiler decides; eight devices."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.sharding import AxisType, NamedSharding, PartitionSpec as P, reshard

TYPES = (AxisType.Explicit, AxisType.Auto)
MESH = verax.make_mesh((2, 4), ("x", "y"), axis_types=TYPES)
ALONE = verax.make_mesh((1, 8), ("x", "y"), axis_types=TYPES)
VALUES = np.arange(64, dtype=np.float32).reshape(8, 8) / 8

PROGRAMS: dict[str, tuple[Callable[[verax.Array], verax.Array], str]] = {
    "same": (lambda x: x + 1, "f32[8@x,8]"),
    "turned": (lambda x: x.T, "f32[8,8@x]"),
    "longer": (lambda x: x.reshape(8, 2, 4), "f32[8@x,2,4]"),
    "summed": (lambda x: x.sum(1), "f32[8@x]"),
    "whole": (lambda x: x.sum(0), "f32[8]"),
    "moved": (lambda x: reshard(x, P(None, "x")), "f32[8,8@x]"),
    "made": (lambda x: vnp.ones((8, 8), out_sharding=P(None, "x")), "f32[8,8@x]"),
    "slope": (verax.grad(lambda x: (x.T**2).sum()), "f32[8@x,8]"),
}


@pytest.mark.parametrize("mesh", [MESH, ALONE], ids=["two", "one"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_of_the_types_of_the_program(name: str, mesh: Any) -> None:
    """XLA, which splits results as it likes, knows of no axis of one device."""
    f, text = PROGRAMS[name]
    with verax.set_mesh(mesh):
        x = verax.device_put(VALUES, NamedSharding(mesh, P("x", None)))
        for out in (f(x), verax.jit(f)(x)):
            assert str(out.aval) == text
            np.testing.assert_allclose(out, f(vnp.asarray(VALUES)), 1e-6)


CONSTRAINTS = [
    (P("y"), P(("x", "y"))),
    (P(None, "y"), P("x", "y")),
    (P(), P("x", None)),
]


@pytest.mark.parametrize(("asked", "due"), CONSTRAINTS, ids=str)
def test_a_constraint_keeps_the_axes_of_the_type(asked: P, due: P) -> None:
    with verax.set_mesh(MESH):
        x = verax.device_put(VALUES, NamedSharding(MESH, P("x", None)))

        def f(x: Any) -> Any:
            return lax.with_sharding_constraint(x, asked)

        place = NamedSharding(MESH, due)
        eager, compiled = f(x), verax.jit(f)(x)
        assert compiled.sharding == place
        assert eager.sharding.is_equivalent_to(place, 2)
        for out in (eager, compiled):
            assert str(out.aval) == "f32[8@x,8]"
            assert np.array_equal(out, VALUES)
        ct = verax.jit(verax.grad(lambda x: (f(x) ** 2).sum()))(x)
        assert str(ct.aval) == "f32[8@x,8]"
        assert np.array_equal(ct, 2 * VALUES)
        rows = verax.jit(verax.vmap(lambda x: f(x * 2), in_axes=1, out_axes=1))
        stack = verax.device_put(np.stack([VALUES] * 3, 1), P("x", None, None))
        assert np.array_equal(rows(stack), 2 * np.asarray(stack))


def test_the_compiler_uses_no_axes_of_types() -> None:
    """Values between the first and the last do not say less than results."""
    kinds = (AxisType.Explicit, AxisType.Explicit, AxisType.Auto)
    mesh = verax.make_mesh((2, 2, 2), ("x", "y", "z"), kinds)
    with verax.set_mesh(mesh):
        x = verax.device_put(VALUES, NamedSharding(mesh, P("x")))
        text = verax.jit(lambda x: vnp.sin(x) * 2).lower(x).as_text()
    assert text.count('[{"x", ?}, {?}], replicated={"y"}>') == 3


SPECS = [
    ((), (None, None), (None, None, None)),
    (("x",), ("x", None), ("x", None, None)),
    (("y",), ("y",), ("y",)),
    ((None, "y"), (None, "y"), (None, "y")),
    ((("x", "y"), None), (("x", "y"),), (("x", "y"),)),
    (("x", None), ("x", None), ("x", None, None)),
]


@pytest.mark.parametrize(("given", "same", "stacked"), SPECS, ids=str)
def test_specs_of_results_are_those_of_jax(given: Any, same: Any, stacked: Any) -> None:
    """All dimensions where types say all, else up to the last that is split."""
    with verax.set_mesh(MESH):
        x = verax.device_put(VALUES, NamedSharding(MESH, P(*given)))
        assert verax.jit(lambda x: x * 2)(x).sharding.spec == P(*same)
        pair = verax.jit(lambda x: vnp.stack([x, x], -1))(x)
    assert pair.sharding.spec == P(*stacked)


def test_a_dimension_that_a_constraint_leaves_open_stays_open() -> None:
    mesh = verax.make_mesh((2, 2, 2), ("x", "y", "z"), axis_types=(*TYPES, TYPES[1]))
    asked = P(P.UNCONSTRAINED, "z")
    with verax.set_mesh(mesh):
        x = verax.device_put(VALUES, NamedSharding(mesh, P("y", ("x", "z"))))
        out = verax.jit(lambda x: lax.with_sharding_constraint(x * 2, asked))(x)
        assert str(out.aval) == "f32[8,8@x]"
        assert out.sharding == x.sharding
        assert np.array_equal(out, 2 * VALUES)


def test_places_in_traces_name_both_kinds_of_axes() -> None:
    place = NamedSharding(MESH, P("x", "y"))
    with verax.set_mesh(MESH):
        x = verax.device_put(VALUES, NamedSharding(MESH, P()))
        out = verax.jit(lambda x: verax.device_put(x * 2, place))(x)
        assert (str(out.aval), out.sharding) == ("f32[8@x,8]", place)
        jitted = verax.jit(lambda x: x * 2, in_shardings=place, out_shardings=place)
        inner = verax.jit(lambda x: jitted(x) + 1)(x)
        assert (str(inner.aval), inner.sharding) == ("f32[8@x,8]", place)


ROWS = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)


def product(x: verax.Array, w: verax.Array) -> verax.Array:
    return vnp.sum(vnp.tanh(x) @ w)


def lookup(x: verax.Array, w: verax.Array) -> verax.Array:
    rows = w.at[vnp.argmax(x, 1)].get(out_sharding=P("x", None))
    return vnp.sum(rows**2)


GRADIENTS = [
    (product, np.tanh(VALUES).T @ np.ones((8, 8), np.float32)),
    (lookup, np.where(np.arange(8)[:, None] == 7, 16 * ROWS, 0)),
]


@pytest.mark.parametrize(("f", "due"), GRADIENTS, ids=["product", "lookup"])
@pytest.mark.parametrize("spec", [P(), P(None, "y"), P("y", None)], ids=str)
def test_gradients_of_weights_are_whole_along_the_axes_of_the_batch(
    f: Callable[[verax.Array, verax.Array], verax.Array], due: np.ndarray, spec: P
) -> None:
    """What XLA splits along them on the way is brought together again."""
    with verax.set_mesh(MESH):
        x = verax.device_put(VALUES, NamedSharding(MESH, P("x", None)))
        w = verax.device_put(ROWS, NamedSharding(MESH, spec))
        for g in (verax.grad(f, 1), verax.jit(verax.grad(f, 1))):
            ct = g(x, w)
            assert str(ct.aval) == "f32[8,8]"
            assert "x" not in str(ct.sharding.spec)
            np.testing.assert_allclose(ct, due, 1e-5)


def test_steps_of_training_are_those_of_one_device() -> None:
    """The batch over an explicit axis, the layers over one where XLA decides."""
    random = np.random.RandomState(0)
    shapes = ((8, 16), (16, 4), (32, 8), (32, 4))
    first, second, xs, ys = [random.randn(*s).astype(np.float32) / 4 for s in shapes]

    def loss(w: Any, x: Any, y: Any) -> Any:
        return vnp.mean((vnp.tanh(x @ w[0]) @ w[1] - y) ** 2)

    def step(w: Any, x: Any, y: Any) -> Any:
        value, grads = verax.value_and_grad(loss)(w, x, y)
        return value, [a - b / 2 for a, b in zip(w, grads, strict=True)]

    due, plain = [], [vnp.asarray(first), vnp.asarray(second)]
    for _ in range(3):
        value, plain = verax.jit(step)(plain, xs, ys)
        due.append(value)
    specs = [P(None, "y"), P("y"), P("x", None), P("x", None)]
    with verax.set_mesh(MESH):
        spread = [
            verax.device_put(value, NamedSharding(MESH, spec))
            for value, spec in zip((first, second, xs, ys), specs, strict=True)
        ]
        for f in (verax.jit(step), step):
            w, actual = spread[:2], []
            for _ in range(3):
                value, w = f(w, *spread[2:])
                actual.append(value)
            np.testing.assert_allclose(actual, due, 1e-5)
            assert [x.sharding.spec for x in w] == specs[:2]
            for x, y in zip(w, plain, strict=True):
                np.testing.assert_allclose(x, y, 1e-4, 1e-6)
