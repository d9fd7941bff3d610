"""Floor 2: what the compiler is told of operations: keys with values, as strings.

A call may have `Metadata`; what a block tells is a call for each of its equations, so
that every transformation keeps it; and a value marks the operation that made it::

    eqns = told(builder.eqns, (("block", "attention"),))
    y = marked(sin(x), (("breakpoint", "true"),))
"""

from collections.abc import Iterable, Sequence
from random import Random

from attrs import frozen
from pyrsistent import pvector

from verax.ir.atoms import results_like, variable
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Eqn, Jaxpr, Params, equation
from verax.ops.calls.call import Attributes, CallParams, Metadata, jit_p
from verax.ops.calls.checkpoint import drawn_avals
from verax.rules.families.elementwise import annotation
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.row import Rows, Sample
from verax.rules.values.array import Array


def told(eqns: Iterable[Eqn], attributes: Attributes) -> list[Eqn]:
    """The equations as calls that tell the compiler the attributes, one for each.

    What a block inside has told already stays as it is.
    """
    metadata = Metadata(attributes, inlined=True)
    return [eqn if is_told(eqn) else telling(eqn, metadata) for eqn in eqns]


def is_told(eqn: Eqn) -> bool:
    """Whether `told` made the equation."""
    params = eqn.params
    if not isinstance(params, CallParams) or params.metadata is None:
        return False
    return params.metadata.inlined


def telling(eqn: Eqn, metadata: Metadata) -> Eqn:
    """A call that means the equation."""
    invars = tuple([variable(i, atom.aval) for i, atom in enumerate(eqn.invars)])
    outs = results_like(len(invars), eqn.outvars)
    inner = equation(eqn.primitive, eqn.params, invars, outs, eqn.source)
    jaxpr = Jaxpr((), invars, pvector([inner]), outs)
    params = CallParams(eqn.primitive.name, jaxpr, False, metadata)
    return equation(jit_p, params, eqn.invars, eqn.outvars, eqn.source)


@frozen(eq=False, repr=False)
class MarkParams(Params):
    """The compiler's instructions for the operation that made the operand."""

    attributes: Attributes


def lower_mark(
    e: Emitter, p: MarkParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    e.mark(xs[0], p.attributes)
    return xs


def draw_mark(random: Random) -> Sample[MarkParams]:
    """One key for an operand of any type."""
    return Sample(MarkParams((("key", "a value"),)), drawn_avals(random, 1))


xla_metadata_value_p = annotation(
    "xla_metadata_value", MarkParams, lower=lower_mark, draw=draw_mark
)


def marked(x: object, attributes: Attributes) -> Array:
    """x, made by an operation that tells the compiler the attributes."""
    return xla_metadata_value_p.call(MarkParams(attributes), x)


ROWS: Rows = (xla_metadata_value_p,)
