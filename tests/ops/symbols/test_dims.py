"""Symbolic dimensions: how they are written, computed, compared and assumed."""

from math import inf
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.errors import InconclusiveDimensionOperation
from verax.export import (
    SymbolicScope,
    is_symbolic_dim,
    symbolic_args_specs,
    symbolic_dim_bounds,
    symbolic_shape,
)


def dims(text: str, *constraints: str) -> tuple[Any, ...]:
    return symbolic_shape(text, constraints=constraints)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2*b*a", "2*a*b"),
        ("-2 * b * a^2 + b^2", "- 2*a^2*b + b^2"),
        ("a - b", "- b + a"),
        ("a + -1", "a - 1"),
        ("3 * floordiv(a + 2, b + 2) * 2", "6*floordiv(a + 2, b + 2)"),
        ("3 * a * mod(a + 2, b + 2)", "3*a*mod(a + 2, b + 2)"),
        ("max(b, a) + min(3, a)", "max(a, b) + min(a, 3)"),
        ("floordiv(4*a + 2, 2)", "2*a + 1"),
        ("a*0 + 5", "5"),
        ("(a + 1) * (a - 1)", "a^2 - 1"),
    ],
)
def test_text_is_canonical_and_reads_back(text: str, shown: str) -> None:
    scope = SymbolicScope()
    (dim,) = symbolic_shape(text, scope=scope)
    assert str(dim) == shown
    assert symbolic_shape(shown, scope=scope) == (dim,)


def test_division_rounds_down() -> None:
    a, b = dims("a, b")
    assert divmod(3 * a + 5, 3) == (a + 1, 2)
    assert divmod(3 * a - 2, 3) == (a - 1, 1)
    assert (a * a - b * b) // (a + b) == a - b
    assert str((2 * a * b + b * b) // (a + b)) == "floordiv(2*a*b + b^2, b + a)"
    assert (a % 4) // 4 == 0
    with pytest.raises(ZeroDivisionError):
        a // 0


def test_results_without_variables_are_ints() -> None:
    a, _ = dims("a, b")
    assert type(a + 2 - a) is int
    assert type(a * 2 // a) is int
    assert is_symbolic_dim(a)
    assert not is_symbolic_dim(a - a)


def test_comparisons_that_hold_for_all_sizes() -> None:
    a, b = dims("a, b")
    assert a >= 1
    assert 4 * a + b + 3 >= 8
    assert a.maximum(b) >= a.minimum(b)
    assert (b - a.minimum(b)) // 2 >= 0
    assert a.maximum(b) - a == (b - a).maximum(0)
    assert not a < 1
    assert a != b
    assert (a == a + 1) is False


def test_undecided_comparison_names_the_constraint() -> None:
    (a,) = dims("a", "a <= 100")
    with pytest.raises(InconclusiveDimensionOperation) as info:
        _ = a >= 8
    message = str(info.value)
    assert "'a' >= '8' is inconclusive" in message
    assert "a <= 100" in message
    assert "constraints=['a >= 8']" in message
    (a,) = dims("a", "a >= 8")
    assert a >= 8


def test_constraints_decide_and_rewrite() -> None:
    b, c, d = dims("b, c, d", "mod(b, 4) == 0", "c == 2*d")
    assert b == 4 * (b // 4)
    assert b * d == 4 * d * (b // 4)
    assert b >= 3 * (b // 4)
    assert c - d == d
    assert symbolic_dim_bounds(dims("a", "2*a >= 5", "3*a <= 10")[0]) == (3, 3)
    assert symbolic_dim_bounds(dims("2*b - a", "2*a + 3*b <= 10")[0]) == (-1, 3)


def test_contradictions_are_found() -> None:
    with pytest.raises(ValueError, match="Unsatisfiable explicit constraint: a <= 0"):
        dims("a", "a <= 0")
    with pytest.raises(ValueError, match="Unsatisfiable constraint: d <= 2"):
        dims("a", "a >= c + 1", "c >= 4", "a <= d + 2", "d <= 2")


@pytest.mark.parametrize(
    "text", ["2.5", "a a", "a ^ a", "a;", "_", "...", ")(", "2a", "mod(a)", "..., 3"]
)
def test_bad_text_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="syntax error in symbolic shape"):
        symbolic_shape(text)


def test_placeholders_take_known_sizes() -> None:
    assert symbolic_shape("2, _", like=(2, 3)) == (2, 3)
    assert symbolic_shape(None, like=(2, 3)) == (2, 3)
    b, three = symbolic_shape("(b, ...)", like=(None, 3))
    assert (str(b), three) == ("b", 3)
    with pytest.raises(ValueError, match="different size"):
        symbolic_shape("3", like=(4,))


def test_scopes_do_not_mix() -> None:
    (a,), (other,) = dims("a", "a >= 5"), dims("a")
    assert a != other
    with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes"):
        a + other
    with pytest.raises(ValueError, match="Cannot use both"):
        symbolic_shape("a", constraints=["a >= 2"], scope=a.scope)


def test_dims_are_not_indices() -> None:
    (b,) = dims("b")
    with pytest.raises(InconclusiveDimensionOperation, match="requires a constant"):
        range(b)
    with pytest.raises(ValueError, match="negative powers"):
        b**-1


def test_specs_from_arguments() -> None:
    x = np.ones((2, 3), np.float32)
    specs = symbolic_args_specs(({"a": x}, [x, 1.0]), ("b, _", ["...", None]))
    assert specs[0]["a"].shape[1] == 3
    assert specs[1][0].shape == (2, 3)
    assert specs[1][1].shape == ()
    with pytest.raises(ValueError, match="pytree structure error"):
        symbolic_args_specs((x,), (["b", "b"],))


def shapes_of(function: Any, *args: Any) -> Any:
    return verax.tree.map(lambda x: x.shape, verax.eval_shape(function, *args))


def test_programs_trace_on_symbols() -> None:
    b, c = dims("b, c")
    x = verax.ShapeDtypeStruct((b, c), np.float32)
    w = verax.ShapeDtypeStruct((c, 5), np.float32)
    assert shapes_of(lambda x, w: vnp.tanh(x @ w).sum(0), x, w) == (5,)
    assert shapes_of(lambda x: vnp.concatenate([x, x[:1]]), x) == (b + 1, c)
    assert shapes_of(lambda x: x.reshape(-1), x) == (b * c,)
    assert shapes_of(lambda x: x[::2, ::-1], x) == ((b + 1) // 2, c)
    assert shapes_of(lambda x: vnp.broadcast_to(x, (3, *x.shape)), x) == (3, b, c)
    assert shapes_of(lambda x: x[vnp.array([0, 1])], x) == (2, c)

    def mean(x: Any) -> Any:
        return (x * x).mean()

    assert shapes_of(verax.grad(mean), x) == (b, c)
    assert shapes_of(verax.vmap(mean), x) == (b,)
    assert shapes_of(lambda x: vnp.arange(2 * x.shape[0]), x) == (2 * b,)

    def sums(x: Any) -> Any:
        return verax.lax.scan(lambda total, y: (total + y, y), x[0], x)

    assert shapes_of(sums, x) == ((c,), (b, c))


def test_a_dimension_is_a_value_of_the_program() -> None:
    (b,) = dims("b")
    text = str(verax.make_jaxpr(lambda x: x.sum() / x.shape[0])(spec(b)))
    assert "dim_as_value[dim=b" in text
    assert "f32[b]" in text
    with pytest.raises(InconclusiveDimensionOperation, match="requires a constant"):
        vnp.zeros(3) * b
    with pytest.raises(TypeError, match="has no value until"):
        vnp.asarray(b)


def spec(*shape: Any) -> Any:
    return verax.ShapeDtypeStruct(shape, np.float32)


def test_bounds_of_unbounded_dimensions() -> None:
    a, b = dims("a, b")
    assert symbolic_dim_bounds(a - b) == (-inf, inf)
    assert symbolic_dim_bounds(3) == (3, 3)
