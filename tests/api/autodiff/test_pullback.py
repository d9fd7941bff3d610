"""Reverse mode step by step is reverse mode by way of the tangent program."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.api.autodiff.jvp_vjp import Pullback
from verax.api.tracing.apply import COMPUTING, apply, as_arrays
from verax.rules.rows.leaks import LeakedTracer
from verax.rules.rows.row import MissingRule
from verax.transforms import STANDARD
from verax.transforms.engine.derivatives import jvp_into, pushed_types
from verax.transforms.engine.vmap import batch_into

X = vnp.array([0.3, -1.2, 2.5])
A = np.arange(9, dtype=np.float32).reshape(3, 3) / 7


def looped(x: Any) -> Any:
    return lax.scan(lambda c, y: (c * y + vnp.sin(c), c), x, X)[0]


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "square": lambda x: x * x,
    "several uses": lambda x: x * vnp.sin(x) + x / (1.0 + x * x),
    "outputs": lambda x: (x * 2.0, vnp.argmax(x), vnp.cumsum(x)[1:], 3.0),
    "an input as output": lambda x: (x, x, vnp.zeros(3)),
    "constants": lambda x: vnp.asarray(A) @ vnp.tanh(x) + vnp.asarray([1, 2, 3]),
    "no use": lambda x: vnp.ones(3),
    "sorted": lambda x: vnp.sort(x)[::-1] * vnp.asarray([1.0, 2.0, 3.0]),
    "scan": looped,
    "jit": verax.jit(lambda x: vnp.exp(-x) * x),
    "weak": lambda x: vnp.sum(x) * 2 + lax.convert_element_type(x[0], float),
    "checkpoint": verax.checkpoint(lambda x: vnp.sin(vnp.sin(x))),
}


def cotangents(tree: Any, seed: int = 0) -> Any:
    """Cotangents for an output: random ones, float0 for integers."""
    random = np.random.default_rng(seed)

    def one(leaf: Any) -> Any:
        leaf = verax.eval_shape(lambda: leaf) if isinstance(leaf, float) else leaf
        if not np.issubdtype(leaf.dtype, np.floating):
            return np.zeros(leaf.shape, verax.dtypes.float0)
        return vnp.asarray(random.normal(size=leaf.shape), leaf.dtype)

    return verax.tree_util.tree_map(one, tree)


def by_program(pull: Pullback, *cts: Any) -> Any:
    """What the pullback gives by way of its tangent program."""
    leaves = [ct for ct in verax.tree_util.tree_leaves(cts)]
    given, live = pull.given(leaves)
    return pull.at.pack(*pull.linear.transposed(given, live))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_steps_are_the_transposed_program(name: str) -> None:
    out, pull = verax.vjp(FUNCTIONS[name], X)
    ct = cotangents(out)
    (stepwise,) = pull(ct)
    (whole,) = by_program(pull, ct)
    assert stepwise.aval is whole.aval
    np.testing.assert_allclose(stepwise, whole, rtol=2e-6, atol=1e-6)
    again, _ = pull(ct), pull(cotangents(out, 1))
    np.testing.assert_array_equal(again[0], stepwise)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_traced_and_eager_steps_agree(name: str) -> None:
    fun = FUNCTIONS[name]
    ct = cotangents(verax.eval_shape(fun, X))
    eager = verax.vjp(fun, X)[1](ct)[0]
    traced = verax.jit(lambda x: verax.vjp(fun, x)[1](ct)[0])(X)
    np.testing.assert_allclose(eager, traced, rtol=2e-5, atol=1e-6)
    assert eager.aval is traced.aval
    # The pullback of values, called in a trace and mapped there.
    _, pull = verax.vjp(fun, X)
    np.testing.assert_allclose(
        verax.jit(lambda: pull(ct)[0])(), traced, rtol=2e-5, atol=1e-6
    )


def test_a_pullback_is_called_in_a_trace_inside() -> None:
    def f(x: Any) -> Any:
        _, pull = verax.vjp(lambda y: vnp.sin(y) * y * 2.0, x)
        rows = verax.vmap(lambda ct: pull(ct)[0])(vnp.eye(3))
        return lax.fori_loop(0, 3, lambda i, c: c + pull(c)[0], x) + rows.sum(0)

    x = np.asarray(X)
    slope = 2 * (np.cos(x) * x + np.sin(x))
    expected = x * (1 + slope) ** 3 + slope
    for fun in (f, verax.jit(f)):
        np.testing.assert_allclose(fun(X), expected, rtol=1e-4)
    assert verax.jacobian(f)(X).shape == (3, 3)


def test_a_pullback_that_left_its_trace_is_refused() -> None:
    kept = []

    def f(x: Any) -> Any:
        kept.append(verax.vjp(vnp.sin, x)[1])
        return x

    verax.jit(f)(X)
    with pytest.raises(LeakedTracer, match="jit"):
        kept[0](X)
    with pytest.raises(LeakedTracer, match="jit"):
        verax.jit(kept[0])(X)


def test_a_missing_rule_names_the_line() -> None:
    def fun(x: Any) -> Any:
        return verax.pure_callback(np.sin, x, x) * x

    with pytest.raises((MissingRule, TypeError, ValueError), match="callback"):
        verax.grad(lambda x: fun(x).sum())(X)

    def linear_only(t: Any) -> Any:
        return lax.custom_linear_solve(lambda v: 2.0 * v, t, lambda f, v: v / 2.0)

    with pytest.raises(Exception, match=r"test_pullback\.py") as raised:
        verax.vjp(linear_only, X)[1](X)
    inside = raised.value
    with pytest.raises(type(inside), match=r"test_pullback\.py"):
        verax.make_jaxpr(lambda x: verax.vjp(linear_only, x)[1](x))(X)


def test_effects_of_steps_happen_as_by_the_program(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def f(x: Any) -> Any:
        verax.debug.print("x {}", x)
        return x * x

    assert verax.grad(f)(3.0) == 6.0
    verax.effects_barrier()
    assert capsys.readouterr().out == "x 3.0\n"


@pytest.mark.usefixtures("few_objects")
def test_eager_gradients_leave_nothing_to_the_collector() -> None:
    def call() -> None:
        verax.value_and_grad(lambda x: vnp.sum(x * vnp.sin(x)))(X)
        verax.vmap(lambda x: x * x)(X)
        verax.jvp(vnp.sin, (X,), (X,))

    call()
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        call()
        gc.collect()
        left = [type(x).__name__ for x in gc.garbage]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    assert not [name for name in left if name in ("Builder", "Oracle", "Eqn", "Tape")]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["grad", "jacrev", "jacfwd", "hessian", "vmap"])
@pytest.mark.usefixtures("few_objects")
def test_eager_transformations_forget_what_functions_close_over(name: str) -> None:
    alive = []

    def call() -> None:
        table = np.arange(3, dtype=np.float32)
        alive.append(weakref.ref(table))

        def f(x: Any) -> Any:
            actual = table * vnp.sin(x)
            return actual if name in ("jacrev", "jacfwd") else actual.sum()

        getattr(verax, name)(f)(X)

    for _ in range(3):
        call()
    gc.collect()
    assert [ref() for ref in alive] == [None] * 3


def test_constants_of_templates_keep_their_device() -> None:
    last = verax.devices()[-1]
    placed = verax.device_put(vnp.ones(3), last)
    gradient = verax.grad(lambda x: (placed * x).sum())(vnp.ones(3))
    assert gradient.devices() == {last}


def test_nans_in_steps_are_found() -> None:
    def f(x: Any) -> Any:
        return vnp.sqrt(x) * 2.0

    with (
        verax.debug_nans(True),
        pytest.raises(FloatingPointError, match=r"test_pullback\.py"),
    ):
        verax.grad(lambda x: vnp.sum(f(x) * 0.0))(vnp.array([0.0, 1.0]))


@pytest.mark.parametrize("size", [3, 40_000])
def test_writers_run_what_they_would_write(size: int) -> None:
    """`jvp` and `batch` on values are the programs that they would write."""
    x: Any = vnp.linspace(0.5, 2.0, size)
    f = verax.make_jaxpr(lambda x: vnp.exp(x) * 2.0 + vnp.sort(x))(x).jaxpr
    from_values, mask = jvp_into(STANDARD, COMPUTING, f, (True,), [x, x])
    program, same = STANDARD.jvp(f, (True,))
    assert mask == same
    assert [v.aval for v in from_values] == list(program.out_avals)
    assert pushed_types(f, (True,)) == [x.aval, x.aval]
    outs = as_arrays(from_values)
    for actual, due in zip(outs, apply(program, [x, x]), strict=True):
        np.testing.assert_allclose(actual, due, rtol=1e-6)
    xs = vnp.stack([x, 2 * x])
    rows, axes = batch_into(STANDARD, COMPUTING, f, 2, (0,), [xs])
    assert axes == (0,)
    for row, one in zip(as_arrays(rows)[0], (x, 2 * x), strict=True):
        np.testing.assert_allclose(row, apply(f, [one])[0], rtol=1e-6)
