# What __init__.py shows, for type checkers: `python -m tests.stubs` writes this file.
# fmt: off
# isort: skip_file
from verax.ir.atoms import (
    Atom as Atom, array_literal as array_literal, scalar_literal as scalar_literal,
    variable as variable,
)
from verax.ir.avals import ShapedArray as ShapedArray
from verax.ir.reports.check import (
    CapturedConstants as CapturedConstants, captured_constants as captured_constants,
    IllTyped as IllTyped, check_jaxpr as check_jaxpr,
)
from verax.ir.walk import (
    close as close, hoist as hoist, used_consts as used_consts,
    count_eqns as count_eqns, equation_at as equation_at,
    free_variables as free_variables, map_eqns as map_eqns, map_jaxprs as map_jaxprs,
    map_subjaxprs as map_subjaxprs, substitute as substitute,
    unused_variables as unused_variables, walk as walk,
)
from verax.ir.reports.differences import diff as diff
from verax.ir.effects import Effect as Effect
from verax.ir.forms.values import InvalidFile as InvalidFile
from verax.ir.jaxpr import (
    ClosedJaxpr as ClosedJaxpr, Eqn as Eqn, Jaxpr as Jaxpr, Literal as Literal,
    Params as Params, Primitive as Primitive, Source as Source, Var as Var,
)
from verax.ir.forms.saving import (
    from_json as from_json, loads as loads, Unsavable as Unsavable, dumps as dumps,
    to_json as to_json,
)
from verax.ir.forms.parser import (
    parse_closed as parse_closed, parse_jaxpr as parse_jaxpr,
)
from verax.ir.text.printer import print_jaxpr as print_jaxpr, html as html, svg as svg
from verax.ir.text.tokens import ParseError as ParseError
__all__ = [
    "Atom", "CapturedConstants", "ClosedJaxpr", "Effect", "Eqn", "IllTyped",
    "InvalidFile", "Jaxpr", "Literal", "Params", "ParseError", "Primitive",
    "ShapedArray", "Source", "Unsavable", "Var", "array_literal", "captured_constants",
    "check_jaxpr", "close", "count_eqns", "diff", "dumps", "equation_at",
    "free_variables", "from_json", "hoist", "html", "loads", "map_eqns", "map_jaxprs",
    "map_subjaxprs", "parse_closed", "parse_jaxpr", "print_jaxpr", "scalar_literal",
    "substitute", "svg", "to_json", "unused_variables", "used_consts", "variable",
    "walk",
]
