"""`verax.experimental.jet`: Taylor series through any program.

The derivatives up to order d along a curve cost about d^2 times the function; nested
derivatives cost 2^d times::

    y, (first, second) = jet(sin, (x,), ((1.0, 0.0),))
"""

from verax.experimental.jet.transform import (
    DERIVED as DERIVED,
    TAYLOR as TAYLOR,
    ZeroSeries as ZeroSeries,
    ZeroTerm as ZeroTerm,
    fact as fact,
    jet as jet,
    zero_series as zero_series,
    zero_term as zero_term,
)
