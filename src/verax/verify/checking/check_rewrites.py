"""Floor 6: rewrites of programs and tables of rules, held to what they claim.

One idea: a rewrite claims that two programs compute the same, and a table that its rows
keep the laws, so both are tried on random programs::

    check_rewrite(log_of_one_plus).raise_if_broken()
    check_transformation(my_simplifier).raise_if_broken()
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, Protocol

import numpy as np
from attrs import frozen
from hypothesis import strategies as st

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import (
    bfloat16,
    complex64,
    float16,
    float32,
    int32,
    is_inexact,
    numpy_dtype,
    uint8,
)
from verax.ir.jaxpr import ClosedJaxpr, Jaxpr, Primitive
from verax.ir.records import ReprMixin
from verax.ir.text.printer import print_jaxpr
from verax.ir.walk import close
from verax.ops.table import ROWS
from verax.rules.families.elementwise import SHAPES
from verax.rules.rows.builder import Builder
from verax.rules.rows.row import Domain, NDArray, RuleTable, SomeRow
from verax.rules.values.conversions import shown
from verax.rules.values.state import interpreting
from verax.transforms.engine.engine import StandardEngine
from verax.transforms.patterns.matching import rewritten
from verax.transforms.patterns.rewrite_rules import Rewrite, RewriteError
from verax.verify.cases.case import Case, Skipped, broken, double_precision
from verax.verify.cases.tolerance import ULPS, wide_aval
from verax.verify.checking.check import CASES, Rules, check_primitive, engine_of
from verax.verify.checking.gains import gain_laws, weak_cases
from verax.verify.checking.report import Finding, Report, search
from verax.verify.laws import Law
from verax.verify.laws.agreement import Run, agree, has_types, well_formed
from verax.verify.random_programs import composable, programs
from verax.verify.strategies import SEEDS, Strategy, stack

EQUATIONS = 6
DTYPES = (float32, float16, bfloat16, complex64)
LITERALS = (2, 0.25, 64)
"""The scalar variables of a pattern, where a guard may want a literal."""

type Programs = Callable[[Jaxpr], Jaxpr] | Callable[[ClosedJaxpr], ClosedJaxpr]
type Reference = Callable[
    [Callable[..., list[NDArray]], Sequence[NDArray]], Sequence[NDArray]
]


class RewriteRule(Protocol):
    """A rule as `check_rewrite` needs it; `verax.rewrites.Rewrite` is one.

    `ulps` is how far results may differ, `domain` the interval in which that holds,
    `samples()` gives types of the variables.
    """

    @property
    def name(self) -> str: ...
    @property
    def pattern(self) -> Callable[..., object]: ...
    @property
    def replacement(self) -> Callable[..., Any]: ...
    @property
    def ulps(self) -> float: ...
    @property
    def domain(self) -> tuple[float, float]: ...
    @property
    def params(self) -> Mapping[str, object]: ...
    def samples(self) -> tuple[tuple[ShapedArray, ...], ...]: ...


def program_of(
    function: Callable[..., object],
    avals: Sequence[ShapedArray],
    scalar: float | None = None,
) -> Jaxpr:
    """The program of a function of arrays, which may return one or several.

    With `scalar` its scalar operands are that literal.
    """
    builder = Builder("a rewrite")
    inputs = [
        builder.input(aval)
        if aval.shape or scalar is None
        else np.asarray(scalar).astype(numpy_dtype(aval.dtype))
        for aval in avals
    ]
    with interpreting(builder):
        result = function(*inputs)
    outs = result if isinstance(result, tuple | list) else (result,)
    return builder.finish(outs)[0]


def check_rewrite(
    rule: RewriteRule,
    *,
    types: Sequence[Sequence[ShapedArray]] = (),
    rules: Rules = None,
    cases: int = CASES,
    seed: int | None = None,
) -> Report:
    """Checks a rewrite rule by the laws: both sides are the same program.

    Two laws: `types` (shape, dtype and weak type of the results agree) and `values`
    (they agree at special points of the rule's domain, within its `ulps`). A rule made
    with `verax.rewrites.rewrite` is tried where its `where` lets it apply, in all ways
    in which its pattern is written; its scalar variables are literals too, since guards
    may ask for their values. If it says where its pattern is `weak`, there are two more
    laws there, with mpmath: `gain` (it has as many digits more as it says) and
    `derivative` (its tangents are those of the pattern in exact arithmetic).

    Args:
        rule: pattern and replacement, with what it promises; see `RewriteRule`.
        types: types of the variables; left out, those of `rule.samples()`, in every
            float dtype and several shapes where both sides can be traced.
        rules: the table to evaluate under.
        cases: how many operands are drawn for each law.
        seed: draw the same cases each time.

    >>> from attrs import frozen
    >>> import verax.numpy as vnp
    >>> @frozen
    ... class Rule:
    ...     name, ulps, domain, params = "log1p", 4.0, (0.0, 1e3), {}
    ...     pattern = staticmethod(lambda x: vnp.log(1 + x))
    ...     replacement = staticmethod(lambda x: vnp.log1p(x))
    ...     def samples(self):
    ...         return ((ShapedArray((2,), float32),),)
    >>> bool(check_rewrite(Rule(), cases=10, types=[[ShapedArray((2,), float32)]]))
    True
    """
    engine = engine_of(rules)
    result = [s for avals in types or spread(rule) for s in sides(engine, rule, avals)]
    if not result:
        raise ValueError(
            f"the rewrite {rule.name} applies to none of its types; pass types=, or "
            "look at its where="
        )
    source = pattern_cases([s.pattern for s in result], Domain(*rule.domain))
    findings = [
        search(law, rule.name, engine, source, cases, seed=seed)
        for law in rewrite_laws(rule, {s.pattern: s for s in result})
    ]
    if isinstance(rule, Rewrite) and rule.weak:
        findings += gain_findings(engine, rule, source, cases, seed)
    return Report(rule.name, tuple(findings))


def gain_findings(
    engine: StandardEngine,
    rule: Rewrite,
    plain: Strategy[Case],
    cases: int,
    seed: int | None,
) -> list[Finding]:
    """What the laws about weak operands say; derivatives are tried on others, too."""
    known: dict[Jaxpr, Jaxpr] = {}

    def pattern_of(avals: Sequence[ShapedArray], scalar: float | None) -> Jaxpr | None:
        pattern = program_if(partial(rule.pattern, **rule.params), avals, scalar)
        other = pattern and replaced(engine, rule, pattern, avals)
        if pattern is None or other is None:
            return None
        known[pattern] = other
        return pattern

    weak = weak_cases(rule, pattern_of)
    if not weak:
        raise ValueError(f"the rewrite {rule.name} does not apply where it says weak=")

    def replacement_of(pattern: Jaxpr) -> Jaxpr:
        return known.get(pattern) or rewritten(engine, pattern, [rule])

    source = st.sampled_from(weak)
    gain, derivative = gain_laws(rule, replacement_of)
    count = min(cases, len(weak) + 1)
    return [
        search(gain, rule.name, engine, source, count, seed=seed),
        search(derivative, rule.name, engine, source | plain, cases, seed=seed),
    ]


@frozen(repr=False)
class Sides(ReprMixin):
    """A pattern, what replaces it, and the pattern in double precision, if any."""

    pattern: Jaxpr
    replacement: Jaxpr
    exact: Jaxpr | None


def rewrite_laws(rule: RewriteRule, sides_of: Mapping[Jaxpr, Sides]) -> tuple[Law, Law]:
    """Same types, same values; `sides_of` has the replacement of each pattern."""

    def same_types(engine: StandardEngine, case: Case) -> None:
        other = sides_of[case.jaxpr].replacement
        well_formed("types", case, "the replacement", other)
        due = case.jaxpr.out_avals
        has_types("types", case, "the replacement", other.out_avals, due)

    def same_values(engine: StandardEngine, case: Case) -> None:
        both = sides_of[case.jaxpr]
        other = both.replacement
        want = truth(engine, both, case.values)
        got = engine.evaluate(other, case.values)
        run = Run(case.jaxpr, case.values) if rule.ulps else None
        what = f"the replacement of {rule.name} differs"
        agree("values", engine, case, what, got, want, run, rule.ulps, after=other)

    return Law("types", same_types), Law("values", same_values)


def truth(
    engine: StandardEngine, sides: Sides, args: Sequence[NDArray]
) -> list[NDArray]:
    """The value of the pattern, computed in double precision where that exists."""
    if sides.exact is None:
        return engine.evaluate(sides.pattern, args)
    wide = [
        x.astype(numpy_dtype(aval.dtype))
        for x, aval in zip(args, sides.exact.in_avals, strict=True)
    ]
    with double_precision():
        values = engine.evaluate(sides.exact, wide)
    with np.errstate(all="ignore"):
        return [
            x.astype(numpy_dtype(aval.dtype))
            for x, aval in zip(values, sides.pattern.out_avals, strict=True)
        ]


def spread(rule: RewriteRule) -> Iterable[Sequence[ShapedArray]]:
    """The rule's own types, and other dtypes and several shapes in their place.

    Integers are tried with exact rules that can say by a guard that they take none.
    """
    yield from rule.samples()
    guarded = isinstance(rule, Rewrite) and not rule.ulps
    integers = (int32, uint8) if guarded else ()
    for avals in rule.samples():
        for dtype in (*DTYPES, *integers):
            yield [a.with_dtype(dtype, a.weak_type) for a in avals]
        if len({aval.shape for aval in avals}) == 1:
            for shape in SHAPES:
                yield [aval.with_shape(shape) for aval in avals]


def sides(
    engine: StandardEngine, rule: RewriteRule, avals: Sequence[ShapedArray]
) -> list[Sides]:
    """The programs at these types; none where the rule does not apply."""
    mixed = len({bool(aval.shape) for aval in avals}) == 2
    scalars = LITERALS if isinstance(rule, Rewrite) and mixed else ()
    patterns = rule.patterns if isinstance(rule, Rewrite) else (rule.pattern,)
    findings = []
    wide = [wide_aval(aval) for aval in avals]
    for written, scalar in product(patterns, (None, *scalars)):
        function = partial(written, **rule.params)
        pattern = program_if(function, avals, scalar)
        other = pattern and replaced(engine, rule, pattern, avals)
        if pattern is None or other is None:
            continue
        exact = None
        if rule.ulps and tuple(wide) != tuple(avals):
            with double_precision():
                exact = program_if(function, wide, scalar)
        findings.append(Sides(pattern, other, exact))
    return findings


def program_if(
    function: Callable[..., object], avals: Sequence[ShapedArray], scalar: float | None
) -> Jaxpr | None:
    """`program_of`, None if the function does not take these types."""
    try:
        return program_of(function, avals, scalar)
    except (TypeError, ValueError, OverflowError):
        return None


def replaced(
    engine: StandardEngine,
    rule: RewriteRule,
    pattern: Jaxpr,
    avals: Sequence[ShapedArray],
) -> Jaxpr | None:
    """The replacement that a rule makes of its pattern; None if its guard objects."""
    if isinstance(rule, Rewrite):
        try:
            after = rewritten(engine, pattern, [rule])
        except RewriteError:
            pass  # The types differ: the law says how.
        else:
            return None if after == pattern else after
    return program_of(partial(rule.replacement, **rule.params), avals)


def pattern_cases(jaxprs: Sequence[Jaxpr], domain: Domain) -> Strategy[Case]:
    """Cases of one of several programs, with operands of the domain."""

    @st.composite
    def drawn(draw: st.DrawFn) -> Case:
        jaxpr = draw(st.sampled_from(jaxprs))
        stacks = [
            draw(stack(aval, domain, 1, place, False))
            for place, aval in enumerate(jaxpr.in_avals)
        ]
        return Case(jaxpr, tuple(stacks), draw(SEEDS))

    return drawn()


def check_transformation(
    transformation: Programs | RuleTable | Mapping[Primitive, SomeRow],
    *,
    name: str | None = None,
    reference: Reference | None = None,
    rows: Sequence[SomeRow] = ROWS,
    rules: Rules = None,
    cases: int = CASES,
    equations: int = EQUATIONS,
    ulps: float = ULPS,
    seed: int | None = None,
) -> Report:
    """Checks a rewrite of whole programs, or a table of rules, by the laws.

    A function from jaxprs to jaxprs is tried on random programs: what it makes is well
    typed (`typed`), computes what it should (`values`), keeps effects (`effects`), and
    is the same when made again (`purity`). A table is checked row by row, as
    `check_primitive` does.

    Args:
        transformation: `Jaxpr -> Jaxpr`, `ClosedJaxpr -> ClosedJaxpr`, or a table.
        name: what to call it in the report.
        reference: `(f, args) -> results`: what the new program gives on `args`, where
            `f(*args)` evaluates the old one. Without it, values are to be kept.
            Operands that the new program has beyond the old are random.
        rows: the rows that programs are made of.
        rules: the table to evaluate under.
        cases: how many programs are drawn for each law.
        equations: how many equations a program has at most.
        ulps: how far results may differ, besides what rounding errors explain.
        seed: draw the same cases each time.

    >>> from verax.transforms.passes.cse import cse
    >>> bool(check_transformation(cse, cases=5))
    True
    """
    if isinstance(transformation, RuleTable | Mapping):
        return check_table(transformation, name or "table", cases, seed)
    title = name or str(getattr(transformation, "__name__", "transformation"))
    laws = transformation_laws(on_jaxprs(transformation), title, reference, ulps)
    engine, source = engine_of(rules), programs(composable(rows), most=equations)
    out = [search(law, title, engine, source, cases, seed=seed) for law in laws]
    return Report(title, tuple(out))


type Change = Callable[[Jaxpr], Jaxpr]


def transformation_laws(
    change: Change, title: str, reference: Reference | None, ulps: float
) -> tuple[Law, ...]:
    """The laws of a transformation of programs; see `check_transformation`."""

    def typed(engine: StandardEngine, case: Case) -> None:
        after, before = change(case.jaxpr), case.jaxpr
        well_formed("typed", case, f"what {title} makes", after)
        if reference is None:
            has_types("typed", case, "operands", after.in_avals, before.in_avals)
            has_types("typed", case, "results", after.out_avals, before.out_avals)

    def values(engine: StandardEngine, case: Case) -> None:
        after = change(case.jaxpr)
        args = operands_for(after, case)
        got = engine.evaluate(after, args)
        if reference is None:
            want, run = engine.evaluate(case.jaxpr, args), Run(case.jaxpr, args)
        else:
            due = reference(lambda *xs: engine.evaluate(case.jaxpr, xs), args)
            want, run = [np.asarray(y) for y in due], Run(after, args)
        agree("values", engine, case, title, got, want, run, ulps, after=after)

    return (
        Law("typed", typed),
        Law("values", values),
        Law("effects", lambda engine, case: keeps_effects(change, title, case)),
        Law("purity", lambda engine, case: gives_one_program(change, title, case)),
    )


def keeps_effects(change: Change, title: str, case: Case) -> None:
    """The new program has the effects of the old one."""
    after = change(case.jaxpr)
    got, want = (sorted(map(str, j.effects)) for j in (after, case.jaxpr))
    if got != want:
        what = f"{title} changes the effects of the program"
        raise broken("effects", case, what, got=got, want=want, after=after)


def gives_one_program(change: Change, title: str, case: Case) -> None:
    """The new program, made twice, is one."""
    first, second = (print_jaxpr(change(case.jaxpr)) for _ in range(2))
    if first != second:
        what = f"{title} gives two different programs for one"
        raise broken("purity", case, what, got=second, want=first)


def operands_for(jaxpr: Jaxpr, case: Case) -> tuple[NDArray, ...]:
    """The values of the case, then random ones for what the new program has more."""
    values = case.values[: len(jaxpr.invars)]
    for var, x in zip(jaxpr.invars, values, strict=False):
        if x.shape != var.aval.shape or x.dtype != var.aval.dtype:
            raise Skipped(
                "the new program takes other operands, so there is no reference"
            )
    random = np.random.default_rng(case.seed)
    rest = [v.aval for v in jaxpr.invars[len(values) :]]
    if not all(is_inexact(aval.dtype) for aval in rest):
        raise Skipped("the new program has further operands that are not floats")
    extra = [
        np.asarray(random.uniform(-1, 1, a.shape)).astype(numpy_dtype(a.dtype))
        for a in rest
    ]
    return (*values, *extra)


def on_jaxprs(transformation: Callable[..., object]) -> Callable[[Jaxpr], Jaxpr]:
    """The transformation on jaxprs, also if it is one of closed jaxprs."""

    def change(jaxpr: Jaxpr) -> Jaxpr:
        try:
            out = transformation(jaxpr)
        except (TypeError, AttributeError):
            out = transformation(ClosedJaxpr(jaxpr))
        if isinstance(out, ClosedJaxpr):
            return close(out)
        if not isinstance(out, Jaxpr):
            raise TypeError(f"a transformation must return a jaxpr, not {shown(out)}")
        return out

    return change


def check_table(
    table: RuleTable | Mapping[Primitive, SomeRow],
    name: str,
    cases: int,
    seed: int | None,
) -> Report:
    """Every row that a table puts in the place of another, under that table."""
    replaced = table.replaced if isinstance(table, RuleTable) else table
    findings: list[Finding] = []
    derived: list[tuple[str, str]] = []
    for primitive in replaced:
        report = check_primitive(primitive, rules=table, cases=cases, seed=seed)
        findings += [renamed(f, primitive.name) for f in report]
        derived += [(f"{primitive.name}.{c}", how) for c, how in report.derived]
    return Report(name, tuple(findings), tuple(derived))


def renamed(finding: Finding, primitive: str) -> Finding:
    """A finding whose law also names the primitive."""
    return Finding(
        finding.subject,
        f"{primitive}: {finding.law}",
        finding.verdict,
        finding.tried,
        finding.skips,
        finding.evidence,
        finding.proof,
    )
