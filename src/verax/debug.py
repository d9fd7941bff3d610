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
from verax.api.inspect.shardings import (
    inspect_array_sharding,
    visualize_array_sharding,
    visualize_sharding,
)
from verax.api.inspect.watching import LoopCourse, Watched, WatchedValue, watch
from verax.explorer.costing import CostReport, Device, LineCost, costs
from verax.transforms.comparing.measures import Difference
from verax.transforms.comparing.report import Comparison
from verax.transforms.comparing.scenes import Divergence, Executed
from verax.transforms.comparing.walking import LineDifference
from verax.transforms.nans import Finding, NonFinite

__all__ = [
    "Comparison",
    "CostReport",
    "Device",
    "Difference",
    "Divergence",
    "Executed",
    "Explanation",
    "Finding",
    "GradientAudit",
    "GradientFinding",
    "LineCost",
    "LineDifference",
    "LoopCourse",
    "NonFinite",
    "ParameterGradient",
    "Watched",
    "WatchedValue",
    "audit_gradient",
    "breakpoint",
    "callback",
    "compare",
    "costs",
    "find_infs",
    "find_nans",
    "inspect_array_sharding",
    "log",
    "print",
    "visualize_array_sharding",
    "visualize_sharding",
    "watch",
]
