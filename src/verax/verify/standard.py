"""Floor 6: the standard table under its engine, and programs run compiled.

One idea: the laws take an engine and a way to run, so this is all that ties them to
the library's own rows and to its backend::

    check_row(PRIMITIVES["sin"], ENGINE, laws=(*EVERY, COMPILED))
"""

from collections.abc import Sequence

from verax.backend.eager import as_array
from verax.backend.executable import CompileOptions
from verax.backend.program import compiled as compiled_program
from verax.ir.jaxpr import Jaxpr
from verax.ops.core import CORE
from verax.ops.standard import standard
from verax.rules.row import NDArray
from verax.transforms.engine import StandardEngine
from verax.verify.laws import compiled
from verax.verify.meaning import Runner

ENGINE = StandardEngine(standard, CORE)


def runner(engine: StandardEngine) -> Runner:
    """What runs programs compiled, under the rules of `engine`."""

    def run(jaxpr: Jaxpr, args: Sequence[NDArray]) -> Sequence[NDArray]:
        program = compiled_program(engine, jaxpr, "law", CompileOptions())
        typed = [as_array(x, v.aval) for x, v in zip(args, jaxpr.invars, strict=True)]
        return [x.stored() for x in program.run(typed)]

    return run


COMPILED = compiled(runner(ENGINE))
