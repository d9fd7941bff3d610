"""Floor 6: a block of code in which 64-bit numbers are kept.

One idea: derivatives are held to differences in double precision, whatever the
configuration of the process says::

    with double_precision():
        engine.jvp(jaxpr_on_float64, (True,))
"""

from contextlib import AbstractContextManager

from verax.ir.dtypes import NARROWED
from verax.ir.jaxpr import Jaxpr
from verax.rules.values.state import widths_of


def double_precision(enabled: bool = True) -> AbstractContextManager[None]:
    """Keep 64-bit constants as they are in this thread, within the block."""
    return widths_of((), enabled)


def is_double(jaxpr: Jaxpr) -> bool:
    """Whether a program takes or gives 64-bit numbers."""
    return any(aval.dtype in NARROWED for aval in (*jaxpr.in_avals, *jaxpr.out_avals))
