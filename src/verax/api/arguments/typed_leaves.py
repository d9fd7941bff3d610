"""Floor 5: types among the arguments of a call within a trace.

One idea: a trace needs only types, so a function may be given one where it looks at
nothing else; nothing reads the value that stands for it::

    jit(lambda x: f(ShapeDtypeStruct((2,), float32), x))(1.0)     # f reads s.shape
"""

from collections.abc import Sequence

import numpy as np

from verax.api.tracing.apply import ENGINE
from verax.api.tracing.structs import ShapeDtypeStruct, struct_avals
from verax.api.tracing.trace import leaf_avals
from verax.api.tracing.wrapping import Describe
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Jaxpr


def traced_avals(leaves: Sequence[object], describe: Describe) -> list[ShapedArray]:
    """The types of argument leaves, some of which may be types alone.

    Raises:
        TypeError: a leaf is neither; the message says which.
    """
    typed = any([isinstance(x, ShapeDtypeStruct) for x in leaves])
    return struct_avals(leaves, describe) if typed else leaf_avals(leaves, describe)


def without_types(
    leaves: Sequence[object], jaxpr: Jaxpr, name: str, describe: Describe
) -> Sequence[object]:
    """The operands of a call; zeros for types, of which no value may be read.

    Raises:
        TypeError: the function computes with an argument that is only a type.
    """
    structs = {i: x for i, x in enumerate(leaves) if isinstance(x, ShapeDtypeStruct)}
    if not structs:
        return leaves
    out = list(leaves)
    needed = ENGINE.dce(jaxpr, (True,) * len(jaxpr.outvars))[1]
    for i, struct in structs.items():
        if needed[len(jaxpr.invars) - len(leaves) + i]:
            raise TypeError(
                f"{describe()[i]} is {struct}, a type, but {name} computes "
                "with its value; pass an array"
            )
        out[i] = np.broadcast_to(np.zeros((), struct.dtype), struct.shape)
    return out
