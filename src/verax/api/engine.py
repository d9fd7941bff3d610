"""Floor 5: the standard engine, and running a jaxpr under whatever is current.

One idea: after the rewriting there is one way on, `apply`: under a trace the equations
are written into it, else they are computed::

    outs = apply(jaxpr, args)
"""

from collections.abc import Sequence

import numpy as np

from verax.backend.array import ConcreteArray
from verax.backend.eager import eager_interpreter
from verax.backend.placed import fresh
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import stored_dtype
from verax.ir.jaxpr import Atom, Jaxpr, Literal, Var
from verax.rules.array import Array
from verax.rules.builder import Builder
from verax.rules.constants import aval_of
from verax.rules.state import STATE
from verax.transforms.finding import NonFinite
from verax.transforms.standard import STANDARD

ENGINE = STANDARD
EAGER = eager_interpreter(ENGINE, None)


def current_builder() -> Builder | None:
    """The builder of the innermost trace of this thread, if there is one."""
    interpreter = STATE.interpreter
    return interpreter if isinstance(interpreter, Builder) else None


def apply(jaxpr: Jaxpr, args: Sequence[object]) -> Sequence[Array]:
    """The outputs of `jaxpr` on arguments of its input types."""
    builder = current_builder()
    if builder is not None:
        atoms = builder.inline(jaxpr, [builder.atom(x) for x in args])
        return builder.tracers(atoms)
    env: list[object] = list(args)
    interpreter = STATE.interpreter
    for eqn in jaxpr.eqns:
        operands = [read(a, env) for a in eqn.invars]
        try:
            env += interpreter.bind(eqn.primitive, eqn.params, operands)
        except NonFinite as error:
            raise error.at(eqn) from None
    return [as_array(read(a, env)) for a in jaxpr.outvars]


def typed_atoms(
    args: Sequence[object], avals: Sequence[ShapedArray]
) -> list[Atom] | None:
    """What stands for arguments in the current trace, if their types are exactly these.

    A transformation then writes there at once what it makes of a program; otherwise it
    makes a program of these types, for `apply`.
    """
    builder = current_builder()
    if builder is None:
        return None
    atoms = [builder.atom(x) for x in args]
    same = [atom.aval is aval for atom, aval in zip(atoms, avals, strict=True)]
    return atoms if all(same) else None


def read(atom: Var | Literal, env: Sequence[object]) -> object:
    """The value of an atom; literals keep their type, weakness included."""
    return env[atom.index] if type(atom) is Var else literal_array(atom)


def literal_array(literal: Var | Literal) -> Array:
    assert isinstance(literal, Literal)
    if isinstance(literal.value, Array):
        return literal.value
    return as_typed_array(literal.value, literal.aval)


def as_array(x: object) -> Array:
    """An operand as an array: Python scalars and NumPy arrays are converted."""
    if isinstance(x, Array):
        return x
    return as_typed_array(x, aval_of(x))


def as_typed_array(x: object, aval: ShapedArray) -> ConcreteArray:
    """A copy of a Python or NumPy value as an array of type `aval`."""
    return fresh(np.array(x, stored_dtype(aval.dtype)), aval)
