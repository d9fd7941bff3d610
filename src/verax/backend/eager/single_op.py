"""Floor 4: one operation as a compiled program.

One idea: what NumPy does badly runs as a program of one equation, remembered by what
the equation is. The compiler is loaded with this file, when the first eager operation
needs it::

    alone(engine, sort_p, params, avals, forked=False)(args)
"""

from collections.abc import Sequence

from verax.backend.arrays.concrete import ConcreteArray
from verax.backend.calls import LEAF, caller
from verax.backend.programs.placement import placement_of
from verax.backend.programs.prepared import PreparedCall
from verax.backend.programs.program import compiled
from verax.backend.pytrees import flatten
from verax.backend.xla.compile_options import CompileOptions
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Jaxpr, Params
from verax.rules.rows.builder import Builder
from verax.rules.rows.row import Engine, SomeRow
from verax.rules.values.memo import asked, pure

OPTIONS = CompileOptions()


@pure(1 << 12)
def single(row: SomeRow, params: Params, avals: tuple[ShapedArray, ...]) -> Jaxpr:
    """The program of one equation."""
    builder = Builder("eager")
    args = [builder.input(aval) for aval in avals]
    return builder.finish(builder.bind(row, params, args))[0]


@pure(1 << 12)
def alone(
    engine: Engine,
    row: SomeRow,
    params: Params,
    avals: tuple[ShapedArray, ...],
    forked: bool,
) -> PreparedCall:
    """One operation as a compiled program on the default device."""
    return compiled(
        engine, asked(single, params, row, params, avals), row.name, OPTIONS
    ).run


def launched(
    engine: Engine,
    row: SomeRow,
    params: Params,
    avals: tuple[ShapedArray, ...],
    kinds: tuple[object, ...],
) -> PreparedCall:
    """`alone` for operands of known kinds, as a cached call of jit has them.

    It gives the result, or a tuple of several.
    """
    program = compiled(
        engine, asked(single, params, row, params, avals), row.name, OPTIONS
    )
    count = len(program.out_avals)
    return caller(program, LEAF if count == 1 else flatten((0,) * count)[1], kinds)


def run_alone(
    engine: Engine,
    row: SomeRow,
    params: Params,
    avals: tuple[ShapedArray, ...],
    args: Sequence[object],
) -> list[ConcreteArray]:
    """One operation as a compiled program."""
    jaxpr = asked(single, params, row, params, avals)
    placement = placement_of(jaxpr, args)
    program = compiled(engine, jaxpr, row.name, OPTIONS, placement=placement)
    outs: list[ConcreteArray] = program.run(args)
    return outs
