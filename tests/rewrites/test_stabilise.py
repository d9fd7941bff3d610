"""Functions get their digits back: planted losses, loops, derivatives, refusals."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from property_tests.levels import rarely
from tests.api.inspect.test_precision import (
    ACTIVATIONS,
    OTHERS,
    PLANTED,
    TENTHS,
    UNARY,
    P,
    X,
    kahan,
)
from verax import lax, nn
from verax.debug import precision
from verax.rewrites import Stabilised, apply, rewrite, stabilise, stable, trace

BEYOND = ("cancellation", "probabilities", "whole_numbers", "decided")
"""What no other form of the same program repairs: the digits are not there."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", rarely([x[0].__name__ for x in PLANTED], "kahan_undone", "tenths")
)
def test_planted_losses_are_repaired(name: str) -> None:
    fun, args = next((f, args) for f, args, *_ in PLANTED if f.__name__ == name)
    better = stabilise(fun)(*args)
    assert repr(better)
    before, after = better.before.worst, better.after.worst
    assert before is not None
    assert after is not None
    if name in BEYOND:
        assert not better.repairs
        assert better.function is fun
        assert "no rule helps" in str(better)
        return
    assert before.lost >= 2
    assert after.lost <= 1.5, str(better)
    assert before.lost - after.lost >= 2, str(better)
    # A value in 16 bits has its last rounding.
    unit = 2.0**-11 if after.dtype in ("float16", "bfloat16") else 2e-6
    assert better.after.error <= unit, str(better)
    assert better.repairs[0].rule in str(better)
    assert all(repair.lost - repair.left >= 0.5 for repair in better.repairs)
    leaves = [np.asarray(x, np.float64) for x in verax.tree.leaves(better.result)]
    compiled = verax.tree.leaves(verax.jit(better.function)(*args))
    for x, y in zip(leaves, compiled, strict=True):
        np.testing.assert_allclose(x, np.asarray(y, np.float64), rtol=1e-2)


def test_most_planted_losses_are_within_reach() -> None:
    assert len(PLANTED) - len(BEYOND) >= 15


def unchanged(fun: Callable[..., Any], *args: Any) -> None:
    better = stabilise(fun)(*args)
    assert not better.repairs, str(better)
    assert better.function is fun
    assert "nothing to do" in str(better)


@pytest.mark.parametrize("name", UNARY.split())
def test_what_keeps_its_digits_is_left_alone(name: str) -> None:
    given = P + 1 if name == "arccosh" else P[0]
    unchanged(getattr(vnp, name), given)


@pytest.mark.parametrize("name", ACTIVATIONS.split())
def test_activations_are_left_alone(name: str) -> None:
    function = getattr(nn, name)
    unchanged(function, X)

    def total(x: Any) -> Any:
        return function(x).sum()

    unchanged(verax.grad(total), X)


@pytest.mark.parametrize("name", OTHERS)
def test_other_functions_are_left_alone(name: str) -> None:
    function, args = OTHERS[name]
    unchanged(function, *args)


def test_a_compensated_sum_is_left_alone() -> None:
    unchanged(kahan, TENTHS[:500])
    loop = [rule for rule in stable(measured=True) if rule.name == "sum_in_a_loop"]
    assert not trace(kahan, loop)(TENTHS[:500]).steps


SPREAD = (1000 + np.random.default_rng(0).standard_normal(50)).astype(np.float32)
LARGE = np.array([90, 80, 70], np.float32)
GRADIENTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "logsumexp": (lambda x: vnp.log(vnp.sum(vnp.exp(x))), (LARGE,)),
    "log1mexp": (lambda x: vnp.log(1 - vnp.exp(-x)), (3e-7,)),
    "hypot": (lambda x, y: vnp.sqrt(x**2 + y**2), (3e30, 4e30)),
    "norm": (lambda x: vnp.sqrt(vnp.sum(x**2)), (LARGE * 1e30,)),
    "roots": (lambda x: vnp.sqrt(x + 1) - vnp.sqrt(x), (1e6,)),
    "quadratic": (lambda b: -b + vnp.sqrt(b**2 - 0.4), (1e3 / 3,)),
    "variance": (lambda x: vnp.mean(x**2) - vnp.mean(x) ** 2, (SPREAD,)),
    "log_sigmoid": (lambda x: vnp.log(nn.sigmoid(x)), (-110.0,)),
    "log_softmax": (lambda x: vnp.log(nn.softmax(x))[1], (LARGE - LARGE[0] * 5,)),
    "softplus": (lambda x: vnp.log(1 + vnp.exp(x)), (90.0,)),
    "log_cosh": (lambda x: vnp.log(vnp.cosh(x)), (100.0,)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_repaired(name: str) -> None:
    fun, args = GRADIENTS[name]
    slope = verax.grad(fun)
    better = stabilise(slope)(*args)
    if better.before.alarms:
        assert better.repairs, str(better)
        assert better.after.error < 1e-6, str(better)
    # The gradient of what has been repaired is the same number.
    first = stabilise(fun)(*args).function
    report = precision(verax.grad(first))(*args)
    np.testing.assert_allclose(report.result, better.result, rtol=1e-5)
    compiled = verax.jit(better.function)(*args)
    np.testing.assert_allclose(compiled, better.result, rtol=1e-5)


def test_tangents_are_repaired() -> None:
    def along(x: Any) -> Any:
        return verax.jvp(lambda x: vnp.sqrt(x + 1) - vnp.sqrt(x), (x,), (x * 0 + 1,))[1]

    better = stabilise(along)(1e6)
    assert better.rules == ("step_of_sqrt_forward_x",), str(better)
    assert better.after.error < 1e-6


def test_uses_are_found_everywhere() -> None:
    @verax.custom_jvp
    def ruled(x: Any) -> Any:
        return 1 - vnp.cos(x)

    ruled.defjvp(lambda xs, ts: (ruled(*xs), vnp.sin(xs[0]) * ts[0]))

    def in_scan(x: Any) -> Any:
        return lax.scan(lambda c, x: (c, vnp.exp(x) - 1), x, vnp.stack([x, x]))[1]

    def in_branch(x: Any) -> Any:
        return lax.cond(x > 0, lambda x: vnp.log(1 + x), lambda x: x, x)

    def in_while(x: Any) -> Any:
        def step(c: Any) -> Any:
            return c[0] + 1, (vnp.exp(c[1]) - 1) * 0.9

        return lax.while_loop(lambda c: c[0] < 3, step, (0, x))[1]

    cases: dict[str, Callable[[Any], Any]] = {
        "exp_minus_one": in_scan,
        "log_of_one_plus": in_branch,
        "one_minus_cos": ruled,
        "one_minus_exp": verax.jit(lambda x: 1 - vnp.exp(x)),
        "sqrt_of_one_plus_minus_one": verax.checkpoint(lambda x: vnp.sqrt(1 + x) - 1),
    }
    for rule, fun in cases.items():
        better = stabilise(fun)(3e-5)
        assert better.rules == (rule,), str(better)
        assert better.after.error < 1e-6
    assert stabilise(in_while)(3e-5).rules == ("exp_minus_one",)


def test_several_lines_are_repaired_by_themselves() -> None:
    def f(x: Any) -> Any:
        small = vnp.exp(x) - 1
        tiny = 1 - vnp.cos(x)
        return small, tiny / x, vnp.log(1 + x * 1e6)

    better = stabilise(f)(1e-4)
    assert set(better.rules) == {"exp_minus_one", "one_minus_cos"}
    lines = [repair.line for repair in better.repairs]
    assert len(set(lines)) == 2
    # The last line has its digits, so that it stays as it is.
    names = str(verax.make_jaxpr(better.function)(1e-4))
    assert "log1p" not in names
    assert "expm1" in names


@pytest.mark.slow
def test_the_function_composes() -> None:
    def f(x: Any) -> Any:
        return vnp.log(1 - vnp.exp(-x))

    better = stabilise(f)(3e-7)
    function = better.function
    xs = np.array([1e-6, 3e-7, 0.5, 30.0], np.float32)
    wide = xs.astype(np.float64)
    truth = np.where(wide < 1, np.log(-np.expm1(-wide)), np.log1p(-np.exp(-wide)))
    np.testing.assert_allclose(function(xs), truth, rtol=1e-5)
    np.testing.assert_allclose(verax.vmap(function)(xs), truth, rtol=1e-5)
    slopes = verax.jit(verax.vmap(verax.grad(function)))(xs)
    np.testing.assert_allclose(slopes, 1 / np.expm1(wide), rtol=1e-5)
    with verax.checking_leaks():
        assert verax.jit(function)(xs).shape == (4,)
    assert function.__name__ == "f"


def test_static_arguments_of_jitted_functions() -> None:
    power = verax.jit(lambda x, n: (vnp.exp(x) - 1) ** n, static_argnames="n")
    better = stabilise(power)(1e-4, n=2)
    assert better.rules == ("exp_minus_one",)
    np.testing.assert_allclose(better.function(1e-4, n=3), np.expm1(1e-4) ** 3, 1e-5)


def test_a_wrong_rule_is_not_used() -> None:
    @rewrite(lambda x: vnp.exp(x) - 1)
    def half(x: Any) -> Any:
        return vnp.expm1(x) / 2

    @rewrite(lambda x: vnp.exp(x) - 1)
    def right(x: Any) -> Any:
        return vnp.expm1(x)

    def f(x: Any) -> Any:
        return vnp.exp(x) - 1

    assert not stabilise(f, half)(1e-4).repairs
    assert stabilise(f, [half, right])(1e-4).rules == ("right",)


def test_minimum_and_shadow() -> None:
    def f(x: Any) -> Any:
        return vnp.log(1 + x)

    assert not stabilise(f, minimum=6.0)(3e-4).repairs
    assert stabilise(f, minimum=1.0)(3e-4).repairs
    wide = stabilise(f, shadow="mpmath")(3e-4)
    assert wide.after.shadow.startswith("mpmath")
    assert wide.repairs
    with verax.enable_x64():
        double = stabilise(f)(np.float64(1e-12))
        assert double.rules == ("log_of_one_plus",)
        assert double.after.error < 1e-15


def test_what_needs_values_says_so() -> None:
    def f(x: Any) -> Any:
        return vnp.log(1 + x)

    with pytest.raises(
        verax.errors.ConcretizationTypeError, match=r"stabilise\(grad\(f\)\)"
    ):
        verax.jit(lambda x: stabilise(f)(x).result)(1.0)
    with pytest.raises(TypeError, match="takes a function, not 3"):
        stabilise(3)  # type: ignore[arg-type]  # the subject
    with pytest.raises(ValueError, match="minimum is how many digits"):
        stabilise(f, minimum=0)
    with pytest.raises(TypeError, match="call a function that returns rules"):
        stabilise(f, stable)  # type: ignore[arg-type]  # the subject
    with pytest.raises(ValueError, match="shadow"):
        stabilise(f, shadow="float16")(1.0)  # type: ignore[arg-type]  # the subject
    with pytest.raises(TypeError, match="mutable references"):
        stabilise(lambda r: r[...])(verax.new_ref(1.0))


def sums(rule: str) -> Callable[..., Any]:
    return apply([r for r in stable(measured=True) if r.name == rule])


def added(start: Any, xs: Any) -> tuple[Any, Any]:
    def step(c: Any, x: Any) -> Any:
        total, count = c
        return (total - x, count + 1), total * 2

    (total, _), ys = lax.scan(step, (start, 0), xs)
    return total, ys


def test_sums_in_loops() -> None:
    better = sums("sum_in_a_loop")(added)
    total, ys = better(np.float32(0), -TENTHS)
    assert abs(float(total) - len(TENTHS) * float(TENTHS[0])) < 2.5e-5
    assert ys.shape == TENTHS.shape
    steps = np.arange(len(TENTHS)) * float(TENTHS[0])
    np.testing.assert_allclose(ys, 2 * steps, rtol=1e-6)
    infinite = np.array([1, np.inf, 2], np.float32)
    assert better(np.float32(0), -infinite)[0] == np.inf
    slope = verax.grad(lambda xs: better(np.float32(0), xs)[0])(TENTHS[:5])
    np.testing.assert_array_equal(slope, -np.ones(5))
    mapped = verax.vmap(partial(better, np.float32(0)))(np.stack([TENTHS, -TENTHS]))
    assert mapped[0].shape == (2,)

    def clock(dt: Any) -> Any:
        def step(c: Any) -> Any:
            return c[0] + 1, c[1] + dt

        return lax.while_loop(lambda c: c[0] < 10000, step, (0, dt * 0))[1]

    assert float(sums("sum_in_a_while")(clock)(np.float32(0.1))) == 1000.0
    assert float(clock(np.float32(0.1))) < 999.95


def test_reports_can_be_read() -> None:
    better: Stabilised = stabilise(PLANTED[1][0])(*PLANTED[1][1])
    text = str(better)
    assert "variance" in text
    assert "digits lost before" in text
    assert repr(better) == "<Stabilised: variance with variance>"
    assert "as it was" in repr(stabilise(vnp.sin)(1.0))


@pytest.mark.slow
def test_remedies_name_rules_that_there_are() -> None:
    known = {rule.name for rule in stable(measured=True)}
    named = 0
    for fun, args, *_ in PLANTED:
        if fun.__name__ in BEYOND:
            continue
        worst = precision(fun)(*args).worst
        assert worst is not None
        assert worst.remedy is not None, fun.__name__
        assert not worst.remedy.rule or worst.remedy.rule in known
        named += bool(worst.remedy.rule)
    assert named >= 15
