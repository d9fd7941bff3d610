"""Floor 3: what custom tables do with calls, loops and branches.

One idea: an equation with programs inside does to parts what its programs do to them,
and how values go in and come out stands in its row (`thread`); so there is one rule::

    Propagation("taylor", CONTROL, fill=fill) | {sin_p: rule}

`CONTROL` has it for the calls, loops and branches of the library. `INSIDE` takes
functions with derivatives or batching rules of the user's own for what they compute, as
evaluation does.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from verax.ir.jaxpr import Primitive
from verax.ops.calls.call import NamedCall, jit_p
from verax.ops.calls.checkpoint import checkpoint_p
from verax.ops.control.cond import cond_lanes_p, cond_p
from verax.ops.control.scan import scan_p
from verax.ops.control.while_ import while_p
from verax.ops.custom.jvp import custom_jvp_call_p
from verax.ops.custom.vjp import custom_vjp_call_p
from verax.ops.custom.vmap import custom_vmap_call_p
from verax.rules.rows.bodies import Values
from verax.transforms.tables.propagation import Propagation, Rule, follow


def inside(walk: Propagation, p: NamedCall, values: Values) -> Values:
    """An equation that means its jaxpr, written in place."""
    return walk(p.jaxpr, values)


CONTROL: Mapping[Primitive, Rule[Any]] = MappingProxyType(
    {row: follow(row) for row in (jit_p, scan_p, while_p, cond_p, cond_lanes_p)}
)
INSIDE: Mapping[Primitive, Rule[Any]] = MappingProxyType(
    {
        checkpoint_p: follow(checkpoint_p),
        custom_jvp_call_p: inside,
        custom_vjp_call_p: inside,
        custom_vmap_call_p: inside,
    }
)
