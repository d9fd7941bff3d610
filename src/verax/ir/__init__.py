"""Floor 0: the jaxpr language as pure immutable data, and the public `verax.ir`.

One idea: a program is a value. It prints, parses, is saved, compares, hashes, and
shows what differs; nothing here knows a rule, an interpreter or a device::

    closed = verax.make_jaxpr(f)(x)
    verax.ir.loads(verax.ir.dumps(closed)) == closed
    print(verax.ir.diff(closed.jaxpr, other.jaxpr))

Transformations of programs are in `verax.transforms`.
"""

from verax.ir.facade import facade
from verax.ir.walk import walk as walk

# `walk` is also a module, so it must be here before it is first read.
__getattr__, __dir__ = facade(
    __name__,
    {
        ".atoms": "Atom array_literal scalar_literal variable",
        ".avals": "ShapedArray",
        ".reports.check": "CapturedConstants captured_constants IllTyped check_jaxpr",
        ".walk": (
            "close hoist used_consts count_eqns equation_at free_variables map_eqns "
            "map_jaxprs map_subjaxprs substitute unused_variables walk"
        ),
        ".reports.differences": "diff",
        ".effects": "Effect",
        ".forms.values": "InvalidFile",
        ".jaxpr": "ClosedJaxpr Eqn Jaxpr Literal Params Primitive Source Var",
        ".forms.saving": "from_json loads Unsavable dumps to_json",
        ".forms.parser": "parse_closed parse_jaxpr",
        ".text.printer": "print_jaxpr html svg",
        ".text.tokens": "ParseError",
    },
)
