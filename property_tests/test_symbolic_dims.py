"""Symbolic dimensions: what is decided of them holds for all small sizes.

Programs on them print as text that reads back.
"""

import itertools
import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

import verax
import verax.numpy as vnp
from verax import lax
from verax.export import symbolic_dim_bounds, symbolic_shape
from verax.ir.avals import larger_size, smaller_size
from verax.ir.forms.parser import parse_closed
from verax.ir.jaxpr import ClosedJaxpr
from verax.ir.text.printer import print_jaxpr
from verax.ir.text.tokens import ParseError
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
        actual = [
            value(x, dict(zip(NAMES, dims, strict=True))) for x in (first, second)
        ]
    except (ZeroDivisionError, ValueError):
        return
    bounds = [symbolic_dim_bounds(x) for x in actual]
    for env in sizes:
        named = dict(zip(NAMES, env, strict=True))
        try:
            due = [value(x, named) for x in (first, second)]
        except ZeroDivisionError:
            continue
        assert [evaluate(x, named) for x in actual] == due
        for number, (low, high) in zip(due, bounds, strict=True):
            assert low <= number <= high
        if actual[0] == actual[1]:
            assert due[0] == due[1]


A, B = symbolic_shape("a, b")


def read_back(text: str, consts: Any = ()) -> ClosedJaxpr:
    """The program that prints as `text`, of which the sizes are those above."""
    scope = A.scope
    return parse_closed(
        text, consts=consts, sizes=lambda size: symbolic_shape(size, scope=scope)[0]
    )


@given(st.lists(EXPRESSIONS, min_size=1, max_size=3))
def test_printed_sizes_read_back(expressions: list[Any]) -> None:
    try:
        shape = [value(x, {"a": A, "b": B}) for x in expressions]
    except (ZeroDivisionError, ValueError):
        return
    shape = [larger_size(size, 1) for size in shape]
    made = verax.make_jaxpr(lambda x: vnp.broadcast_to(x, shape) + shape[0])(1.0)
    for width in (20, 88):
        text = print_jaxpr(made.jaxpr, width=width)
        again = read_back(text, made.consts)
        assert again.jaxpr == made.jaxpr
        assert print_jaxpr(again.jaxpr, width=width) == text


def branches(x: Any) -> Any:
    return lax.cond(x.sum() > 0, lambda x: x[: A // 2], lambda x: x[A - A // 2 :], x)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "mean": lambda x: x.mean(),
    "matmul": lambda x: x @ x.T,
    "einsum": lambda x: vnp.einsum("ij,ik->jk", x, x),
    "reshape": lambda x: x.reshape(-1)[: A * B - 1],
    "concatenate": lambda x: vnp.concatenate([x, x[:, ::2], x], 1),
    "pad": lambda x: vnp.pad(x, ((1, A), (B, 0))),
    "iota": lambda x: vnp.arange(A)[:, None] * x + B,
    "take": lambda x: x[vnp.arange(A) % 2, B // 2],
    "write": lambda x: x.at[A // 2 :].add(1.0),
    "dynamic": lambda x: lax.dynamic_slice(x, (A - 1, 0), (1, B)),
    "sort": lambda x: vnp.sort(x, 0)[::-1].argmax(1),
    "cumsum": lambda x: x.cumsum(0),
    "window": lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 1), (1, 1), "SAME"),
    "convolve": lambda x: vnp.convolve(x[0], x[0]),
    "scan": lambda x: lax.scan(lambda c, row: (c + row, c), x[0], x),
    "while": lambda x: lax.while_loop(
        lambda c: c[1] < A, lambda c: (-c[0], c[1] + 1), (x, 0)
    ),
    "cond": branches,
    "jit": lambda x: verax.jit(lambda y: (y + 1).T)(x),
    "checkpoint": verax.checkpoint(lambda x: vnp.sin(x).sum(1)),
    "softmax": lambda x: verax.nn.softmax(x),
    "random": lambda x: x + verax.random.normal(verax.random.key(0), (A, B)),
}


def squared(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The sum of squares of all results, which has a gradient."""
    leaves = verax.tree.leaves
    return lambda x: sum([(y.astype("float32") ** 2).sum() for y in leaves(f(x))])


@pytest.mark.parametrize("name", PROGRAMS)
def test_printed_symbolic_programs_read_back(name: str) -> None:
    f = PROGRAMS[name]
    x = verax.ShapeDtypeStruct((A, B), "float32")
    stack = verax.ShapeDtypeStruct((2 * A + 1, A, B), "float32")
    made = [verax.make_jaxpr(f)(x), verax.make_jaxpr(verax.vmap(f))(stack)]
    if name != "while":
        made.append(verax.make_jaxpr(verax.grad(squared(f)))(x))
    for closed in made:
        text = str(closed)
        again = read_back(text, closed.consts)
        assert again == closed
        assert str(again) == text


def test_symbolic_programs_need_a_reader_of_sizes() -> None:
    x: Any = verax.ShapeDtypeStruct((A, 2 * B), "float32")
    text = str(verax.make_jaxpr(lambda x: vnp.sin(x))(x))
    with pytest.raises(ParseError, match="the size a is symbolic: pass sizes="):
        parse_closed(text)
    with pytest.raises(ParseError, match="line 1, column 12: expected a type"):
        read_back("{ lambda ; a:f32[a+]. let in (a,) }")
    with pytest.raises(ParseError, match="symbolic size"):
        read_back(
            "{ lambda ; a:f32[b]. let b:f32[b] = reshape[new_sizes=(b*,)] a in (b,) }"
        )
