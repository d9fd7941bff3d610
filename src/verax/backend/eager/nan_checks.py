"""Floor 4: results that are checked: of eager operations and of calls of programs.

One idea: checks are free when off, because they are an interpreter around the eager
one, and a function around the call of a program; on a hit, the search says where::

    checking(eager, nans=True, infs=False).bind(log_p, NO_PARAMS, (-1.0,))   # raises
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from attrs import frozen

from verax.backend.arrays.concrete import ConcreteArray
from verax.backend.eager.interpreter import EagerInterpreter, host_of
from verax.backend.eager.single_op import OPTIONS
from verax.backend.programs.placement import facts
from verax.backend.programs.program import compiled
from verax.backend.pytrees import flatten
from verax.ir.dtypes import is_inexact
from verax.ir.jaxpr import Jaxpr, Literal, Params, Primitive
from verax.ir.records import ReprMixin
from verax.ops.calls.callbacks import silenced
from verax.rules.rows.builder import Builder
from verax.rules.rows.row import Engine
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.memo import pure, recall
from verax.rules.values.state import Interpreter, interpreting, user_source
from verax.transforms.engine.engine import as_typed
from verax.transforms.nans import (
    NONE,
    Finding,
    Kind,
    NonFinite,
    flag,
    is_bad_value,
    is_reachable,
    place_of,
    probe,
    repeatable,
)

# -----------------------------------------------------------------------------
# Running a flagged program, compiled or interpreted, and what it found.
#
# One run finds the equation, a second one of the part before it gives its
# operands::
#
#     outs, finding = search(engine, jaxpr, args, Kind.NAN, Run("f", names))


@frozen(eq=False, repr=False)
class Search(ReprMixin):
    """The search of a program: names for the report, and what runs it."""

    name: str
    describe: Callable[[], Sequence[str]]
    compiled: bool = True


def search(
    engine: Engine, jaxpr: Jaxpr, args: Sequence[object], kind: Kind, how: Search
) -> tuple[list[np.ndarray], Finding | None]:
    """The outputs of a program, and where the first NaN or infinity was made.

    The finding is None if there is none, nor any in the inputs.
    """
    values = [
        as_typed(host_of(x), v.aval) for x, v in zip(args, jaxpr.invars, strict=True)
    ]
    outs = run(engine, flag(jaxpr, kind), values, how)
    count = len(jaxpr.outvars)
    site, *steps = map(int, outs[count:])
    bad = [
        text
        for text, x, v in zip(how.describe(), values, jaxpr.invars, strict=False)
        if is_inexact(v.aval.dtype) and is_bad_value(x, kind)
    ]
    if site == NONE:
        out = None
        if bad:
            name = name_of(kind, values)
            out = Finding(how.name, name, None, None, None, tuple(bad))
        return outs[:count], out
    place = place_of(jaxpr, site, steps)
    operands = results = None
    if repeatable(jaxpr) and is_reachable(place):
        both = run(engine, probe(engine, jaxpr, place), values, how)
        given = len(place.eqn.invars)
        operands, results = tuple(both[:given]), tuple(both[given:])
    finding = Finding(
        how.name,
        name_of(kind, results or ()),
        place,
        operands,
        results,
        tuple(bad),
        sharded=bool(recall(facts, jaxpr, jaxpr)[0]),
    )
    return outs[:count], finding


def run(
    engine: Engine, jaxpr: Jaxpr, values: Sequence[np.ndarray], how: Search
) -> list[np.ndarray]:
    """The outputs of a program, as NumPy arrays."""
    if not how.compiled:
        return list(map(np.asarray, engine.evaluate(jaxpr, values)))
    outs = compiled(engine, jaxpr, how.name, OPTIONS).run(values)
    return [host_of(x) for x in outs]


def name_of(kind: Kind, values: Sequence[np.ndarray]) -> str:
    """The kind that the values have, of the two that were looked for."""
    if kind is not Kind.EITHER:
        return str(kind.value)
    inexact = [x for x in values if x.dtype.kind not in "biu"]
    nan = any(is_bad_value(x, Kind.NAN) for x in inexact)
    return str((Kind.NAN if nan or not inexact else Kind.INFINITY).value)


type Kinds = tuple[Kind, ...]


def kinds_of(nans: bool, infs: bool) -> Kinds:
    """The kinds of values to look for."""
    return (Kind.NAN,) * nans + (Kind.INFINITY,) * infs


def holds(x: object, kind: Kind) -> bool:
    """Whether an array holds a NaN, or an infinity."""
    if not isinstance(x, ConcreteArray) or not is_inexact(x.aval.dtype):
        return False
    return is_bad_value(host_of(x), kind)


@frozen(eq=False, repr=False)
class CheckingInterpreter(ReprMixin):
    """The eager interpreter, which raises where a result is NaN or infinite.

    An infinity among the operands may be intended; a NaN never is.
    """

    immediate: ClassVar[bool] = True
    inner: EagerInterpreter
    kinds: Kinds

    def bind(
        self, primitive: Primitive, params: Params, args: Sequence[object]
    ) -> tuple[Array, ...]:
        """The results, as arrays.

        Raises:
            NonFinite: a result is NaN or, if those are looked for, infinite.
        """
        outs = self.inner.bind(primitive, params, args)
        for kind in self.kinds:
            if any(holds(x, kind) for x in outs):
                jaxpr = alone(primitive, params, args)
                name = str(getattr(params, "name", primitive.name))
                row = self.inner.engine.rules[primitive]
                how = Search(name, lambda: operand_names(len(args)), row.compiled)
                blame(self.inner.engine, jaxpr, args, kind, how)
        return outs


@pure(64)
def checking(eager: EagerInterpreter, nans: bool, infs: bool) -> Interpreter:
    """An eager interpreter with these checks; `eager` itself without any."""
    return CheckingInterpreter(eager, kinds_of(nans, infs)) if nans or infs else eager


def operand_names(count: int) -> list[str]:
    """The names of the operands of an operation in reports."""
    return [f"operand {i}" for i in range(count)]


def alone(primitive: Primitive, params: Params, args: Sequence[object]) -> Jaxpr:
    """The program of one operation, with the line of the user's that asked for it."""
    builder = Builder("debug_nans", source=user_source(3))
    inputs = [builder.input(aval_of(x)) for x in args]
    with interpreting(builder):
        outs = builder.bind(primitive, params, inputs)
    return builder.finish(outs)[0]


def checked_call(
    engine: Engine,
    jaxpr: Jaxpr | None,
    how: Search,
    donated: Sequence[bool],
    kinds: Kinds,
    run: Callable[[Sequence[object]], object],
) -> Callable[[Sequence[object]], object]:
    """A call that looks at its outputs, and searches the program on a hit.

    Donated arguments are copied first: the program uses them up. Without `jaxpr` there
    is only machine code, in which nothing can be searched.
    """

    def call(leaves: Sequence[object]) -> Any:
        given: list[object] = list(leaves)
        for i, donate in enumerate(donated):
            if donate:
                given[i] = np.array(host_of(given[i]))
        out = run(leaves)
        for kind in kinds:
            if any(holds(x, kind) for x in flatten(out)[0]):
                blame(engine, jaxpr, given, kind, how)
        return out

    return call


def blame(
    engine: Engine, jaxpr: Jaxpr | None, args: Sequence[object], kind: Kind, how: Search
) -> None:
    """Raise NonFinite with what a search of the program finds.

    A NaN from outside is an error; infinities from outside, or from masks in the
    program, are intended.
    """
    if jaxpr is None:
        raise NonFinite(
            f"{kind.value} in an output of {how.name}, which was loaded as machine "
            "code; to see where it was made, run it in the process that compiled it"
        )
    if not repeatable(jaxpr):
        raise NonFinite(
            f"{kind.value} in an output of {how.name}, which calls io_callback, so "
            "it was not run again to see where; verax.debug.find_nans runs a program "
            "once and says where"
        )
    finding: Finding | None = search(engine, silenced(jaxpr), args, kind, how)[1]
    if finding is None:
        if kind is Kind.NAN:
            literal = any([isinstance(x, Literal) for x in jaxpr.outvars])
            why = (
                "it returns it as a literal" if literal else "it ran again without NaN"
            )
            raise NonFinite(
                f"invalid value (nan) encountered in an output of {how.name}, but the "
                f"de-optimized function did not produce one: {why}"
            )
        return
    if finding.eqn is not None or kind is Kind.NAN:
        raise NonFinite(str(finding), finding)
