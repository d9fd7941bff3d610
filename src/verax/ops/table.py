"""Floor 2: every row of the library, by name.

One idea: the list is one expression that joins the files; nothing registers itself. Who
has a primitive has its row, so that only what reads names needs the whole list, and it
is loaded when it is first read::

    PRIMITIVES["sin"]
"""

from collections.abc import Mapping
from types import MappingProxyType

from verax.ops import fft, references
from verax.ops.calls import (
    backward_log,
    call,
    call_exported,
    callbacks,
    check,
    checkpoint,
    inspect_sharding,
    metadata,
)
from verax.ops.contraction import dot
from verax.ops.control import any_lane, checkpointed_loops, cond, scan, while_
from verax.ops.conv import primitive
from verax.ops.custom import composite, jvp, partitioned, solve, vjp, vmap
from verax.ops.elementwise import (
    arith,
    bits,
    compare,
    convert,
    exp_log,
    remainder,
    rounding,
    select,
    trig,
)
from verax.ops.indexing import dynamic_slice, gather, scatter
from verax.ops.linalg import eigen, forms, lu, qr, svd, triangular
from verax.ops.parallel import collectives, parts, sharding_constraint, stacks
from verax.ops.random import generators, keys, threefry, threefry4
from verax.ops.reductions import cumulative, recurrence, reduce
from verax.ops.sorting import sort
from verax.ops.special import bessel, erf_gamma, incomplete
from verax.ops.structure import (
    casts,
    create,
    joining,
    layout_constraint,
    reshard,
    shape,
    slicing,
)
from verax.ops.symbols import expression
from verax.ops.windows import general_reduce, reduce_window, select_and_scatter
from verax.rules.rows.row import Rows, SomeRow, names

ROWS: Rows = (
    *arith.ROWS,
    *remainder.ROWS,
    *exp_log.ROWS,
    *trig.ROWS,
    *rounding.ROWS,
    *compare.ROWS,
    *bits.ROWS,
    *erf_gamma.ROWS,
    *incomplete.ROWS,
    *bessel.ROWS,
    *select.ROWS,
    *convert.ROWS,
    *create.ROWS,
    *expression.ROWS,
    *shape.ROWS,
    *slicing.ROWS,
    *joining.ROWS,
    *casts.ROWS,
    *reshard.ROWS,
    *layout_constraint.ROWS,
    *dynamic_slice.ROWS,
    *gather.ROWS,
    *scatter.ROWS,
    *reduce.ROWS,
    *cumulative.ROWS,
    *recurrence.ROWS,
    *sort.ROWS,
    *dot.ROWS,
    *primitive.ROWS,
    *general_reduce.ROWS,
    *reduce_window.ROWS,
    *select_and_scatter.ROWS,
    *fft.ROWS,
    *triangular.ROWS,
    *lu.ROWS,
    *qr.ROWS,
    *eigen.ROWS,
    *svd.ROWS,
    *forms.ROWS,
    *threefry.ROWS,
    *threefry4.ROWS,
    *generators.ROWS,
    *keys.ROWS,
    *call.ROWS,
    *call_exported.ROWS,
    *callbacks.ROWS,
    *backward_log.ROWS,
    *check.ROWS,
    *inspect_sharding.ROWS,
    *sharding_constraint.ROWS,
    *stacks.ROWS,
    *partitioned.ROWS,
    *collectives.ROWS,
    *parts.ROWS,
    *checkpoint.ROWS,
    *composite.ROWS,
    *metadata.ROWS,
    *checkpointed_loops.ROWS,
    *any_lane.ROWS,
    *jvp.ROWS,
    *solve.ROWS,
    *vjp.ROWS,
    *vmap.ROWS,
    *cond.ROWS,
    *scan.ROWS,
    *while_.ROWS,
    *references.ROWS,
)
PRIMITIVES: Mapping[str, SomeRow] = MappingProxyType(names(ROWS))
