"""Floor 6: the standard table under its engine, and programs run compiled.

One idea: the laws take an engine and a way to run, so this is all that ties them to
the library's own rows and to its backend::

    check_row(PRIMITIVES["sin"], ENGINE, laws=(*EVERY, COMPILED))
"""

from collections.abc import Sequence

from verax.backend.eager.interpreter import as_array
from verax.backend.programs.program import Program
from verax.ir.jaxpr import Jaxpr
from verax.ir.memos.memo import Recent
from verax.ops.core import CORE
from verax.rules.programs.derived import standard
from verax.rules.rows.row import NDArray
from verax.transforms.engine.engine import StandardEngine
from verax.verify.checking.compile_bounds import held
from verax.verify.laws import compiled
from verax.verify.laws.invariance import Runner

FEW = 64
"""Programs that are kept: one is tried with many values."""
ENGINE = StandardEngine(standard, CORE)


def runner(engine: StandardEngine) -> Runner:
    """A runner of compiled programs under the rules of `engine`; it stops in time."""
    programs = Recent[Jaxpr, Program](FEW)

    def run(jaxpr: Jaxpr, args: Sequence[NDArray]) -> Sequence[NDArray]:
        program = programs.find(jaxpr) or programs.add(jaxpr, held(engine, jaxpr))
        typed = [as_array(x, v.aval) for x, v in zip(args, jaxpr.invars, strict=True)]
        return [x.stored() for x in program.run(typed)]

    return run


COMPILED = compiled(runner(ENGINE))
