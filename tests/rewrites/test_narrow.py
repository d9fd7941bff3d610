"""`rewrites.narrow` on functions: both orders of derivatives, searches, reports."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.rewrites import narrow, narrow_report

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((8, 8)).astype(np.float32)
W = RANDOM.standard_normal((8, 8)).astype(np.float32) / 3


def apart(x: Any, y: Any) -> float:
    return float(np.linalg.norm(np.subtract(x, y)) / np.linalg.norm(y))


@verax.custom_vjp
def own(x: Any) -> Any:
    return vnp.tanh(x @ x)


def forwards(x: Any) -> Any:
    y = own(x)
    return y, (x, y)


def backwards(saved: Any, ct: Any) -> Any:
    x, y = saved
    inner = ct * (1 - y**2)
    return (inner @ x.T + x.T @ inner,)


own.defvjp(forwards, backwards)


def choice(w: Any, x: Any) -> Any:
    return lax.cond(x[0, 0] > 0, lambda: x @ w, lambda: x @ w.T)


def two_layers(w: Any, x: Any) -> Any:
    return vnp.tanh(verax.nn.relu(x @ w) @ w)


def looped(w: Any, x: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, h: vnp.tanh(h @ w), x)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "plain": lambda w, x: vnp.tanh(x @ w) @ w,
    "scan": looped,
    "cond": choice,
    "checkpoint": verax.checkpoint(two_layers),
    "own rule": lambda w, x: own(x @ w),
    "jit": verax.jit(two_layers),
    "vmap": lambda w, x: verax.vmap(lambda row: w @ row)(x),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_narrow_in_both_orders_and_the_same(name: str) -> None:
    def loss(w: Any, x: Any) -> Any:
        return vnp.sum(FUNCTIONS[name](w, x) ** 2)

    exact = verax.grad(loss)(W, X)
    outside = narrow(verax.grad(loss))(W, X)
    inside = verax.grad(narrow(loss))(W, X)
    compiled = verax.jit(verax.grad(narrow(loss)))(W, X)
    np.testing.assert_array_equal(outside, inside)
    assert outside.dtype == np.float32
    assert 1e-5 < apart(outside, exact) < 2e-2
    assert apart(compiled, outside) < 2e-2


def test_gradients_are_summed_in_float32_over_the_steps_of_a_loop() -> None:
    """A bfloat16 sum of 2,000 equal terms would stop at 256 of them."""

    def loss(w: Any, x: Any) -> Any:
        def step(total: Any, _: None) -> tuple[Any, None]:
            return total + vnp.sum(x @ w), None

        return lax.scan(step, 0.0, None, length=2000)[0]

    ones = np.ones((2, 2), np.float32)
    for gradient in (verax.grad(narrow(loss)), narrow(verax.grad(loss))):
        np.testing.assert_allclose(gradient(ones, ones), 4000.0)


def test_forward_mode_second_derivatives_and_batches_are_narrow() -> None:
    def f(w: Any) -> Any:
        return vnp.sum(vnp.tanh(X @ w) ** 3)

    for wide, short in (
        (verax.jvp(f, (W,), (W,))[1], verax.jvp(narrow(f), (W,), (W,))[1]),
        (verax.hessian(f)(W), verax.hessian(narrow(f))(W)),
        (verax.vmap(f)(np.stack([W, X])), verax.vmap(narrow(f))(np.stack([W, X]))),
    ):
        assert 0 < apart(short, wide) < 3e-2


def test_what_is_no_array_stays() -> None:
    def f(model: Any, x: Any) -> Any:
        return {"name": model["name"], "y": model["act"](x @ model["w"])}

    out = narrow(f)({"name": "layer", "act": vnp.tanh, "w": W}, X)
    assert out["name"] == "layer"
    assert 0 < apart(out["y"], np.tanh(X @ W)) < 1e-2


def test_programs_without_products_are_not_wrapped() -> None:
    program = verax.make_jaxpr(narrow(lambda x: vnp.exp(x) + 1))(X)
    assert [eqn.primitive.name for eqn in program.eqns] == ["exp", "add"]


def test_a_jaxpr_becomes_a_narrow_one() -> None:
    program = narrow(verax.make_jaxpr(lambda x: x @ x)(X))
    (out,) = verax.transforms.evaluate(program, X)
    assert 0 < apart(out, X @ X) < 1e-2
    same = narrow(verax.make_jaxpr(lambda x: x @ x)(X), to=vnp.float32)
    assert str(same) == str(verax.make_jaxpr(lambda x: x @ x)(X))


def test_closed_over_tracers_and_keywords() -> None:
    def outer(w: Any) -> Any:
        return vnp.sum(narrow(lambda x, *, scale: (x @ w) * scale)(X, scale=2.0))

    exact = verax.grad(lambda w: vnp.sum(X @ w) * 2.0)(W)
    assert apart(verax.grad(outer)(W), exact) < 1e-2


def cancelling(w: Any, x: Any) -> Any:
    """A line that bfloat16 ruins, and one that it does not."""
    near = (x + 1000.0) @ w - x @ w
    return near - 1000.0 * vnp.sum(w, 0), vnp.tanh(x @ w)


def test_a_search_keeps_the_lines_wide_that_lose_too_much() -> None:
    report = narrow_report(cancelling, tolerance=2e-2)(W, X)
    first = cancelling.__code__.co_firstlineno + 2
    assert [line.line for line in report.wide] == [first]
    assert report.keep == (f"test_narrow.py:{first}",)
    assert report.error is not None
    assert 0 < report.error <= 2e-2
    assert 0 < report.share < 1

    found = narrow(cancelling, tolerance=2e-2, on=[(W, X), (2 * W, X)])
    kept = narrow(cancelling, keep=report.keep)
    for out, same, exact in zip(found(W, X), kept(W, X), cancelling(W, X), strict=True):
        np.testing.assert_array_equal(out, same)
        assert apart(out, exact) <= 2e-2


def test_a_tolerance_that_all_lines_keep_takes_one_trial() -> None:
    report = narrow_report(lambda w, x: vnp.tanh(x @ w) @ w, tolerance=0.1)(W, X)
    assert (report.trials, report.keep) == (1, ())


def test_reports_say_what_is_narrow_and_why_other_products_are_not() -> None:
    def f(w: Any, x: Any) -> Any:
        a = x @ w
        b = vnp.matmul(a, w, precision="highest")
        return b, x[0] @ w[0]

    report = narrow_report(f)(W, X)
    assert [line.reason for line in report.lines] == [
        "",
        "a precision was requested",
        "a sum",
    ]
    assert report.casts == 2
    assert 0.4 < report.share < 0.6
    assert report.narrow_bytes < report.bytes
    assert "casts" in str(report)


@pytest.mark.parametrize(
    ("program", "options", "error", "message"),
    [
        (3, {}, TypeError, "functions and jaxprs"),
        (vnp.sin, {"to": np.int8}, TypeError, "type of floats"),
        (vnp.sin, {"keep": [1.5]}, TypeError, "keep takes"),
        (vnp.sin, {"sums": "short"}, ValueError, "wide"),
        (vnp.sin, {"tolerance": 0.1}, ValueError, "needs batches"),
        (vnp.matmul, {"tolerance": -1.0, "on": [(X, X)]}, ValueError, "positive"),
        (verax.make_jaxpr(vnp.sin)(1.0), {"tolerance": 0.1}, ValueError, "report.keep"),
    ],
)
def test_errors_say_what_to_do(
    program: Any, options: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        narrow(program, **options)


def test_a_search_needs_values() -> None:
    with pytest.raises(verax.errors.ConcretizationTypeError, match="narrow_report"):
        verax.jit(lambda w: narrow_report(vnp.matmul, tolerance=0.1)(w, w))(W)
