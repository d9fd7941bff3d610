"""Floor 3: transformations, each a pure function from jaxprs to jaxprs.

The modules take an engine, which holds the rule table, so a research table goes
wherever the standard one goes; the functions here take what `make_jaxpr` returns and
use the standard table by default::

    program = verax.make_jaxpr(f)(x)
    print(verax.transforms.dce(verax.transforms.fold(program)))
"""

from verax.ir.facade import facade

__getattr__, __dir__ = facade(
    __name__,
    {
        ".engine.engine": "STANDARD StandardEngine",
        ".pipeline": "COMPILE Pass",
        ".public": (
            "check cse dce evaluate fold hoist inline jvp outline transpose vmap"
        ),
    },
)
