"""Floor 1: loops in lowerings: the state, when to go on, and one step.

One idea: both parts are written as mathematics on arrays, like the rules, and become
the regions of one `stablehlo.while`::

    repeat(e, state, lambda i, x: lt(i, 10), lambda i, x: (add(i, 1), mul(x, 2.0)))
"""

from collections.abc import Callable, Sequence

from verax.ir.jaxpr import Jaxpr
from verax.rules.rows.builder import program
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.values.array import Array


def repeat(
    e: Emitter,
    state: Sequence[Operand],
    proceed: Callable[..., Array],
    step: Callable[..., Sequence[Array]],
) -> tuple[Operand, ...]:
    """The state after as many steps as `proceed(*state)` asks for."""
    types = [x.aval for x in state]
    test = written(state, lambda *xs: (proceed(*xs),))
    body = written(state, step)
    return e.op(
        "stablehlo.while",
        state,
        types,
        (
            (types, lambda xs: e.inline(test, xs)),
            (types, lambda xs: e.inline(body, xs)),
        ),
    )


def written(
    operands: Sequence[Operand], function: Callable[..., Sequence[Array]]
) -> Jaxpr:
    """The jaxpr of a function on operands of these types."""
    return program([x.aval for x in operands], function, "a lower rule")


def lowered(
    e: Emitter, operands: Sequence[Operand], function: Callable[..., Sequence[Array]]
) -> tuple[Operand, ...]:
    """What a function of arrays lowers to, written here."""
    return e.inline(written(operands, function), operands)
