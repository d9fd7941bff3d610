"""Floor 3: values that flow through block after block by cheap equations alone.

XLA joins an addition to each operation that reads the sum. In a network whose blocks
all add to one stream it so writes the sums of all earlier blocks into each block: a
program of quadratic size, which computes these sums again and again. Where a block is a
function, its operands and results are stored, and that ends::

    flows(jaxpr, 0)     # the outputs that only cheap operations separate from input 0
"""

from collections.abc import Iterable, Sequence
from typing import Final

from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Literal, Var

CHEAP: Final = frozenset(
    [
        "abs",
        "add",
        "and",
        "broadcast_in_dim",
        "convert_element_type",
        "eq",
        "expand_dims",
        "ge",
        "gt",
        "integer_pow",
        "iota",
        "le",
        "lt",
        "max",
        "min",
        "mul",
        "ne",
        "neg",
        "not",
        "one_minus_square",
        "or",
        "reshape",
        "select_n",
        "sign",
        "square",
        "squeeze",
        "sub",
        "transpose",
        "xor",
    ]
)
"""What XLA computes again rather than keep it in memory."""

ROOTS: Final = frozenset(["div", "rsqrt", "sqrt"])
"""What is computed again for small arrays, such as the deviations of rows."""

LIGHT: Final = (
    CHEAP
    | ROOTS
    | {
        "erf",
        "exp",
        "expm1",
        "log",
        "log1p",
        "logistic",
        "pow",
        "reduce_max",
        "reduce_min",
        "reduce_sum",
        "slice",
        "stop_gradient",
        "tanh",
    }
)
"""What takes little of the time of a block."""

STORES: Final = frozenset(
    [
        "cond",
        "custom_linear_solve",
        "dot_general",
        "fft",
        "ragged_dot_general",
        "scan",
        "triangular_solve",
        "while",
    ]
)
"""What blocks are made around; what is elementwise else is a few loops for XLA."""

INLINED: Final = frozenset(("conv_general_dilated",))
"""What XLA does best in one function: programs of convolutions take linear time."""


def may_stream(eqns: Sequence[Eqn]) -> bool:
    """Whether there may be several blocks in a program, at a glance."""
    return sum([eqn.primitive.name in STORES for eqn in eqns]) > 1


def flows(jaxpr: Jaxpr, number: int) -> set[int]:
    """The outputs to which an input flows through cheap equations alone."""
    reached = {number}
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in CHEAP and reads(eqn.invars, reached):
            reached.update([v.index for v in eqn.outvars])
    return {i for i, atom in enumerate(jaxpr.outvars) if reads((atom,), reached)}


def reads(atoms: Iterable[Atom], variables: set[int]) -> bool:
    """Whether any of the atoms is one of the variables."""
    return any([type(a) is Var and a.index in variables for a in atoms])


def streams(
    jaxpr: Jaxpr, ins: Sequence[Sequence[Atom]], outs: Sequence[Sequence[Var]]
) -> bool:
    """Whether a value flows through calls of a program that stores others between.

    `ins` and `outs` are the operands and the results of the calls.
    """
    names = {eqn.primitive.name for eqn in jaxpr.eqns}
    if names & INLINED or not names & STORES:
        return False
    made = {v.index: i for results in outs for i, v in enumerate(results)}
    for number in range(len(jaxpr.invars)):
        passed = [operands[number] for operands in ins]
        sources = {made.get(a.index) for a in passed if not isinstance(a, Literal)}
        if sources - {None} and sources & flows(jaxpr, number):
            return True
    return False
