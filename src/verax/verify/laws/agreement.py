"""Floor 6: comparing what two programs compute, and programs themselves.

One idea: results are first held to a few units in the last place; only where that
fails is it measured how much rounding errors matter there, and allowed for::

    agree("vmap", engine, case, "differs from the loop", got, want, Run(jaxpr, args))
"""

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.ir.reports.check import IllTyped, check_jaxpr
from verax.rules.rows.infer import inferred
from verax.rules.rows.row import NDArray
from verax.transforms.engine.engine import StandardEngine
from verax.verify.cases.case import Case, broken, types_text
from verax.verify.cases.tolerance import ULPS, difference, own_errors, sensitivity

SLACK = 16.0
"""How often the measured effect of rounding errors may be exceeded: few runs see less
than the worst, and a sum of n terms may be taken in any order."""


@frozen(repr=False)
class Run(ReprMixin):
    """A program and arguments at which its rounding errors are measured.

    With `reference`, the error that the interpreter itself makes counts, too.
    """

    jaxpr: Jaxpr
    args: tuple[NDArray, ...]
    reference: bool = False


def agree(
    law: str,
    engine: StandardEngine,
    case: Case,
    what: str,
    got: Sequence[NDArray],
    want: Sequence[NDArray],
    run: Run | None = None,
    ulps: float = ULPS,
    *,
    after: Jaxpr | None = None,
) -> None:
    """Raise unless two lists of results agree; `run` gives the outputs of `want`.

    `after` is the program that gave `got`, for the message.

    Raises:
        LawBroken: they do not, with the first difference.
    """
    if len(got) != len(want):
        count = f"{what}: {len(got)} results instead of {len(want)}"
        raise broken(law, case, count, after=after)
    slack: list[NDArray] | None = None
    for i, (x, y) in enumerate(zip(got, want, strict=True)):
        first = difference(x, y, ulps=ulps)
        if first is None:
            continue
        if run is not None and x.shape == y.shape and x.dtype == y.dtype:
            slack = slack or measured(engine, case, run)
            first = difference(x, y, ulps=ulps, slack=SLACK * slack[i])
        if first is not None:
            text = f"{what} (result {i})"
            raise broken(law, case, text, got=x, want=y, first=first, after=after)


def measured(engine: StandardEngine, case: Case, run: Run) -> list[NDArray]:
    """The effect of rounding errors; in the call of one row, jumps are due exactly."""
    single = len(case.jaxpr.eqns) == 1
    spread = sensitivity(engine, run.jaxpr, run.args, jumps=not single)
    if not (single and run.reference):
        return spread
    own = own_errors(engine, run.jaxpr, run.args)
    return [s + e for s, e in zip(spread, own, strict=True)]


def well_formed(law: str, case: Case, what: str, jaxpr: Jaxpr) -> None:
    """Raise unless the type checker accepts a derived program."""
    try:
        check_jaxpr(jaxpr, inferred)
    except IllTyped as error:
        raise broken(law, case, f"{what} is ill-typed: {error}", after=jaxpr) from error


def has_types(
    law: str,
    case: Case,
    what: str,
    found: Sequence[ShapedArray],
    due: Sequence[ShapedArray],
) -> None:
    """Raise unless the types are those that are due, weakness included."""
    if tuple(found) != tuple(due):
        raise broken(
            law,
            case,
            f"{what} has other types",
            got=types_text(found),
            want=types_text(due),
        )


def zeros(aval: ShapedArray) -> NDArray:
    """The NumPy zeros of a type."""
    return np.zeros(aval.shape, aval.dtype)  # type: ignore[arg-type]  # no keys here
