"""Floor 2: the standard table: every row of the library, by name.

One idea: the table is one expression that joins the files; nothing registers itself::

    PRIMITIVES["sin"]
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from verax.ops import (
    arg,
    arith,
    bits,
    call,
    choose,
    compare,
    complex,
    convert,
    create,
    cumulative,
    dot,
    dynamic,
    entropy,
    explog,
    gather,
    joining,
    prng,
    reduce,
    rounding,
    scatter,
    shape,
    slicing,
    sort,
    special,
    threefry,
    trig,
)
from verax.rules.row import Row, RuleTable, names

ROWS: tuple[Row[Any], ...] = (
    *arith.ROWS,
    *explog.ROWS,
    *trig.ROWS,
    *rounding.ROWS,
    *compare.ROWS,
    *bits.ROWS,
    *complex.ROWS,
    *special.ROWS,
    *entropy.ROWS,
    *choose.ROWS,
    *convert.ROWS,
    *create.ROWS,
    *shape.ROWS,
    *slicing.ROWS,
    *joining.ROWS,
    *dynamic.ROWS,
    *gather.ROWS,
    *scatter.ROWS,
    *reduce.ROWS,
    *arg.ROWS,
    *cumulative.ROWS,
    *sort.ROWS,
    *dot.ROWS,
    *threefry.ROWS,
    *prng.ROWS,
    *call.ROWS,
)
PRIMITIVES: Mapping[str, Row[Any]] = MappingProxyType(names(ROWS))
standard = RuleTable()
