"""Floor 0: the jaxpr language as pure immutable data, and the public `verax.ir`.

One idea: a program is a value. It prints, parses, is saved, compares, hashes, and
shows what differs; nothing here knows a rule, an interpreter or a device::

    closed = verax.make_jaxpr(f)(x)
    verax.ir.loads(verax.ir.dumps(closed)) == closed
    print(verax.ir.diff(closed.jaxpr, other.jaxpr))

Transformations of programs are in `verax.transforms`.
"""

from verax.ir.atoms import Atom, array_literal, scalar_literal, variable
from verax.ir.avals import ShapedArray
from verax.ir.captured import CapturedConstants, captured_constants
from verax.ir.check import IllTyped, check_jaxpr
from verax.ir.consts import close, hoist, used_consts
from verax.ir.diff import diff
from verax.ir.effects import Effect
from verax.ir.frames import InvalidFile
from verax.ir.jaxpr import (
    ClosedJaxpr,
    Eqn,
    Jaxpr,
    Literal,
    Params,
    Primitive,
    Source,
    Var,
)
from verax.ir.loading import from_json, loads
from verax.ir.parser import parse_closed, parse_jaxpr
from verax.ir.printer import print_jaxpr
from verax.ir.saving import Unsavable, dumps, to_json
from verax.ir.tokens import ParseError
from verax.ir.views import html, svg
from verax.ir.walk import (
    count_eqns,
    equation_at,
    free_variables,
    map_eqns,
    map_jaxprs,
    map_subjaxprs,
    substitute,
    unused_variables,
    walk,
)

__all__ = [
    "Atom",
    "CapturedConstants",
    "ClosedJaxpr",
    "Effect",
    "Eqn",
    "IllTyped",
    "InvalidFile",
    "Jaxpr",
    "Literal",
    "Params",
    "ParseError",
    "Primitive",
    "ShapedArray",
    "Source",
    "Unsavable",
    "Var",
    "array_literal",
    "captured_constants",
    "check_jaxpr",
    "close",
    "count_eqns",
    "diff",
    "dumps",
    "equation_at",
    "free_variables",
    "from_json",
    "hoist",
    "html",
    "loads",
    "map_eqns",
    "map_jaxprs",
    "map_subjaxprs",
    "parse_closed",
    "parse_jaxpr",
    "print_jaxpr",
    "scalar_literal",
    "substitute",
    "svg",
    "to_json",
    "unused_variables",
    "used_consts",
    "variable",
    "walk",
]
