"""Law 1 on the device: every row of the table computes there what NumPy does here.

Rows are drawn as the laws draw them. Allowed is what rounding can do to the result, as
the kit measures it, and so many units in the last place; products may be TF32::

    for row in laws(seconds=60): ...
"""

import time
from collections.abc import Iterable, Iterator
from itertools import count
from random import Random
from typing import Any

import numpy as np

from tests.gpu.result import Row, checked, figure
from verax.extend import MissingRule
from verax.ops.table import PRIMITIVES
from verax.verify.cases.case import holds_functions, traced
from verax.verify.cases.growing import domains_of
from verax.verify.cases.tolerance import difference, exact, sensitivity
from verax.verify.checking.functions import ENGINE, runner
from verax.verify.random_programs import random_array

ULPS = 64.0
SLACK = 64.0
# Inputs of products are rounded to 10 bits unless the precision says otherwise.
PRODUCTS = frozenset(("dot_general", "conv_general_dilated", "ragged_dot"))
TF32 = 2.0**-9
# Factors are determined but for signs, phases and order: the part "factors" has them.
FREE = frozenset(
    (
        *("eig", "eigh", "svd", "qr", "geqrf", "householder_product", "tridiagonal"),
        *("hessenberg", "schur", "lu"),
    )
)


def operands(jaxpr: Any, sample: Any, row: Any, random: Random) -> list[Any]:
    """Values for a drawn call, within the domains of the row."""
    pairs = zip(jaxpr.in_avals, domains_of(row, sample), strict=True)
    return [
        random_array(random, aval, domain, i, False)
        for i, (aval, domain) in enumerate(pairs)
    ]


def distance(name: str, jaxpr: Any, args: list[Any], run: Any) -> str:
    """The first difference between the device and NumPy; nothing if there is none."""
    with np.errstate(all="ignore"):
        want = ENGINE.evaluate(jaxpr, args)
        slack = sensitivity(ENGINE, jaxpr, args)
    for x, y, s in zip(run(jaxpr, args), want, slack, strict=True):
        extra = SLACK * s
        if name in PRODUCTS and y.size and y.dtype.kind != "i":
            extra = extra + TF32 * float(np.abs(exact(y)).max()) + TF32
        first = difference(x, y, ulps=ULPS, slack=extra)
        if first is not None:
            return str(first)
    return ""


def laws(seconds: float, names: Iterable[str] = PRIMITIVES) -> Iterator[Row]:
    """Rounds over the rows until the time is over; one at least."""
    run = runner(ENGINE)
    chosen = {name: PRIMITIVES[name] for name in names if name not in FREE}
    drawn = {name: row for name, row in chosen.items() if row.draw and not row.hosted}
    wrong, lacking = dict[str, str](), set[str]()
    calls, end = 0, time.monotonic() + seconds
    for seed, name in ((seed, name) for seed in count() for name in sorted(drawn)):
        if time.monotonic() > end and calls >= len(drawn):
            break
        if name in wrong:
            continue
        actual = outcome(name, drawn[name], seed, run)
        if actual == LACKING:
            lacking.add(name)
        elif actual:
            wrong[name] = f"seed {seed}: {actual}"
        calls += 1
    yield figure("calls of rows", f"{calls} of {len(drawn)} rows")
    yield figure("rows without a lowering here", ", ".join(sorted(lacking)) or "none")
    for name, words in sorted(wrong.items()):
        yield checked(f"law: {name}", False, words[:300])
    yield checked("laws", not wrong, f"{len(wrong)} rows differ from NumPy")


LACKING = "no lowering"


def outcome(name: str, row: Any, seed: int, run: Any) -> str:
    """What is wrong with one drawn call; nothing if all is well."""
    random = Random(seed)
    sample = row.draw(random)
    try:
        jaxpr = traced(row, sample)
        if holds_functions(jaxpr) or any(
            not isinstance(aval.dtype, np.dtype) for aval in jaxpr.in_avals
        ):
            return ""
        return distance(name, jaxpr, operands(jaxpr, sample, row, random), run)
    except MissingRule:
        return LACKING
    except Exception as error:
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
