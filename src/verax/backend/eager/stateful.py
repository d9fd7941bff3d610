"""Floor 4: programs that touch references with values, run at once.

The program is discharged, compiled with the memory of what it writes donated, and run
on what the references hold; they hold afterwards what comes out::

    bind_stateful(engine, jit_p, params, (ref, x))
"""

from collections.abc import Sequence

from verax.backend.eager.single_op import OPTIONS
from verax.backend.placement.sharding import Sharding
from verax.backend.programs.placement import place_of, placement_of
from verax.backend.programs.program import compiled
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Jaxpr, Params, Primitive
from verax.ops.calls.call import CallParams
from verax.rules.rows.builder import Builder
from verax.rules.rows.leaks import leaked
from verax.rules.rows.references import (
    BoundRef,
    ConcreteRef,
    TracedRef,
    freeze_p,
    get_ref_p,
    operand_aval,
    set_ref_p,
)
from verax.rules.rows.row import Engine, SomeRow
from verax.rules.values.array import Array
from verax.rules.values.memo import asked, pure
from verax.rules.values.state import user_source
from verax.transforms.references import Discharged, runnable


def bind_stateful(
    engine: Engine, primitive: Primitive, params: Params, args: Sequence[object]
) -> tuple[Array, ...]:
    """The results of an equation some of whose operands are references.

    Raises:
        LeakedTracer: a reference belongs to a trace that has ended.
        ValueError: a reference is passed twice, or was frozen.
    """
    for x in args:
        if isinstance(x, TracedRef):
            raise leaked(x)
        if isinstance(x, BoundRef):
            x.check_alive()
    first = args[0]
    if isinstance(first, ConcreteRef):
        if primitive is get_ref_p and not first.pinned:
            first.shared = True
            return (first.value,)
        if primitive is set_ref_p and not first.pinned:
            value = args[1]
            assert isinstance(value, Array), "what is written is an array"
            first.value, first.shared = value, True
            return ()
        if primitive is freeze_p:
            first.ended = user_source(1)
            return (first.value,)
    return run_stateful(engine, primitive, params, args)


def run_stateful(
    engine: Engine, primitive: Primitive, params: Params, args: Sequence[object]
) -> tuple[Array, ...]:
    """The results of a program, which reads and writes references."""
    order: dict[int, int] = {}
    places = tuple([order.setdefault(id(x), len(order)) for x in args])
    known = dict(zip(map(id, args), args, strict=True))
    given = [known[key] for key in order]
    result, name = pure_program(engine.rules[primitive], params, given, places)
    values = [x.value if isinstance(x, ConcreteRef) else x for x in given]
    for i in result.written:
        values[i] = reference_of(given[i]).unshared()
    program = compiled(
        engine,
        result.jaxpr,
        name,
        OPTIONS,
        keep_unused=True,  # what is overwritten unread lends its memory, too
        donated=tuple([i in result.written for i in range(len(values))]),
        placement=placement_of(result.jaxpr, values, outs=places_of(result, values)),
    )
    outs = list(program.run(values))
    count = len(result.written)
    for i, value in zip(result.written, outs[:count], strict=True):
        written = reference_of(given[i])
        written.value, written.shared = value, False
    return tuple(outs[count:])


def reference_of(x: object) -> ConcreteRef:
    """An operand that a program writes: a reference that is in no trace."""
    assert isinstance(x, ConcreteRef)
    return x


def pure_program(
    row: SomeRow, params: Params, given: Sequence[object], places: tuple[int, ...]
) -> tuple[Discharged, str]:
    """The program of an equation whose operands are `given` at `places`; its name."""
    if isinstance(params, CallParams) and len(given) == len(places):
        return runnable(params.jaxpr), params.name
    avals = tuple(map(operand_aval, given))
    jaxpr = asked(on_places, params, row, params, avals, places)
    return runnable(jaxpr), row.name


@pure(1 << 12)
def on_places(
    row: SomeRow,
    params: Params,
    avals: tuple[ShapedArray, ...],
    places: tuple[int, ...],
) -> Jaxpr:
    """The program of one equation, whose operands are inputs at these places."""
    builder = Builder("eager")
    inputs = [builder.input(aval) for aval in avals]
    return builder.finish(builder.bind(row, params, [inputs[i] for i in places]))[0]


def places_of(
    discharged: Discharged, values: Sequence[object]
) -> tuple[Sharding | None, ...]:
    """The places of the outputs: what references hold stays where it was placed."""
    held = [values[i] for i in discharged.written]
    places = [place_of(x) for x in held]
    count = len(discharged.jaxpr.outvars) - len(places)
    return (*places, *[None] * count) if any(places) else ()
