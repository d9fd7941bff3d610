"""Floor 3: discharged programs, found again, with the rules of custom functions.

One idea: how references go into the programs of an equation and come back stands in
its row; rules are only needed for functions with rules of the user's own::

    discharged(jaxpr).written    # which references it writes to
"""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from attrs import evolve

from verax.ir.jaxpr import Jaxpr
from verax.ops.custom.jvp import custom_jvp_call_p
from verax.ops.custom.vjp import custom_vjp_call_p
from verax.ops.custom.vmap import custom_vmap_call_p
from verax.rules.rows.masks import Mask
from verax.rules.values.memo import memo, recall
from verax.rules.values.state import Context, current_context
from verax.transforms.references.custom_rules import custom_rule
from verax.transforms.references.discharge import (
    PROGRAMS,
    Discharged,
    Rule,
    discharge,
    references,
)


def discharged(jaxpr: Jaxpr, marks: Mask | None = None) -> Discharged:
    """`discharge` with these rules, found again where that was asked before.

    Without `marks` every reference becomes a value.
    """
    chosen = references(jaxpr) if marks is None else marks
    return recall(remembered, jaxpr, current_context(), jaxpr, chosen)


def runnable(jaxpr: Jaxpr) -> Discharged:
    """The program on values that is to be run and not to be rewritten.

    What it writes comes before its other outputs: memory that is donated goes to the
    first output of its type, and so values stay where their reference held them.
    """
    return recall(remembered_to_run, jaxpr, current_context(), jaxpr)


CUSTOM: Final[Mapping[Any, Rule]] = MappingProxyType(
    {
        custom_jvp_call_p: partial(custom_rule, discharged),
        custom_vjp_call_p: partial(custom_rule, discharged),
        custom_vmap_call_p: partial(custom_rule, discharged),
    }
)


@memo(PROGRAMS)
def remembered(context: Context, jaxpr: Jaxpr, marks: Mask) -> Discharged:
    """See `discharged`."""
    return discharge(jaxpr, marks, CUSTOM, final=False)


@memo(PROGRAMS)
def remembered_to_run(context: Context, jaxpr: Jaxpr) -> Discharged:
    """See `runnable`."""
    found = discharge(jaxpr, references(jaxpr), CUSTOM, final=True)
    outs, count = found.jaxpr.outvars, len(jaxpr.outvars)
    return evolve(
        found, jaxpr=evolve(found.jaxpr, outvars=(*outs[count:], *outs[:count]))
    )


def without_own(jaxpr: Jaxpr) -> Jaxpr:
    """The program whose own references are values; those that it takes stay."""
    return discharge(jaxpr, (False,) * len(jaxpr.invars), CUSTOM, False).jaxpr
