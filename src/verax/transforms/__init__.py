"""Floor 3: transformations, each a pure function from jaxprs to jaxprs.

The modules take an engine, which holds the rule table, so a research table goes
wherever the standard one goes; the functions here take what `make_jaxpr` returns and
use the standard table by default::

    program = verax.make_jaxpr(f)(x)
    print(verax.transforms.dce(verax.transforms.fold(program)))
"""

from verax.transforms.engine.engine import StandardEngine
from verax.transforms.engine.standard import STANDARD
from verax.transforms.public import (
    check,
    cse,
    dce,
    evaluate,
    fold,
    hoist,
    inline,
    jvp,
    outline,
    transpose,
    vmap,
)

__all__ = [
    "STANDARD",
    "StandardEngine",
    "check",
    "cse",
    "dce",
    "evaluate",
    "fold",
    "hoist",
    "inline",
    "jvp",
    "outline",
    "transpose",
    "vmap",
]
