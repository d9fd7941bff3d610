"""Symbolic dimensions: what is decided of them holds for all small sizes."""

import itertools
import operator
from typing import Any

from hypothesis import given, strategies as st

from verax.export import symbolic_dim_bounds, symbolic_shape
from verax.ir.avals import larger_size, smaller_size
from verax.ops.symbols.expression import evaluate

NAMES = ("a", "b")
OPERATIONS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "max": larger_size,
    "min": smaller_size,
}
# A constraint, and the same on integers.
CONSTRAINTS: dict[str, Any] = {
    "a >= 3": lambda a, b: a >= 3,
    "a <= 5": lambda a, b: a <= 5,
    "a >= 2*b": lambda a, b: a >= 2 * b,
    "a == b + 1": lambda a, b: a == b + 1,
    "mod(a, 4) == 0": lambda a, b: a % 4 == 0,
    "max(a, b) == b": lambda a, b: max(a, b) == b,
    "floordiv(a, 2) == b": lambda a, b: a // 2 == b,
}
EXPRESSIONS = st.recursive(
    st.sampled_from(NAMES) | st.integers(-4, 9),
    lambda parts: st.tuples(st.sampled_from(sorted(OPERATIONS)), parts, parts),
    max_leaves=6,
)


def value(expression: Any, env: dict[str, Any]) -> Any:
    """An expression, computed on integers or on dimensions."""
    match expression:
        case str():
            return env[expression]
        case int():
            return expression
        case name, x, y:
            return OPERATIONS[name](value(x, env), value(y, env))


@given(EXPRESSIONS, EXPRESSIONS, st.sets(st.sampled_from(sorted(CONSTRAINTS))))
def test_what_is_decided_holds_for_all_sizes(
    first: Any, second: Any, constraints: set[str]
) -> None:
    sizes = [
        env
        for env in itertools.product(range(1, 13), repeat=2)
        if all(CONSTRAINTS[text](*env) for text in constraints)
    ]
    try:
        dims = symbolic_shape(", ".join(NAMES), constraints=sorted(constraints))
    except ValueError:
        assert not sizes, "the constraints hold for some sizes"
        return
    try:
        found = [value(x, dict(zip(NAMES, dims, strict=True))) for x in (first, second)]
    except (ZeroDivisionError, ValueError):
        return
    bounds = [symbolic_dim_bounds(x) for x in found]
    for env in sizes:
        named = dict(zip(NAMES, env, strict=True))
        try:
            due = [value(x, named) for x in (first, second)]
        except ZeroDivisionError:
            continue
        assert [evaluate(x, named) for x in found] == due
        for number, (low, high) in zip(due, bounds, strict=True):
            assert low <= number <= high
        if found[0] == found[1]:
            assert due[0] == due[1]
