"""Floor 0: the jaxpr language as pure immutable data.

Nothing here knows a rule, an interpreter or a device. Everything above reads and
rewrites these values::

    aval = ShapedArray((8,), np.dtype("float32"))
    x = Var(0, aval)
    Jaxpr((), (x,), pvector(), (x,))

`check`, `diff` and `parser` are imported by those who need them, which keeps the
import of the library short.
"""

from verax.ir.avals import ShapedArray as ShapedArray
from verax.ir.consts import (
    close as close,
    hoist as hoist,
    used_consts as used_consts,
)
from verax.ir.effects import Effect as Effect
from verax.ir.jaxpr import (
    ClosedJaxpr as ClosedJaxpr,
    Eqn as Eqn,
    Jaxpr as Jaxpr,
    Literal as Literal,
    Params as Params,
    Primitive as Primitive,
    Var as Var,
)
from verax.ir.printer import print_jaxpr as print_jaxpr
from verax.ir.walk import (
    count_eqns as count_eqns,
    map_eqns as map_eqns,
    map_subjaxprs as map_subjaxprs,
    substitute as substitute,
    walk as walk,
)
