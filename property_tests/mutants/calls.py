"""Calls of rows by number: what a trial runs, after the mutant has been loaded.

One idea: a call is a row, a law and a seed, so the parent can choose calls without
knowing anything about verax::

    call = Call("sin", "jvp", 3)
    hold(call, prepare(call))      # True, False if it says nothing, or LawBroken

Rows that have no draw of their own are held by examples: functions of the test files
that know how to call them. Their law is called "examples", their row is the function.
"""

import sys
from collections.abc import Iterator, Mapping
from random import Random
from types import MappingProxyType
from typing import Any, cast

import pytest
from attrs import evolve

from property_tests import test_linalg
from property_tests.mutants.examples import EXAMPLES
from property_tests.mutants.trial import Call
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import is_inexact, stored_dtype
from verax.ops.table import PRIMITIVES, ROWS
from verax.rules.rows.row import Domain, NDArray, Row, Sample
from verax.verify.cases.case import Case, Skipped, double_precision, traced
from verax.verify.cases.growing import domains_of, drawn, random_steps, weakened
from verax.verify.cases.nested import DRAWS
from verax.verify.cases.tolerance import widened
from verax.verify.checking.functions import COMPILED, ENGINE
from verax.verify.laws import EVERY, LOOPS, Law
from verax.verify.random_programs import random_array
from verax.verify.strategies import (
    ATTEMPTS,
    BODY,
    STANDARD,
    WEAK,
    filled,
    tied_values,
)

LAWS: Mapping[str, Law] = MappingProxyType(
    {law.name: law for law in (*EVERY, LOOPS, COMPILED)}
)


FACTORS = MappingProxyType(
    {
        f"{subject.name} {kind}": (subject, kind == "complex")
        for subject in test_linalg.SUBJECTS
        for kind in ("real", "complex")
        if kind in subject.only
    }
)
"""Rows of linear algebra have no draws: these functions go through them."""
EXAMPLE = "examples"
type Factored = tuple[test_linalg.Subject, bool, Law]


def sample_of(row: Row[Any], random: Random, wide: bool) -> Sample[Any]:
    """One call of the row."""
    with double_precision(wide):
        steps = random_steps(random, STANDARD, BODY, 1) if row in DRAWS else ()
        return drawn(row, random, STANDARD, steps, wide=wide)


def case_of(call: Call) -> Case:
    """The case of a call, as `strategies.cases` would draw it."""
    if call.row in FACTORS:
        subject, complex = FACTORS[call.row]
        return test_linalg.case_of(subject, complex, LAWS[call.law].wide, call.seed)
    row, law, random = PRIMITIVES[call.row], LAWS[call.law], Random(call.seed)
    sample = sample_of(row, random, law.wide)
    for _ in range(ATTEMPTS):
        if not law.wide or any(is_inexact(a.dtype) for a in sample.avals):
            break
        sample = sample_of(row, random, law.wide)
    if row not in DRAWS and random.random() < WEAK:
        sample = weakened(row, sample, random)
    domains = domains_of(row, sample)
    if law.wide:
        sample = widened(row, sample)
    stacks = [
        values(random, aval.with_shape((law.depth, *aval.shape)), domain, i, law)
        for i, (aval, domain) in enumerate(zip(sample.avals, domains, strict=True))
    ]
    smooth = tuple([domain.smooth for domain in domains])
    return Case(traced(row, sample), tuple(stacks), call.seed, smooth, row)


def values(
    random: Random, aval: ShapedArray, domain: Domain, place: int, law: Law
) -> NDArray:
    """Values of an operand; few different ones, which tie, if the law asks for it."""
    if not law.tied or not is_inexact(aval.dtype):
        return random_array(random, aval, domain, place, law.wide)
    pool = tied_values(domain)
    return filled(
        [random.choice(pool) for _ in range(7)], aval.shape, stored_dtype(aval.dtype)
    )


def prepare(call: Call) -> Case | None:
    """The case of a call; examples make their own."""
    return None if call.law == EXAMPLE else case_of(call)


def hold(call: Call, case: object) -> bool:
    """Try a law on a case, under an engine without memory.

    Raises:
        LawBroken: it does not hold.
    """
    if call.law == EXAMPLE:
        try:
            EXAMPLES[call.row][call.seed]()
        except pytest.skip.Exception:
            return False
        return True
    assert isinstance(case, Case)
    try:
        LAWS[call.law](evolve(ENGINE), case)
    except Skipped:
        return False
    return True


def every_call(seeds: int) -> Iterator[Call]:
    """Calls of all rows under all laws that apply, and the examples."""
    for name, cases in EXAMPLES.items():
        yield from [Call(name, EXAMPLE, i) for i in range(len(cases))]
    for row in ROWS:
        for law in LAWS.values():
            if law.applies(row) is None and (law is not LOOPS or row.name == "scan"):
                cheap = law.cost == 1 and row not in DRAWS
                count = 2 * seeds if cheap else max(2, seeds // law.cost)
                for seed in range(count):
                    yield Call(row.name, law.name, seed)
    for param in test_linalg.PAIRS:
        subject, complex, law = cast(Factored, param.values)
        name = f"{subject.name} {'complex' if complex else 'real'}"
        yield Call(name, law.name, 0)


def rows_of(module: str) -> tuple[str, ...]:
    """The names of the rows that a module makes."""
    actual = getattr(sys.modules.get(module), "ROWS", ())
    return tuple([row.name for row in actual])
