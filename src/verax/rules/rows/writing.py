"""Floor 1: the programs that rules write down, as jaxprs of functions of values.

One idea: a rule that needs a program says it as a function; no line of a user's is its
source, for the program is remembered and serves whoever asks next::

    jaxpr = program((f32, f32), lambda x, y: (add(x, y),))
"""

from collections.abc import Callable, Iterable, Sequence

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import UNKNOWN_SOURCE, Jaxpr
from verax.rules.rows.builder import Builder
from verax.rules.values.state import interpreting


def program(
    avals: Iterable[ShapedArray],
    body: Callable[..., Sequence[object]],
    purpose: str = "a rule",
) -> Jaxpr:
    """The jaxpr of `body` on inputs of these types; `purpose` names it in messages."""
    builder = Builder(purpose, source=UNKNOWN_SOURCE)
    inputs = [builder.input(aval) for aval in avals]
    with interpreting(builder):
        return builder.finish(body(*inputs))[0]
