"""`verax.debug.costs` of symbolic shapes: formulas by line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.__main__ import main
from verax.debug import CostFormulas, Device, Formula, costs
from verax.export import symbolic_shape

CHIP = Device("chip", flops=1e12, bandwidth=1e11, memory=1e9, half=4e12)
B, T, D = symbolic_shape("b, t, d")


def struct(*shape: Any) -> Any:
    return verax.ShapeDtypeStruct(shape, vnp.float32)


def formulas(f: Callable[..., Any], *args: Any) -> CostFormulas:
    found: Any = costs(f, device=CHIP)(*args)
    assert isinstance(found, CostFormulas)
    return found


def line_in(f: Callable[..., Any], offset: int) -> int:
    return f.__code__.co_firstlineno + offset


def layer(w: Any, x: Any) -> Any:
    h = vnp.tanh(x @ w)
    return vnp.sum(h)


def test_each_line_by_hand() -> None:
    report = formulas(layer, struct(D, D), struct(B, T, D))
    (product,) = report.by_line(line_in(layer, 1))
    assert str(product.flops) == "2*b*d^2*t + b*d*t"
    assert product.bytes == Formula.of(12 * B * T * D + 4 * D * D)
    assert (product.kind, product.code) == ("value", "h = vnp.tanh(x @ w)")
    assert product.function == "layer"
    assert product.variables() == report.variables() == {"b", "t", "d"}
    assert report.flops.at(b=2, t=3, d=4) == 2 * 2 * 3 * 16 + 2 * 2 * 3 * 4
    at = report.at(b=2, t=3, d=4)
    assert product.at(b=2, t=3, d=4) in at.lines
    assert str(at).startswith("layer: 240 flops")
    assert "2*b*d^2*t + b*d*t" in str(report)
    assert "<table" in report._repr_html_()


def test_loops_multiply_by_their_length() -> None:
    def looped(w: Any, x: Any, xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            d = c @ w
            return d, None

        return lax.scan(step, x, xs)[0]

    report = formulas(looped, struct(D, D), struct(B, D), struct(T, 1))
    assert str(report.by_line(line_in(looped, 2))[0].flops) == "2*b*d^2*t"


def test_what_a_formula_cannot_say_is_stated() -> None:
    def depends(x: Any) -> Any:
        return lax.cond(x.sum() > 0, lambda x: x @ x.T @ x, often, x)

    def often(x: Any) -> Any:
        return lax.fori_loop(0, 50, twice, x)

    def twice(i: Any, x: Any) -> Any:
        return vnp.sin(x) * 2

    def until(x: Any) -> Any:
        return lax.while_loop(lambda x: x.sum() < 9, lambda x: x * 2, x)

    for f, note in (
        (depends, "sizes decide which branch is dearest"),
        (until, "a loop whose length is not known counts once"),
    ):
        report = formulas(f, struct(B, D))
        noted = [line for line in report.lines if line.notes]
        assert noted
        assert note in noted[0].notes[0]
        assert not noted[0].estimated
        assert note in str(report)
        assert not all(line.estimated for line in report.at(b=2, d=3).lines)
    steep = formulas(depends, struct(B, D)).flops
    assert steep.at(b=4096, d=4096) > 4 * 4096**3


def test_a_branch_that_is_always_dearest_needs_no_note() -> None:
    def chosen(x: Any) -> Any:
        return lax.cond(x.sum() > 0, lambda x: vnp.sin(x) @ x.T @ x, lambda x: x, x)

    report = formulas(chosen, struct(B, D))
    assert all(line.estimated for line in report.lines)
    assert "4*b^2*d" in str(report.flops)


def test_rules_of_users_that_want_numbers_are_unknown() -> None:
    from verax import extend

    def flops(p: object, ins: Any, outs: Any) -> float:
        return float(outs[0].size)

    own = extend.elementwise(
        "counted_in_numbers",
        np.sin,
        lower=lambda e, p, xs, outs: (e.op("sine", xs, outs[0]),),
        traits=extend.Traits(flops=flops),
    )
    report = formulas(lambda x: own.call(extend.NO_PARAMS, x), struct(B))
    assert report.lines[0].notes == ("an operation does not say what it costs",)


def test_long_formulas_are_cut_in_tables_alone() -> None:
    names = symbolic_shape("p, q, r, s, u, v")

    def long(*xs: Any) -> Any:
        return sum([x.sum() for x in xs])

    report = formulas(long, *[struct(n, 3) for n in names])
    assert "…" in report.title
    assert all(f"3*{n}" in str(report.flops) for n in names)


def test_constraints_rewrite() -> None:
    b, c = symbolic_shape("b, c", constraints=("c == 2*b",))
    report = formulas(lambda x, y: (x + 1, y + 1), struct(b), struct(c))
    assert str(report.flops) == "3*b"


def test_numbers_and_names() -> None:
    formula: Any = Formula.of(B) * 2 + 1.5  # type: ignore[operator]
    assert str(formula) == "2*b + 1.5"
    assert str(formula - formula) == "0"
    assert str(-formula) == "-2*b - 1.5"
    assert formula / 2 == Formula.of(B) + 0.75  # type: ignore[operator]
    assert (formula**2).at(b=2) == 5.5**2
    assert float(Formula.of(3) * 2) == 6  # type: ignore[operator]
    assert formula != "b"
    for call, message in (
        (lambda: formula.at(), r"at takes a size for each variable: .at\(b=...\)"),
        (lambda: formula.at(b=1, t=2), "not b, t"),
        (lambda: float(formula), r"2\*b \+ 1.5 is a formula: .at\(b=...\)"),
        (lambda: formula + "x", "unsupported operand"),
        (lambda: formula / formula, "which has several terms"),
        (lambda: Formula.of(B) / T, "is not divided evenly by t"),
    ):
        with pytest.raises(TypeError, match=message):
            call()


def test_sizes_are_checked() -> None:
    report = formulas(layer, struct(D, D), struct(B, T, D))
    with pytest.raises(TypeError, match="not b"):
        report.at(b=1)
    with pytest.raises(TypeError, match="not b"):
        report.lines[0].at(b=1)


def test_the_command_prints_formulas(tmp_path: Path, capsys: Any) -> None:
    script = tmp_path / "train.py"
    script.write_text("def double(x):\n    return x * 2\n")
    args = "ShapeDtypeStruct(symbolic_shape('n, 3'), np.float32)"
    call = ["explore", f"{script}:double", "--args", args, "--costs", "h100"]
    assert main(call) == 0
    assert "double: 3*n flops, 24*n B on h100" in capsys.readouterr().out
    assert main([*call, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [report[n] for n in ("kind", "version", "flops")] == ["formulas", 1, "3*n"]
    assert report["lines"][0]["bytes"] == "24*n"
    assert report["lines"][0]["notes"] == []
