"""Values of running programs, how arrays lie, where a NaN comes from (floor 6).

This module only gives names, which are JAX's; the work is done in `verax.api`.

    >>> import verax
    >>> verax.debug.print("hello {}", 1)
    hello 1
    >>> verax.debug.find_nans(verax.numpy.log)(-1.0).primitive
    'log'
"""

from verax.api.explain.report import Explanation
from verax.api.host.debugging import (
    debug_breakpoint as breakpoint,
    debug_callback as callback,
    debug_log as log,
    debug_print as print,
)
from verax.api.inspect.compare import compare
from verax.api.inspect.find_nans import find_infs, find_nans
from verax.api.inspect.gradient_audit import (
    GradientAudit,
    GradientFinding,
    ParameterGradient,
    audit_gradient,
)
from verax.api.inspect.precision import precision
from verax.api.inspect.shardings import (
    inspect_array_sharding,
    visualize_array_sharding,
    visualize_sharding,
)
from verax.api.inspect.watched_steps import (
    LineHistory,
    WatchedSteps,
    WatchHistory,
    watch_steps,
)
from verax.api.inspect.watching import LoopCourse, Watched, WatchedValue, watch
from verax.explorer.collectives import Collective, Collectives, collectives
from verax.explorer.costing import CostReport, Costs, LineCost, costs
from verax.explorer.formulas import CostFormulas, Formula, LineFormula
from verax.explorer.memory.formulas import LineMemoryFormula, MemoryFormulas
from verax.explorer.memory.measuring import memory
from verax.explorer.memory.report import (
    CurvePoint,
    LineMemory,
    LoopMemory,
    MemoryPlan,
    MemoryReport,
    MemoryUse,
    RunAgain,
    SourceLine,
)
from verax.explorer.meshes.devices import Device, Link
from verax.explorer.meshes.plan import plan
from verax.explorer.meshes.report import (
    MeshMemory,
    MeshPlan,
    PlannedCollective,
    PlannedLine,
)
from verax.explorer.search.proposal import CandidatePlan, Proposal
from verax.explorer.search.propose import propose
from verax.transforms.comparing.measures import Difference
from verax.transforms.comparing.report import Comparison
from verax.transforms.comparing.scenes import Divergence, Executed
from verax.transforms.comparing.walking import LineDifference
from verax.transforms.nans import Finding, NonFinite
from verax.transforms.precision.lines import PrecisionEquation, PrecisionLine
from verax.transforms.precision.measures import RelativeError
from verax.transforms.precision.remedies import Remedy
from verax.transforms.precision.report import PrecisionReport

__all__ = [
    "CandidatePlan",
    "Collective",
    "Collectives",
    "Comparison",
    "CostFormulas",
    "CostReport",
    "Costs",
    "CurvePoint",
    "Device",
    "Difference",
    "Divergence",
    "Executed",
    "Explanation",
    "Finding",
    "Formula",
    "GradientAudit",
    "GradientFinding",
    "LineCost",
    "LineDifference",
    "LineFormula",
    "LineHistory",
    "LineMemory",
    "LineMemoryFormula",
    "Link",
    "LoopCourse",
    "LoopMemory",
    "MemoryFormulas",
    "MemoryPlan",
    "MemoryReport",
    "MemoryUse",
    "MeshMemory",
    "MeshPlan",
    "NonFinite",
    "ParameterGradient",
    "PlannedCollective",
    "PlannedLine",
    "PrecisionEquation",
    "PrecisionLine",
    "PrecisionReport",
    "Proposal",
    "RelativeError",
    "Remedy",
    "RunAgain",
    "SourceLine",
    "WatchHistory",
    "Watched",
    "WatchedSteps",
    "WatchedValue",
    "audit_gradient",
    "breakpoint",
    "callback",
    "collectives",
    "compare",
    "costs",
    "find_infs",
    "find_nans",
    "inspect_array_sharding",
    "log",
    "memory",
    "plan",
    "precision",
    "print",
    "propose",
    "visualize_array_sharding",
    "visualize_sharding",
    "watch",
    "watch_steps",
]
