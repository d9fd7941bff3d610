"""Choices and loops under vmap: one after another on request, or side by side."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from tests.lax.counting import evaluations
from verax import Array, lax
from verax.ir.forms.parser import parse_closed
from verax.ir.walk import walk
from verax.ops.elementwise.exp_log import log_p
from verax.ops.elementwise.trig import sin_p
from verax.ops.table import PRIMITIVES

FLAGS = vnp.array([True, False, True, True])
XS = vnp.array([-1.0, 2.0, 0.0, 0.5])


def chosen(p: Any, x: Any, y: Any) -> Any:
    def no(x: Any, y: Any) -> Any:
        return vnp.log(x) + y * y

    def yes(x: Any, y: Any) -> Any:
        return vnp.sin(x) * y

    return lax.cond(p, yes, no, x, y, vmap_method="sequential")


def chosen_in_python(p: Any, x: Any, y: Any) -> Any:
    return vnp.sin(x) * y if bool(p) else vnp.log(x) + y * y


def switched(i: Any, x: Any) -> Any:
    branches = [vnp.sin, vnp.log, lambda x: x * x]
    return lax.switch(i, branches, x, vmap_method="sequential")


def doubled(x: Any) -> Any:
    return lax.while_loop(
        lambda c: c < 10, lambda c: vnp.sin(c) + 2 * c, x, vmap_method="sequential"
    )


def loop(f: Callable[..., Any], *stacks: Array) -> Array:
    return vnp.stack([f(*row) for row in zip(*stacks, strict=True)])


def names(fun: Callable[..., Any], *args: Any) -> list[str]:
    return [eqn.primitive.name for _, eqn in walk(verax.make_jaxpr(fun)(*args).jaxpr)]


def test_only_the_branch_of_each_lane_runs() -> None:
    f = verax.vmap(chosen, (0, 0, None))
    sines, actual = evaluations(sin_p, f, FLAGS, XS, 3.0)
    logs, _ = evaluations(log_p, f, FLAGS, XS, 3.0)
    assert (sines, logs) == (3, 1)
    np.testing.assert_allclose(actual[0], f(FLAGS, XS, 3.0), rtol=1e-6)
    text = verax.jit(f).lower(FLAGS, XS, 3.0).as_text()
    assert "stablehlo.case" in text
    assert "stablehlo.select" not in text


def test_values_and_derivatives_are_those_of_the_loop() -> None:
    f, ys = verax.vmap(chosen), vnp.array([1.0, 2.0, 3.0, 4.0])
    args = (FLAGS, XS, ys)
    due = loop(chosen_in_python, *args)
    np.testing.assert_allclose(f(*args), due, rtol=1e-6)
    np.testing.assert_allclose(verax.jit(f)(*args), due, rtol=1e-6)
    each = [
        verax.grad(chosen_in_python, (1, 2))(*row) for row in zip(*args, strict=True)
    ]
    for k, actual in enumerate(verax.vmap(verax.grad(chosen, (1, 2)))(*args)):
        np.testing.assert_allclose(actual, [row[k] for row in each], rtol=1e-6)
    outside = verax.grad(lambda x, y: f(FLAGS, x, y).sum(), (0, 1))(XS, ys)
    for k, actual in enumerate(outside):
        np.testing.assert_allclose(actual, [row[k] for row in each], rtol=1e-6)


def test_nested_vmap_and_other_axes() -> None:
    indices = vnp.array([[0, 1, 2], [2, 1, 0]])
    xs = vnp.array([[0.5, 1.5], [2.5, 3.5], [4.5, 5.5]])
    f = verax.vmap(verax.vmap(switched), in_axes=(0, 1), out_axes=1)
    actual = f(indices, xs)
    assert actual.shape == (3, 2)
    for i in range(2):
        np.testing.assert_allclose(
            actual[:, i], loop(switched, indices[i], xs[:, i]), rtol=1e-6
        )
    assert verax.vmap(switched)(vnp.zeros(0, int), vnp.zeros(0)).shape == (0,)


def test_one_index_for_all_stays_one_choice() -> None:
    f = verax.vmap(chosen, (None, 0, None))
    assert "scan" not in names(f, True, XS, 3.0)
    assert "cond" in names(f, True, XS, 3.0)
    assert "sequential" not in str(verax.make_jaxpr(lambda p: lax.cond(p, int, int))(1))


def test_programs_are_read_back() -> None:
    """The method is printed where it is not the default, and is read either way."""
    for f, x in ((lambda p: chosen(p, 0.5, 2.0), True), (doubled, 1.0)):
        closed = verax.make_jaxpr(f)(x)
        assert "sequential=True" in str(closed)
        assert parse_closed(str(closed), PRIMITIVES, closed.consts) == closed


def test_each_lane_has_its_own_loop() -> None:
    xs = vnp.array([1.0, 3.0, 20.0])
    steps, actual = evaluations(sin_p, verax.vmap(doubled), xs)
    each = [evaluations(sin_p, doubled, x) for x in xs]
    assert steps == sum(count for count, _ in each)
    np.testing.assert_allclose(actual[0], [outs[0] for _, outs in each], rtol=1e-6)
    np.testing.assert_allclose(verax.jit(verax.vmap(doubled))(xs), actual[0], rtol=1e-6)
    slopes = verax.vmap(verax.jacfwd(doubled))(xs)
    np.testing.assert_allclose(slopes, loop(verax.jacfwd(doubled), xs), rtol=1e-6)


def test_bounds_that_eager_derivatives_know() -> None:
    def power(x: Any) -> Any:
        return lax.fori_loop(0, x.astype(int), lambda i, y: y * x, 1.0)

    assert float(verax.grad(power)(3.0)) == 27.0
    with pytest.raises(ValueError, match="while_loop"):
        verax.grad(verax.jit(power))(3.0)


def test_older_form_and_dynamic_fori_loop() -> None:
    def f(p: Any, x: Any) -> Any:
        return lax.cond(p, x, vnp.sin, x, vnp.log, vmap_method="sequential")

    np.testing.assert_allclose(
        verax.vmap(f)(FLAGS, XS), [np.sin(-1), np.log(2), 0, np.sin(0.5)], rtol=1e-6
    )

    def g(n: Any) -> Any:
        return lax.fori_loop(0, n, lambda i, c: c + i, 0, vmap_method="sequential")

    assert verax.vmap(g)(vnp.array([0, 1, 4])).tolist() == [0, 0, 6]
    assert "scan" in names(verax.vmap(g), vnp.array([0, 1, 4]))


def test_effects_of_lanes_come_in_their_order() -> None:
    """What has effects is sequential without being asked to."""
    seen: list[float] = []

    def yes(x: Any) -> Any:
        verax.debug.callback(lambda x: seen.append(float(x)), x, ordered=True)
        return vnp.sin(x)

    def f(p: Any, x: Any) -> Any:
        return lax.cond(p, yes, vnp.cos, x)

    for g in (verax.vmap(f), verax.jit(verax.vmap(verax.grad(f, 1)))):
        seen.clear()
        g(FLAGS, XS)
        verax.effects_barrier()
        assert seen == [-1.0, 0.0, 0.5]


def test_bad_method() -> None:
    calls: list[Callable[[], Any]] = [
        lambda: lax.cond(True, vnp.sin, vnp.cos, 1.0, vmap_method="fast"),
        lambda: lax.switch(1, [vnp.sin, vnp.cos], 1.0, vmap_method="fast"),
        lambda: lax.while_loop(lambda c: c < 1, vnp.sin, 1.0, vmap_method="fast"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="'masked' or 'sequential'"):
            call()
