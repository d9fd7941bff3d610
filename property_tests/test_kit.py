"""The kit itself: wrong rules, planted one by one, are found by the law that should."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from attrs import evolve, frozen

from verax.ops.core import CORE
from verax.ops.elementwise.arith import mul, neg
from verax.ops.elementwise.trig import cos
from verax.ops.structure.shape import transpose
from verax.ops.table import PRIMITIVES
from verax.rules.programs.derived import standard
from verax.rules.rows.row import Engine, Known, Row, Tangent, Zero
from verax.rules.values.array import Array
from verax.transforms.engine.engine import StandardEngine
from verax.verify.checking.check import check_law, check_row
from verax.verify.checking.functions import ENGINE, runner
from verax.verify.laws import LAWS, Law, compiled


@frozen
class Mutant:
    """A row with a wrong rule, and the law that must notice."""

    row: str
    column: str
    law: str
    wrong: Callable[[Row[Any]], Callable[..., Any]]


def tangent_rule(derivative: Callable[..., Tangent]) -> Callable[[Row[Any]], Any]:
    """A jvp column from `(primals, tangents) -> tangent` of one result."""

    def make(row: Row[Any]) -> Callable[..., Any]:
        def jvp(
            engine: Engine, p: Any, xs: Sequence[Array], ts: Sequence[Tangent]
        ) -> tuple[Sequence[Array], Sequence[Tangent]]:
            return (row.call(p, *xs),), (derivative(xs, ts),)

        return jvp

    return make


def first_term_only(xs: Sequence[Array], ts: Sequence[Tangent]) -> Tangent:
    """The product rule without its second term."""
    t = ts[0]
    return Zero(xs[0].aval) if isinstance(t, Zero) else mul(t, xs[1])


def cosine_negated(xs: Sequence[Array], ts: Sequence[Tangent]) -> Tangent:
    assert isinstance(ts[0], Array)
    return mul(ts[0], neg(cos(xs[0])))


def zero_tangent(xs: Sequence[Array], ts: Sequence[Tangent]) -> Tangent:
    return Zero(xs[0].aval)


def no_unbroadcast(row: Row[Any]) -> Callable[..., Any]:
    """The transpose of a sum that gives the cotangent to scalar operands as it is."""

    def rule(
        engine: Engine, p: Any, cts: Sequence[Tangent], xs: Sequence[Known]
    ) -> Sequence[Tangent | None]:
        return [None if isinstance(x, Array) else cts[0] for x in xs]

    return rule


def no_sign(row: Row[Any]) -> Callable[..., Any]:
    """The transpose of a difference with the sign of a sum."""

    def rule(
        engine: Engine, p: Any, cts: Sequence[Tangent], xs: Sequence[Known]
    ) -> Sequence[Tangent | None]:
        ct = cts[0]
        return [
            None
            if isinstance(x, Array)
            else ct
            if isinstance(ct, Zero) or ct.shape == x.aval.shape
            else CORE.reduce_sum(ct, tuple(range(ct.ndim)))
            for x in xs
        ]

    return rule


def same_cotangent(row: Row[Any]) -> Callable[..., Any]:
    """A transpose that hands the cotangent on: no conjugate, no permutation."""
    return lambda engine, p, cts, xs: (cts[0],)


def swapped_permutation(row: Row[Any]) -> Callable[..., Any]:
    """The transpose of a transpose with the permutation itself, not its inverse."""
    return lambda engine, p, cts, xs: (
        cts[0] if isinstance(cts[0], Zero) else transpose(cts[0], p.permutation),
    )


def axis_zero(row: Row[Any]) -> Callable[..., Any]:
    """A batch rule that takes the batch dimension to be the first of every operand."""
    assert row.batch is not None
    right = row.batch

    def rule(
        engine: Engine, p: Any, size: int, xs: Sequence[Array], axes: Sequence[Any]
    ) -> Any:
        zeros = tuple(None if axis is None else 0 for axis in axes)
        return right(engine, p, size, xs, zeros)

    return rule


def forgets_unbatched(row: Row[Any]) -> Callable[..., Any]:
    """A batch rule that takes every operand to be batched in the place of the first."""
    return lambda engine, p, size, xs, axes: (
        row.bind(p, *xs),
        (next(a for a in axes if a is not None),),
    )


def evaluating(function: Callable[..., Any]) -> Callable[[Row[Any]], Any]:
    """An evaluate column from a NumPy function."""
    return lambda row: lambda engine, p, xs: (function(*xs),)


def in_place(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A sum that writes into its operand."""
    x += y
    return x


def lowered_as(operation: str) -> Callable[[Row[Any]], Any]:
    return lambda row: lambda e, p, xs, outs: e.op(operation, xs, outs)


CASES = 150
"""More than `test_rows` gives a row: one mutant needs a permutation of order three."""
MUTANTS = (
    Mutant("sin", "jvp", "jvp", tangent_rule(cosine_negated)),
    Mutant("mul", "jvp", "jvp", tangent_rule(first_term_only)),
    Mutant("exp", "jvp", "jvp", tangent_rule(zero_tangent)),
    Mutant("conj", "jvp", "jvp", tangent_rule(lambda xs, ts: ts[0])),
    Mutant("conj", "transpose", "linear", same_cotangent),
    Mutant("sub", "transpose", "adjoint", no_sign),
    Mutant("add", "transpose", "adjoint", no_unbroadcast),
    Mutant("transpose", "transpose", "linear", swapped_permutation),
    Mutant("transpose", "batch", "vmap", axis_zero),
    Mutant("reduce_sum", "batch", "vmap", axis_zero),
    Mutant("concatenate", "batch", "vmap twice", axis_zero),
    Mutant("mul", "batch", "vmap", forgets_unbatched),
    Mutant("lt", "evaluate", "typed", evaluating(lambda x, y: (x < y).astype(int))),
    Mutant("sign", "evaluate", "typed", evaluating(lambda x: np.sign(x) * 1.0)),
    Mutant("add", "evaluate", "typed", evaluating(in_place)),
    Mutant("sub", "evaluate", "jvp", evaluating(lambda x, y: y - x)),
    Mutant("cos", "evaluate", "compiled", evaluating(np.sin)),
    Mutant("sin", "lower", "compiled", lowered_as("stablehlo.cosine")),
    Mutant("floor", "lower", "compiled", lowered_as("stablehlo.ceil")),
)


def mutated(mutant: Mutant) -> StandardEngine:
    """The engine under a table in which the one rule is wrong."""
    row = PRIMITIVES[mutant.row]
    change: dict[str, Any] = {mutant.column: mutant.wrong(row)}
    wrong = evolve(row, **change)
    return StandardEngine(standard | {row: wrong}, CORE)


def law_of(name: str, engine: StandardEngine) -> Law:
    return compiled(runner(engine)) if name == "compiled" else LAWS[name]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{m.row}-{m.column}-{m.law}")
def test_wrong_rule_is_found(mutant: Mutant) -> None:
    engine = mutated(mutant)
    law = law_of(mutant.law, engine)
    report = check_law(law, PRIMITIVES[mutant.row], engine, CASES)
    assert report.verdict == "broken", report
    assert f"row: {mutant.row}" in report.evidence


def test_evidence_says_what_to_define_where_nothing_can_be_imported() -> None:
    """A row made inside a function has no name; the rest of the snippet runs."""
    mutant = MUTANTS[1]
    engine = mutated(mutant)
    report = check_law(LAWS["jvp"], PRIMITIVES["mul"], engine, CASES)
    assert report.proof is not None
    lines = report.proof.snippet.splitlines()
    (place,) = [i for i, line in enumerate(lines) if line.startswith("other_mul_p")]
    assert "define mul as" in lines[place]
    namespace: dict[str, Any] = {"wrong": mutated(mutant).rules[PRIMITIVES["mul"]]}
    lines[place] = "other_mul_p = wrong"
    with pytest.raises(AssertionError, match="central difference"):
        exec("\n".join(lines), namespace)
    lines[-1] = "verify.hold('jvp', case)"
    exec("\n".join(lines), namespace)


def test_counterexamples_are_small() -> None:
    """What shrinking leaves of a wrong product rule is a product of few numbers."""
    report = check_law(LAWS["jvp"], PRIMITIVES["mul"], mutated(MUTANTS[1]), CASES)
    (operands,) = re.findall(r"operands: \((.*)\)", report.evidence)
    sizes = [int(size) for size in re.findall(r"(?<!f)(?<!\d)(\d+)", operands)]
    assert max(sizes, default=1) <= 3


def test_missing_rule_is_reported_as_such() -> None:
    row = PRIMITIVES["sin"]
    table = standard.strict() | {row: evolve(row, batch=None)}
    engine = StandardEngine(table, CORE)
    (report,) = check_row(row, engine, cases=10, laws=[LAWS["missing"]])
    assert report.verdict == "holds"


def test_report_says_why_cases_were_skipped() -> None:
    (report,) = check_row(PRIMITIVES["not"], ENGINE, cases=10, laws=[LAWS["jvp"]])
    assert report.verdict in ("vacuous", "does not apply")
    assert "tangent" in str(report) or "jvp" in str(report)
