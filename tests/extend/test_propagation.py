"""Transformations of one's own: the walk, the loops, the branches, the errors."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import Array, lax
from verax.extend import (
    CONTROL,
    INSIDE,
    MissingRule,
    Parts,
    Propagation,
    Rule,
    propagate,
)
from verax.ir.jaxpr import Primitive
from verax.transforms.engine.engine import STANDARD
from verax.transforms.engine.templates import equation_jvp


def full(parts: Parts, width: int) -> Parts:
    """A value that has no bounds is its own bounds."""
    return (parts[0], parts[-1])


def increasing(primitive: Any) -> Rule[Any]:
    return lambda walk, p, xs: [tuple([primitive.call(p, x) for x in xs[0]])]


def product(walk: Propagation, p: Any, values: Any) -> list[Parts]:
    x, y = [full(v, 2) for v in values]
    ends = [lax.mul(a, b) for a in x for b in y]
    low, high = ends[0], ends[0]
    for end in ends[1:]:
        low, high = lax.min(low, end), lax.max(high, end)
    return [(low, high)]


def added(walk: Propagation, p: Any, values: Any) -> list[Parts]:
    x, y = [full(v, 2) for v in values]
    return [(lax.add(x[0], y[0]), lax.add(x[1], y[1]))]


def negated(walk: Propagation, p: Any, values: Any) -> list[Parts]:
    ((low, high),) = values
    return [(-high, -low)]


BOUNDS = Propagation("bounds", CONTROL, fill=full) | {
    lax.add_p: added,
    lax.mul_p: product,
    lax.exp_p: increasing(lax.exp_p),
    lax.tanh_p: increasing(lax.tanh_p),
    lax.neg_p: negated,
    lax.convert_element_type_p: increasing(lax.convert_element_type_p),
}


def interval(f: Any, *ends: Any) -> tuple[Any, Any]:
    lows, highs = zip(*ends, strict=True)
    low, high = propagate(BOUNDS, f, lows, highs)
    return low, high


def test_bounds_hold_what_they_should() -> None:
    def f(x: Any, y: Any) -> Any:
        return vnp.exp(-x) * y + 3.0

    low, high = interval(f, (0.0, 1.0), (1.0, 2.0))
    np.testing.assert_allclose([low, high], [3 + np.exp(-1), 5], rtol=1e-6)


def test_bounds_of_a_loop() -> None:
    def f(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, c: c * x + 1.0, 1.0)

    low, high = verax.jit(lambda a, b: interval(f, (a, b)))(1.0, 2.0)
    assert (float(low), float(high)) == (4.0, 15.0)


def test_bounds_of_a_scan_with_rows() -> None:
    def f(x: Any, rows: Any) -> Any:
        return lax.scan(lambda c, r: (c + r * x, c), 0.0, rows)

    rows = vnp.arange(3.0)
    (low, before), (high, after) = propagate(BOUNDS, f, (1.0, rows), (2.0, None))
    assert (float(low), float(high)) == (3.0, 6.0)
    assert before.tolist() == [0.0, 0.0, 1.0]
    assert after.tolist() == [0.0, 0.0, 2.0]


def test_bounds_of_a_while_with_a_plain_counter() -> None:
    def f(x: Any) -> Any:
        def step(carry: Any) -> Any:
            return carry[0] + 1, carry[1] * x

        return lax.while_loop(lambda carry: carry[0] < 4, step, (0, 1.0))

    (count, low), (none, high) = propagate(BOUNDS, f, (1.0,), (2.0,))
    assert (int(count), float(low), float(high), none) == (4, 1.0, 16.0, None)


def test_branches_agree_on_parts() -> None:
    def f(which: Any, x: Any) -> Any:
        return lax.cond(which, lambda x: x + 1.0, lambda x: 7.0, x)

    for which, ends in ((True, (1.0, 2.0)), (False, (7.0, 7.0))):
        low, high = propagate(BOUNDS, f, (which, 0.0), (None, 1.0))
        assert (float(low), float(high)) == ends


def test_a_predicate_must_be_plain() -> None:
    def f(x: Any) -> Any:
        return lax.while_loop(lambda c: c < 3.0, lambda c: c + 1.0, x)

    table = BOUNDS | {lax.lt_p: lambda walk, p, xs: [(xs[0][0], xs[0][-1])]}
    with pytest.raises(MissingRule, match=r"plain value.*met at .*test_propagation"):
        propagate(table, f, (0.0,), (1.0,))


def test_a_missing_rule_says_what_to_write() -> None:
    with pytest.raises(MissingRule) as caught:
        interval(lambda x: vnp.sin(x), (0.0, 1.0))
    text = str(caught.value)
    assert "the primitive sin has no rule in the table 'bounds'" in text
    assert "bounds | {sin_p: rule}" in text
    assert "test_propagation.py" in text


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (
            lambda walk, p, xs: xs[0],
            "rule of bounds for sin returned a Tracer; it must",
        ),
        (lambda walk, p, xs: [xs[0], xs[0]], "for 2 results, but there are 1; met at"),
    ],
)
def test_what_a_rule_returns_is_checked(rule: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        propagate(BOUNDS | {lax.sin_p: rule}, vnp.sin, (0.0,), (1.0,))


def test_what_is_untouched_needs_no_rule() -> None:
    low, high = interval(lambda x: x + vnp.sin(2.0), (0.0, 1.0))
    np.testing.assert_allclose([low, high], np.sin(2.0) + np.array([0, 1]), rtol=1e-6)


def test_effects_stay(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        verax.debug.print("here")
        return x + 1.0

    interval(f, (0.0, 1.0))
    verax.effects_barrier()
    assert capsys.readouterr().out == "here\n"


def test_functions_with_rules_of_their_own_are_what_they_compute() -> None:
    @verax.custom_jvp
    def f(x: Any) -> Any:
        return vnp.exp(x)

    f.defjvps(lambda t, y, x: t)
    table = BOUNDS | INSIDE
    low, high = propagate(table, f, (0.0,), (1.0,))
    np.testing.assert_allclose([low, high], [1, np.e], rtol=1e-6)


def test_parts_have_the_structure_of_the_arguments() -> None:
    with pytest.raises(TypeError, match="every part must have the structure"):
        propagate(BOUNDS, lambda x: x, ({"a": 1.0},), ([1.0],))


def test_bounds_compose() -> None:
    def width(end: Any) -> Any:
        low, high = interval(lambda x: vnp.tanh(x) * x, (0.5, end))
        return high - low

    ends = vnp.array([1.0, 2.0])
    slopes = verax.jit(verax.vmap(verax.grad(width)))(ends)
    want = verax.vmap(verax.grad(lambda x: vnp.tanh(x) * x))(ends)
    np.testing.assert_allclose(slopes, want, rtol=1e-5)


def forward(primitive: Primitive) -> Rule[Any]:
    """jvp as a table: the rule of any row is its jvp column."""

    def rule(walk: Propagation, p: Any, values: Any) -> list[Parts]:
        active = tuple([len(v) > 1 for v in values])
        avals = tuple([v[0].aval for v in values])
        template, mask = equation_jvp(STANDARD, primitive, p, avals, active)
        live = [v[1] for v in values if len(v) > 1]
        outs: list[Array] = walk_in(template, [*[v[0] for v in values], *live])
        rest = iter(outs[len(mask) :])
        pairs = zip(outs, mask, strict=False)
        return [(y, next(rest)) if flag else (y,) for y, flag in pairs]

    return rule


def walk_in(template: Any, args: Any) -> list[Array]:
    plain = Propagation("copy", {})
    return [parts[0] for parts in plain(template, [(x,) for x in args])]  # type: ignore[misc]  # plain values are there


def test_jvp_is_such_a_table() -> None:
    duals = Propagation("jvp", {}, otherwise=forward)

    def f(x: Any, y: Any) -> Any:
        return lax.scan(lambda c, r: (vnp.sin(c) * r + x, c), x, y)

    x, y = vnp.array(0.3), vnp.arange(3.0)
    primal, tangent = propagate(duals, f, (x, y), (1.0, None))
    want = verax.jvp(lambda x: f(x, y), (x,), (1.0,))
    for actual, due in zip(
        verax.tree.leaves((primal, tangent)), verax.tree.leaves(want), strict=True
    ):
        np.testing.assert_allclose(actual, due, rtol=1e-6)
