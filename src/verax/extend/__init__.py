"""What extensions of one's own are made of, in one place (floor 6).

One idea: a primitive is a row, a transformation is a table, and both are values that
are passed along; nothing is registered and nothing in the library changes::

    my_p = composite("my", NoParams, lambda p, x: x * verax.numpy.tanh(x))
    bounds = Propagation("bounds", CONTROL) | {my_p: rule}
    with_rules(f, standard | {round_p: straight_p})

`docs/adding-a-primitive.md` and `docs/adding-a-transformation.md` go through it, and
`docs/examples/` has three whole extensions.
"""

from verax.extend.functions import Opened, opened, propagate, run
from verax.extend.overriding import with_rules
from verax.ir.jaxpr import NO_PARAMS, NoParams, Params
from verax.ops.programs import inlined
from verax.ops.table import PRIMITIVES, standard
from verax.rules.derived import composite
from verax.rules.elementwise import chlo, composed, elementwise, parametric, stablehlo
from verax.rules.row import Domain, MissingRule, Row, RuleTable, Sample, Zero
from verax.transforms.control import CONTROL, INSIDE
from verax.transforms.propagation import Parts, Propagation, Rule
from verax.transforms.standard import STANDARD

__all__ = [
    "CONTROL",
    "INSIDE",
    "NO_PARAMS",
    "PRIMITIVES",
    "STANDARD",
    "Domain",
    "MissingRule",
    "NoParams",
    "Opened",
    "Params",
    "Parts",
    "Propagation",
    "Row",
    "Rule",
    "RuleTable",
    "Sample",
    "Zero",
    "chlo",
    "composed",
    "composite",
    "elementwise",
    "inlined",
    "opened",
    "parametric",
    "propagate",
    "run",
    "stablehlo",
    "standard",
    "with_rules",
]
