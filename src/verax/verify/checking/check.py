"""Floor 6: a row held to the laws, with a report instead of an exception.

One idea: a row is checked by being there: whatever its columns, each law is tried on
calls that its own `draw` makes::

    check_primitive(sin_p, cases=50).raise_if_broken()
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from attrs import evolve
from hypothesis import strategies as st

from verax.ir.jaxpr import Primitive
from verax.ops.core import CORE
from verax.ops.table import PRIMITIVES
from verax.rules.programs.derived import derived_columns, standard
from verax.rules.rows.row import Row, RuleTable, SomeRow, SomeSample
from verax.rules.values.conversions import shown
from verax.transforms.engine.engine import StandardEngine
from verax.verify.cases.case import Case
from verax.verify.cases.edges import edge_cases
from verax.verify.cases.nested import DRAWS
from verax.verify.checking.functions import (
    ENGINE,
    function_cases,
    function_laws,
    function_of,
    runner,
)
from verax.verify.checking.report import (
    BROKEN,
    SILENT,
    Finding,
    Report,
    at_edges,
    search,
)
from verax.verify.laws import EVERY, LAWS, Law, compiled
from verax.verify.laws.compose import LINKS, chain
from verax.verify.strategies import cases as cases_of

type Rules = RuleTable | Mapping[Primitive, SomeRow] | StandardEngine | None
type Laws = Iterable[Law | str] | None
CASES = 50
DERIVED = ("use", "error")


def engine_of(rules: Rules, derived: str = "use") -> StandardEngine:
    """The engine under a table; a mapping is joined to the standard one.

    Raises:
        ValueError: `derived` is neither "use" nor "error".
    """
    if derived not in DERIVED:
        raise ValueError(f'derived must be "use" or "error", not {shown(derived)}')
    if isinstance(rules, StandardEngine):
        engine = rules
    elif rules is None:
        engine = ENGINE
    else:
        check_rows(rules)
        engine = StandardEngine(
            rules if isinstance(rules, RuleTable) else standard | rules, CORE
        )
    if derived == "error":
        return evolve(engine, rules=engine.rules.strict())
    return engine


def check_rows(rules: RuleTable | Mapping[Primitive, SomeRow]) -> None:
    """Raise TypeError unless the table maps primitives to rows."""
    rows = rules.replaced if isinstance(rules, RuleTable) else rules
    for primitive, row in rows.items():
        if not (isinstance(primitive, Primitive) and isinstance(row, Row)):
            raise TypeError(
                "rules must map primitives to the rows that replace them, not "
                f"{primitive!r} to {row!r}"
            )


def laws_of(laws: Laws, engine: StandardEngine) -> tuple[Law, ...]:
    """Laws by their names; without any, all of them, the compiled one included.

    Raises:
        ValueError: there is no law of that name.
    """
    known = {**LAWS, "compiled": compiled(runner(engine))}
    if laws is None:
        return tuple(known.values())
    out = []
    for law in laws:
        if isinstance(law, str) and law not in known:
            raise ValueError(
                f"there is no law {law!r}; the laws are {', '.join(known)}"
            )
        out.append(known[law] if isinstance(law, str) else law)
    return tuple(out)


def row_of(primitive: Primitive | str) -> SomeRow:
    """The row of a primitive, or of the library's primitive of that name.

    Raises:
        ValueError: the library has no such primitive.
        TypeError: the primitive has no row.

    >>> row_of("sin")
    sin
    """
    if isinstance(primitive, str):
        if primitive not in PRIMITIVES:
            raise ValueError(
                f"the library has no primitive {primitive!r}; pass your row itself"
            )
        return PRIMITIVES[primitive]
    if not isinstance(primitive, Row):
        raise TypeError(
            f"check_primitive takes a row (see verax.extend.Row) or the name "
            f"of one, not {shown(primitive)}; a function goes to check_function"
        )
    return primitive


def check_primitive(
    primitive: Primitive | str,
    *,
    rules: Rules = None,
    cases: int = CASES,
    laws: Laws = None,
    samples: Sequence[SomeSample] = (),
    derived: str = "use",
    seed: int | None = None,
) -> Report:
    """Checks a primitive by the laws: one finding for each law.

    Args:
        primitive: a row, or the name of one of the library.
        rules: the table to check it under: a `RuleTable`, or rows by primitive that
            are joined to the standard table. A primitive that the table replaces is
            checked with the row that replaces it.
        cases: how many calls are drawn for each law (fewer for expensive ones).
        laws: names of laws, or laws; all of them if left out.
        samples: calls to try, instead of those that the row's `draw` makes.
        derived: "use" lets missing columns follow from others and says so in the
            report; "error" counts each of them as broken.
        seed: draw the same cases every time.

    Raises:
        ValueError: the row has no `draw` and there are no samples, or a law or
            primitive of that name does not exist.

    >>> report = check_primitive("sin", cases=5, laws=["jvp", "vmap"])
    >>> bool(report), [finding.law for finding in report]
    (True, ['jvp', 'vmap'])
    """
    row = row_of(primitive)
    engine = engine_of(rules, derived)
    written = engine.rules.replaced.get(row, row)
    if row.draw is None and row not in DRAWS and not samples:
        raise ValueError(
            f"the row {row.name} has no draw, so there is nothing to try: give the row "
            "draw=... (see Sample) or pass samples=[Sample(params, operand types)]"
        )
    means = tuple(derived_columns(written).items())
    out = tuple(
        check_law(law, row, engine, cases, samples=samples, seed=seed)
        for law in laws_of(laws, engine)
    )
    if derived == "error":
        missing = tuple(
            Finding(
                row.name,
                f"{column} is written",
                BROKEN,
                evidence=f"{row.name} has no {column} rule; it would be {how}. Write "
                f'it, or allow derived="use"',
            )
            for column, how in means
        )
        return Report(row.name, (*missing, *out))
    return Report(row.name, out, means)


def check_row(
    row: SomeRow,
    engine: StandardEngine,
    *,
    cases: int = 30,
    laws: Iterable[Law] = EVERY,
) -> tuple[Finding, ...]:
    """`check_primitive` under an engine, without the compiled law."""
    return tuple(check_law(law, row, engine, cases) for law in laws)


def check_law(
    law: Law,
    row: SomeRow,
    engine: StandardEngine,
    cases: int,
    *,
    samples: Sequence[SomeSample] = (),
    seed: int | None = None,
) -> Finding:
    """The finding of one law on a row."""
    reason = law.applies(engine.rules[row], bool(samples))
    if reason is not None:
        return Finding(row.name, law.name, SILENT, skips=((reason, 0),))
    known = check_edges(law, row, engine, samples)
    if known.verdict == BROKEN:
        return known
    given = st.sampled_from(samples) if samples else None
    source = cases_of(row, depth=law.depth, wide=law.wide, tied=law.tied, given=given)
    return search(law, row.name, engine, source, cases, seed=seed).after(known)


def check_edges(
    law: Law,
    row: SomeRow,
    engine: StandardEngine,
    samples: Sequence[SomeSample] = (),
) -> Finding:
    """The finding of one law at the edges of a row's domain, if it asks for them."""
    cases = edge_cases(row, law.wide, samples) if law.edges else ()
    return at_edges(law, row.name, engine, cases)


# -----------------------------------------------------------------------------
# Check_function: a user's function held to every law.
#
# What the library promises for its rows it promises for functions made of them,
# custom rules included, so a function is checked by the same laws::
#
#     check_function(loss, weights, batch).raise_if_broken()


FUNCTION_CASES = 20
CHAINS = (("vjp", "vmap"), ("vmap", "vjp"), ("jvp", "vjp"), ("vjp", "jvp"))
NO_KWARGS: Mapping[str, Any] = MappingProxyType({})


def chain_law(names: Sequence[str]) -> Law:
    """The law that each step of a chain of transformations keeps its own law.

    Raises:
        ValueError: there is no transformation of that name.
    """
    unknown = [name for name in names if name not in LINKS]
    if unknown:
        raise ValueError(
            f"there is no transformation {unknown[0]!r}; the transformations are "
            f"{', '.join(LINKS)}"
        )

    def check(engine: StandardEngine, case: Case) -> None:
        chain(engine, case, names)

    return Law(" of ".join(reversed(names)), check, wide=True, depth=4, cost=8)


def pick(
    name: Law | str, special: Mapping[str, Law], engine: StandardEngine
) -> Sequence[Law]:
    """A law by its name, among those of functions and those of programs."""
    if isinstance(name, str) and name in special:
        return (special[name],)
    return laws_of([name], engine)


def check_function(
    fun: Callable[..., object],
    *args: object,
    kwargs: Mapping[str, object] = NO_KWARGS,
    domains: object = None,
    rules: Rules = None,
    cases: int = FUNCTION_CASES,
    laws: Iterable[Law | str] | None = None,
    chains: Iterable[Sequence[str]] = CHAINS,
    seed: int | None = None,
) -> Report:
    """Checks a function by the laws: one finding for each law.

    The function is called, compiled and traced; its program is evaluated, compiled,
    differentiated (held to differences in double precision), transposed, batched (held
    to the loop), pruned, printed and parsed, and put through `chains` of those.

    Args:
        fun: a function of arrays, scalars and pytrees of them.
        args: example arguments. Values are drawn near them: each number within an
            eighth of itself. A `ShapeDtypeStruct` gives only the type; its values are
            any numbers, special ones included.
        kwargs: keyword arguments, as examples too.
        domains: a `Domain`, or a tree of them that is a prefix of `args`: values are
            drawn from there. None in it stands for "near the example".
        rules: the table to check under, as in `check_primitive`.
        cases: how many calls are drawn for each law (fewer for expensive ones).
        laws: names of laws, or laws; all of them if left out.
        chains: transformations that are applied in order, each held to its law.
        seed: draw the same cases each time.

    Raises:
        TypeError: `fun` is not a function, or an argument is not an array.
        ValueError: `domains` does not fit, or no law or transformation has that name.

    >>> import verax.numpy as vnp
    >>> report = check_function(lambda w, x: vnp.tanh(x @ w).sum(), vnp.ones(2),
    ...                         vnp.ones((3, 2)), cases=4, chains=[])
    >>> bool(report), "eager" in [finding.law for finding in report]
    (True, True)
    """
    function = function_of(fun, args, kwargs, domains)
    engine = engine_of(rules)
    special = {law.name: law for law in function_laws(function)}
    if laws is None:
        programs = [law for law in laws_of(None, engine) if not law.rows_only]
        chosen = [*special.values(), *programs, *map(chain_law, chains)]
    else:
        chosen = [law for name in laws for law in pick(name, special, engine)]
    findings: list[Finding] = []
    for law in chosen:
        source = function_cases(function, law)
        findings.append(search(law, function.name, engine, source, cases, seed=seed))
    return Report(function.name, tuple(findings))
