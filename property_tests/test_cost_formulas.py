"""Laws of formulas of costs: numbers for the variables give the costs of that size."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, strategies as st

import verax
import verax.numpy as vnp
from verax import lax, nn
from verax.debug import CostFormulas, CostReport, Device, Formula, costs
from verax.export import symbolic_shape

CHIP = Device("chip", flops=1e12, bandwidth=1e11, memory=1e9, half=4e12)
NAMES = ("b", "t", "d")
SIZES = st.fixed_dictionaries({name: st.integers(2, 9) for name in NAMES})
type Program = tuple[Callable[..., Any], tuple[str, ...]]


def layer(w: Any, x: Any) -> Any:
    h = vnp.tanh(x @ w) + x
    return vnp.sum(nn.relu(h) ** 2)


def attention(x: Any, w: Any) -> Any:
    q = x @ w
    scores = nn.softmax(vnp.einsum("btd,bsd->bts", q, x) / 3.0, axis=-1)
    return vnp.einsum("bts,bsd->btd", scores, x)


def recurrent(w: Any, h: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = vnp.tanh(h @ w + x)
        return h, vnp.sum(h)

    return lax.scan(step, h, xs)[1].mean()


def nested(x: Any) -> Any:
    def outer(i: Any, x: Any) -> Any:
        return lax.fori_loop(0, x.shape[1], lambda j, x: x * 0.5 + 1, x)

    return lax.fori_loop(0, x.shape[0], outer, x)


def convolved(x: Any, k: Any) -> Any:
    y = lax.conv_general_dilated(
        x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return nn.relu(y).sum()


def reduced(x: Any) -> Any:
    y = (x - x.mean(0)) / (x.std(0) + 1)
    return vnp.concatenate([y, x[:, ::-1]], 1).max(1)


def chosen(x: Any) -> Any:
    return lax.cond(x.sum() > 0, lambda x: x @ x.T @ x, lambda x: x * 2, x)


def taken(x: Any, i: Any) -> Any:
    return lax.dynamic_slice(x, (i, 0), (1, x.shape[1])) * 2 + x[:1]


PROGRAMS: Mapping[str, Program] = {
    "layer": (layer, ("d, d", "b, t, d")),
    "gradient": (verax.grad(layer), ("d, d", "b, t, d")),
    "attention": (attention, ("b, t, d", "d, d")),
    "recurrent": (recurrent, ("d, d", "b, d", "t, b, d")),
    "recurrent_gradient": (verax.grad(recurrent), ("d, d", "b, d", "t, b, d")),
    "nested": (nested, ("b, t",)),
    "convolved": (convolved, ("b, t, t, 3", "3, 3, 3, d")),
    "convolved_channels": (convolved, ("b, 8, 8, d", "3, 3, d, 4")),
    "reduced": (reduced, ("b, d",)),
    "chosen": (chosen, ("b, d",)),
    "taken": (taken, ("b, d", "")),
    "mapped": (verax.vmap(layer, (None, 0)), ("d, d", "b, t, d")),
    "cumulated": (lambda x: vnp.cumsum(x, 1) * 2, ("b, t",)),
    "jitted": (verax.jit(lambda x: verax.jit(nn.gelu)(x) * 2), ("b*t, 2*d + 1",)),
    "factored": (lambda x: vnp.linalg.cholesky(x) * 2, ("b, d, d",)),
}


def structs(shapes: tuple[str, ...], sizes: Mapping[str, int] | None) -> list[Any]:
    """Types of these shapes: of symbols, or with sizes."""
    scope = verax.export.SymbolicScope()
    made = []
    for text in shapes:
        shape: tuple[Any, ...] = symbolic_shape(text, scope=scope)
        if sizes is not None:
            shape = tuple(
                [n if isinstance(n, int) else n.evaluated(sizes) for n in shape]
            )
        dtype = vnp.float32 if text else vnp.int32
        made.append(verax.ShapeDtypeStruct(shape, dtype))
    return made


def formulas_of(f: Callable[..., Any], shapes: tuple[str, ...]) -> CostFormulas:
    """The formulas of a program with symbolic shapes."""
    found: Any = costs(f, device=CHIP)(*structs(shapes, None))
    assert isinstance(found, CostFormulas)
    return found


def numbers(report: CostReport) -> dict[object, tuple[float, ...]]:
    """The costs by line."""
    return {
        (e.file, e.line, e.kind): (e.flops, e.bytes, e.time, e.estimated)
        for e in report.lines
        if e.flops or e.bytes
    }


@pytest.mark.parametrize("name", PROGRAMS)
@given(sizes=SIZES)
def test_numbers_for_the_variables_give_the_costs(
    name: str, sizes: dict[str, int]
) -> None:
    f, shapes = PROGRAMS[name]
    formulas = formulas_of(f, shapes)
    own = {n: sizes[n] for n in formulas.variables()}
    found = formulas.at(**own)
    wanted = costs(f, device=CHIP)(*structs(shapes, sizes)).at()
    assert numbers(found).keys() == numbers(wanted).keys()
    for key, expected in numbers(wanted).items():
        assert numbers(found)[key] == pytest.approx(expected, rel=1e-12)
    assert found.name == wanted.name
    assert formulas.flops.evaluated(sizes) == pytest.approx(wanted.flops)


VARIABLES = symbolic_shape("b, t, d")
EXPRESSIONS = st.recursive(
    st.sampled_from(VARIABLES) | st.integers(-3, 3) | st.sampled_from([0.5, 1.5]),
    lambda inner: st.tuples(st.sampled_from("+-*"), inner, inner),
    max_leaves=8,
)


def built(tree: Any, leaf: Callable[[Any], Any]) -> Any:
    """The expression of a tree, whose leaves become these."""
    if not isinstance(tree, tuple):
        return leaf(tree)
    sign, left, right = tree
    x, y = built(left, leaf), built(right, leaf)
    return x + y if sign == "+" else x - y if sign == "-" else x * y


@given(EXPRESSIONS, SIZES)
def test_formulas_are_polynomials(tree: Any, sizes: dict[str, int]) -> None:
    formula: Any = built(tree, Formula.of)
    number = built(
        tree, lambda x: x if isinstance(x, int | float) else x.evaluated(sizes)
    )
    assert formula.evaluated(sizes) == pytest.approx(number)
    own = {name: sizes[name] for name in formula.variables()}
    assert formula.at(**own) == pytest.approx(number)
    again = eval(str(formula).replace("^", "**"), {}, dict(sizes))
    assert again == pytest.approx(number, rel=1e-3)


@given(EXPRESSIONS, EXPRESSIONS)
def test_equal_formulas_are_written_alike(left: Any, right: Any) -> None:
    x: Any = built(left, Formula.of)
    y: Any = built(right, Formula.of)
    assert x + y == y + x
    assert x * y == y * x
    assert x * (x + y) == x * x + x * y
    assert str(x * y) == str(y * x)
    assert hash(x + y) == hash(y + x)
    assert x - x == 0


def test_the_device_decides_times_alone() -> None:
    slow = evolve(CHIP, flops=1e9)
    one, two = (
        costs(layer, device=chip)(*structs(("d, d", "b, t, d"), None))
        for chip in (CHIP, slow)
    )
    assert one.flops == two.flops
    assert str(one).splitlines()[1] == str(two).splitlines()[1]
