"""Values of running programs, where a NaN comes from, and why calls miss (floor 6).

This module only gives names, which are JAX's; the work is done in `verax.api`.

    >>> import verax
    >>> verax.debug.print("hello {}", 1)
    hello 1
    >>> verax.debug.find_nans(verax.numpy.log)(-1.0).primitive
    'log'
"""

from verax.api.explain.report import Explanation
from verax.api.host.debug_print import debug_callback as callback, debug_print as print
from verax.api.inspect.find_nans import find_infs, find_nans
from verax.transforms.nans.report import Finding, NonFinite

__all__ = [
    "Explanation",
    "Finding",
    "NonFinite",
    "callback",
    "find_infs",
    "find_nans",
    "print",
]
