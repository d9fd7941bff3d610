# What __init__.py shows, for type checkers: `python -m tests.stubs` writes this file.
# fmt: off
# isort: skip_file
from verax.extend import (
    backend as backend, core as core, mlir as mlir, random as random,
)
from verax.extend.functions import (
    Opened as Opened, opened as opened, propagate as propagate, run as run,
    with_passes as with_passes,
)
from verax.extend.overriding import with_rules as with_rules
from verax.ir.jaxpr import (
    NO_PARAMS as NO_PARAMS, NoParams as NoParams, Params as Params,
)
from verax.ops.calls.call import inlined as inlined, thread_loop as thread_loop
from verax.ops.table import PRIMITIVES as PRIMITIVES
from verax.rules.families.elementwise import (
    chlo as chlo, composed as composed, elementwise as elementwise,
    parametric as parametric, stablehlo as stablehlo,
)
from verax.rules.programs.derived import composite as composite, standard as standard
from verax.rules.rows.bodies import (
    Parts as Parts, Role as Role, thread_call as thread_call, Through as Through,
    Types as Types, Values as Values,
)
from verax.rules.rows.kernels import Kernel as Kernel
from verax.rules.rows.row import (
    Domain as Domain, MissingRule as MissingRule, Narrow as Narrow, Row as Row,
    RuleTable as RuleTable, Sample as Sample, Zero as Zero, Flops as Flops,
    no_flops as no_flops, Traits as Traits, traits_of as traits_of, Work as Work,
)
from verax.transforms.engine.engine import STANDARD as STANDARD
from verax.transforms.tables import (
    CONTROL as CONTROL, INSIDE as INSIDE, Propagation as Propagation, Rule as Rule,
)
__all__ = [
    "CONTROL", "INSIDE", "NO_PARAMS", "PRIMITIVES", "STANDARD", "Domain", "Flops",
    "Kernel", "MissingRule", "Narrow", "NoParams", "Opened", "Params", "Parts",
    "Propagation", "Role", "Row", "Rule", "RuleTable", "Sample", "Through", "Traits",
    "Types", "Values", "Work", "Zero", "backend", "chlo", "composed", "composite",
    "core", "elementwise", "inlined", "mlir", "no_flops", "opened", "parametric",
    "propagate", "random", "run", "stablehlo", "standard", "thread_call", "thread_loop",
    "traits_of", "with_passes", "with_rules",
]
