"""What `vjp` and `linearize` return is a pytree, which passes every border."""

import gc
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax, tree_util
from verax.tree_util import Partial, tree_leaves, tree_structure

X = vnp.array([0.3, -1.2, 2.5])
A = np.arange(9, dtype=np.float32).reshape(3, 3) / 7


def looped(x: Any) -> Any:
    return lax.scan(lambda c, y: (c * y + vnp.sin(c), c), x, X)[0]


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "square": lambda x: x * x,
    "nothing saved": lambda x: x[::-1] * 2.0,
    "a constant": lambda x: vnp.asarray(A) @ vnp.tanh(x),
    "constants of inner programs": verax.jit(lambda x: vnp.asarray(A) @ x * x),
    "an output of integers": lambda x: {"a": x * 2.0, "i": vnp.argmax(x)},
    "several outputs": lambda x: {"a": x * 2.0, "b": vnp.sin(x)},
    "no use": lambda x: vnp.ones(3),
    "scan": looped,
    "checkpoint": verax.checkpoint(lambda x: vnp.sin(vnp.sin(x))),
    "cond": lambda x: lax.cond(x[0] > 0, vnp.sin, lambda y: y * y, x),
}
NAMES = pytest.mark.parametrize("name", FUNCTIONS)


def ones(fun: Callable[[Any], Any]) -> Any:
    def one(leaf: Any) -> Any:
        float_ = np.issubdtype(leaf.dtype, np.floating)
        dtype = leaf.dtype if float_ else verax.dtypes.float0
        return np.ones(leaf.shape, leaf.dtype) if float_ else np.zeros((), dtype)

    return tree_util.tree_map(one, verax.eval_shape(fun, X))


def same(result: Any, expected: Any) -> None:
    assert tree_structure(result) == tree_structure(expected)
    for a, b in zip(tree_leaves(result), tree_leaves(expected), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if a.dtype != verax.dtypes.float0:
            np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-6)


@NAMES
def test_the_leaves_are_the_residuals(name: str) -> None:
    fun = FUNCTIONS[name]
    _, pull = verax.vjp(fun, X)
    _, push = verax.linearize(fun, X)
    for f, argument in ((pull, ones(fun)), (push, X)):
        leaves, tree = tree_util.tree_flatten(f)
        assert all(isinstance(leaf, verax.Array) for leaf in leaves)
        same(tree.unflatten(leaves)(argument), f(argument))
        assert len(str(tree)) < 300
    assert isinstance(push, Partial)
    same(push.func(*push.args, X, **push.keywords), push(X))


@NAMES
def test_equal_programs_have_equal_structures(name: str) -> None:
    fun = FUNCTIONS[name]
    for make in (verax.vjp, verax.linearize):
        one, two = (tree_structure(make(fun, x)[1]) for x in (X, X + 1))
        other = tree_structure(make(lambda x: (fun(x), vnp.cumsum(x)), X)[1])
        assert one == two
        assert hash(one) == hash(two)
        assert one != other


@pytest.mark.slow
@NAMES
def test_out_of_jit_and_into_it(name: str) -> None:
    fun = FUNCTIONS[name]
    traces = []

    @verax.jit
    def call(f: Any, argument: Any) -> Any:
        traces.append(f)
        return f(argument)

    for make, argument in ((verax.vjp, ones(fun)), (verax.linearize, X)):
        out, f = make(fun, X)
        jitted_out, jitted = verax.jit(lambda x, make=make: make(fun, x))(X)
        same(jitted_out, out)
        same(jitted(argument), f(argument))
        traces.clear()
        for x in (X, X + 1, X * 2):
            same(call(make(fun, x)[1], argument), make(fun, x)[1](argument))
        assert len(traces) == 1


def with_derivative(make: Any, fun: Any, carry: Any, x: Any) -> tuple[Any, Any]:
    return carry, make(fun, x)[1]


def at_argument(argument: Any, carry: Any, f: Any) -> tuple[Any, Any]:
    return carry, f(argument)


@pytest.mark.slow
@NAMES
def test_out_of_vmap_and_scan_and_into_them(name: str) -> None:
    fun = FUNCTIONS[name]
    xs = vnp.stack([X, X + 1])
    for make, argument in ((verax.vjp, ones(fun)), (verax.linearize, X)):
        expected = [make(fun, x)[1](argument) for x in xs]
        mapped = verax.vmap(lambda x, make=make: make(fun, x)[1])(xs)
        actual = verax.vmap(lambda f, t: f(t), (0, None), axis_size=2)(mapped, argument)
        for i, row in enumerate(expected):
            same(tree_util.tree_map(lambda a, i=i: a[i], actual), row)
        _, stacked = lax.scan(partial(with_derivative, make, fun), 0, xs)
        _, rows = lax.scan(partial(at_argument, argument), 0, stacked, 2)
        for i, row in enumerate(expected):
            same(tree_util.tree_map(lambda a, i=i: a[i], rows), row)


def test_as_a_carry_and_out_of_branches() -> None:
    for make in (verax.vjp, verax.linearize):
        _, f = make(vnp.sin, vnp.float32(1))

        def step(f: Any, x: Any, make: Any = make) -> tuple[Any, Any]:
            return make(vnp.sin, x)[1], f(1.0)

        last, _ = lax.scan(step, f, X)
        same(last(1.0), make(vnp.sin, X[2])[1](1.0))
        chosen = lax.cond(
            True,
            lambda x, make=make: make(vnp.sin, x)[1],
            lambda x, make=make: make(vnp.sin, x + 1)[1],
            2.0,
        )
        same(chosen(1.0), make(vnp.sin, 2.0)[1](1.0))
        held = lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0], c[1] + 1), (f, 0))
        same(held[0](1.0), f(1.0))
    with pytest.raises(TypeError, match="structure") as caught:
        lax.cond(
            True,
            lambda x: verax.vjp(vnp.sin, x)[1],
            lambda x: verax.vjp(lambda x: vnp.exp(x) * x, x)[1],
            2.0,
        )
    assert len(str(caught.value)) < 900


def test_as_a_residual_of_a_custom_rule() -> None:
    @verax.custom_vjp
    def f(x: Any) -> Any:
        return vnp.sin(x)

    f.defvjp(lambda x: verax.vjp(vnp.sin, x), lambda pull, ct: pull(ct))
    assert float(verax.grad(f)(1.0)) == pytest.approx(np.cos(1.0))
    assert float(verax.jit(verax.grad(f))(1.0)) == pytest.approx(np.cos(1.0))
    actual = verax.vmap(verax.grad(f))(X)
    np.testing.assert_allclose(actual, np.cos(X), rtol=1e-6)


def test_a_derivative_is_a_tree_of_arrays_like_any_other() -> None:
    _, pull = verax.vjp(lambda x: vnp.sum(x * x), X)
    doubled = tree_util.tree_map(lambda r: 2 * r, pull)
    np.testing.assert_allclose(doubled(1.0)[0], 4 * X)
    assert "derivative of sin" in str(tree_structure(verax.vjp(vnp.sin, X)[1]))
    assert repr(verax.vjp(vnp.sin, X)[1]) == "Pullback(sin)"
    second = verax.grad(lambda x: verax.vjp(vnp.sin, x)[1](1.0)[0])
    assert float(second(1.0)) == pytest.approx(-np.sin(1.0))
    assert verax.device_put(pull)(1.0)[0].tolist() == pull(1.0)[0].tolist()


@pytest.mark.usefixtures("few_objects")
def test_a_cached_call_keeps_nothing_alive() -> None:
    """What the function closed over is a leaf, and the name is all that stays."""
    call = verax.jit(lambda f, t: f(t))

    class Held:
        pass

    def run(make: Callable[..., Any]) -> list[Any]:
        array, held = vnp.asarray(np.random.default_rng(0).normal(size=3)), Held()

        def fun(x: Any) -> Any:
            assert held is not None
            return vnp.sin(x) * array

        call(make(fun, X)[1], X)
        return [weakref.ref(array), weakref.ref(held)]

    for make in (verax.vjp, verax.linearize):
        references = run(make)
        gc.collect()
        assert [ref() for ref in references][1:] == [None]
