"""Floor 1: columns that a row leaves out and that follow from those it has.

One idea: what can be derived is derived in one place, when a table looks a row up, and
`derived_columns` says by what means, so a fallback is never a secret::

    derived_columns(row)        # {"batch": "one batch element after the other"}
    rules.strict()              # the same table, in which nothing is derived

A row that says its `composition`, a function of other primitives, gets evaluation,
derivatives, batching, transposition and lowering from that program. A row
without one is applied to one batch element after the other if it lacks `batch`, and
evaluated by the host, in the middle of the compiled program, if it lacks `lower`. What
a row writes itself is used as it is.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from attrs import evolve, frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import stored_dtype
from verax.ir.jaxpr import Jaxpr, Params
from verax.ir.records import ReprMixin
from verax.rules.rows.builder import program, write_here
from verax.rules.rows.emitter import HOSTING, Emitter, Operand
from verax.rules.rows.infer import (
    arrays_of,
    cotangents,
    filled,
    infer,
    knowns,
    live,
    merged,
    nonzeros,
    unknowns,
)
from verax.rules.rows.row import (
    Axis,
    Engine,
    Known,
    Linear,
    MissingRule,
    NDArray,
    Row,
    RuleTable,
    SomeRow,
    Tangent,
    Zero,
)
from verax.rules.values.array import Array
from verax.rules.values.memo import asked, pure
from verax.rules.values.state import widths_of

# -----------------------------------------------------------------------------
# The common part of rows that mean the jaxpr which they hold.
#
# The rule of a call is the call of the rewritten jaxpr, whatever the call is::
#
#     jvp=lambda engine, p, xs, ts: push(engine, p.jaxpr, rebinding(p), xs, ts)


type Rebind = Callable[..., Sequence[Array]]
"""Binds a jaxpr to operands, as an equation of the same kind."""


def push(
    engine: Engine,
    jaxpr: Jaxpr,
    bind: Rebind,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """The jvp of a call."""
    pushed, mask = engine.jvp(jaxpr, nonzeros(tangents))
    outs = bind(pushed, *primals, *live(tangents))
    count = len(mask)
    return outs[:count], filled(mask, outs[count:], jaxpr.out_avals)


def pull(
    engine: Engine,
    jaxpr: Jaxpr,
    bind: Rebind,
    cts: Sequence[Tangent],
    args: Sequence[Known],
) -> Sequence[Tangent | None]:
    """The transpose of a call that is linear in the operands which are not known."""
    linear = unknowns(args)
    nonzero = nonzeros(cts)
    transposed, mask = engine.transpose(jaxpr, linear, nonzero)
    given = arrays_of(engine, nonzero, cts, cotangents(jaxpr.out_avals))
    out = iter(bind(transposed, *knowns(args), *given))
    flags = iter(mask)
    return [
        None
        if not isinstance(x, Linear)
        else next(out)
        if next(flags)
        else Zero(x.aval.cotangent())
        for x in args
    ]


def spread_batch(
    engine: Engine,
    jaxpr: Jaxpr,
    bind: Rebind,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """The batch rule of a call."""
    batched, out_axes = engine.batch(jaxpr, size, tuple(axes))
    return bind(batched, *args), out_axes


# -----------------------------------------------------------------------------
# Columns that a row leaves out and that follow from those it has.


PROGRAMS = 1 << 12
COMPOSED: Mapping[str, str] = MappingProxyType(
    {
        "evaluate": "its composition, evaluated",
        "jvp": "its composition, differentiated",
        "transpose": "its composition, transposed",
        "batch": "its composition, batched",
        "lower": "its composition, written in place",
    }
)
IN_TURN = "one batch element after another, by a scan"
BY_HOST = "its evaluation in NumPy, called from the compiled program"


def derived_columns(row: SomeRow) -> Mapping[str, str]:
    """The columns that `row` does not have and that follow from others, and how.

    >>> from verax.ops.elementwise.trig import sin_p
    >>> dict(derived_columns(sin_p))
    {}
    >>> dict(derived_columns(evolve(sin_p, batch=None)))
    {'batch': 'one batch element after another, by a scan'}
    """
    if row.composition is not None:
        return {
            column: means
            for column, means in COMPOSED.items()
            if getattr(row, column) is None
        }
    out = {}
    if row.batch is None and (row.evaluate is not None or row.lowers):
        out["batch"] = IN_TURN
    if not row.lowers and row.evaluate is not None:
        out["lower"] = BY_HOST
    return out


@pure(PROGRAMS)
def completed(row: SomeRow) -> SomeRow:
    """`row` with the columns that follow from those it has, if there are any."""
    columns = derived_columns(row)
    if not columns:
        return row
    rules = by_composition(row) if row.composition is not None else by_itself(row)
    changes: dict[str, Any] = {column: rules[column] for column in columns}
    if row.composition is None and "lower" in changes:
        changes["lower_on"] = dict.fromkeys(HOSTING, changes.pop("lower"))
    return evolve(row, **changes)


def by_itself(row: SomeRow) -> Mapping[str, Callable[..., object]]:
    """A loop over the batch, and a call of the host: what needs no other column."""

    def batch(
        engine: Engine, p: Params, size: int, xs: Sequence[Array], axes: Sequence[Axis]
    ) -> tuple[Sequence[Array], Sequence[Axis]]:
        return one_by_one(engine, row, p, size, xs, axes)

    def lower(
        e: Emitter, p: Params, xs: Sequence[Operand], outs: Sequence[ShapedArray]
    ) -> Sequence[Operand]:
        on_host = OnHost(row, p, tuple(outs))
        return e.callback(on_host, xs, outs, effect=False, ordered=False)

    return {"batch": batch, "lower": lower}


class NoEngine:
    """The engine of an evaluate rule inside a program: nothing to recurse with."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, expected: str) -> Any:
        raise MissingRule(
            f"the primitive {self.name} has no lower rule, and its evaluate rule uses "
            f"the engine ({expected}), which is not available on the host inside a "
            "compiled program; give its row lower=... or composition=..."
        )


@frozen(repr=False)
class OnHost(ReprMixin):
    """The evaluation of a row with fixed params, as compiled programs call it."""

    row: SomeRow
    params: Params
    results: tuple[ShapedArray, ...]

    def blanks(self) -> list[NDArray]:
        """See `HostCall.blanks`."""
        return [np.zeros(a.shape, stored_dtype(a.dtype)) for a in self.results]

    def __call__(self, *arrays: NDArray) -> list[NDArray]:
        assert self.row.evaluate is not None
        engine = NoEngine(self.row.name)
        with np.errstate(all="ignore"):
            values = self.row.evaluate(engine, self.params, arrays)
        return [
            np.asarray(x).astype(stored_dtype(aval.dtype), copy=False)
            for x, aval in zip(values, self.results, strict=True)
        ]


def one_by_one(
    engine: Engine,
    row: SomeRow,
    params: Params,
    size: int,
    operands: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """The results of `row` for one batch element after the other, batched in front."""
    core = engine.core
    fixed = [x for x, axis in zip(operands, axes, strict=True) if axis is None]
    stacks = [
        core.transpose(x, (axis, *(i for i in range(x.ndim) if i != axis)))
        for x, axis in zip(operands, axes, strict=True)
        if axis is not None
    ]
    rows = [x.aval.element() for x in stacks]
    whole = [axis is None for axis in axes]

    def body(*xs: Array) -> Sequence[Array]:
        return row.bind(params, *merged(whole, xs[: len(fixed)], xs[len(fixed) :]))

    jaxpr = program([*[x.aval for x in fixed], *rows], body, "a sequential map")
    outs = core.map_elements(jaxpr, size, fixed, stacks)
    return outs, (0,) * len(outs)


def by_composition(row: SomeRow) -> Mapping[str, Callable[..., Any]]:
    """Every column of a row that means a program of other rows."""

    def evaluate(engine: Engine, p: Params, xs: Sequence[NDArray]) -> list[NDArray]:
        avals = tuple([ShapedArray(x.shape, x.dtype) for x in xs])
        return engine.evaluate(asked(program_of, p, row, p, avals), xs)

    def jvp(
        engine: Engine, p: Params, xs: Sequence[Array], ts: Sequence[Tangent]
    ) -> tuple[Sequence[Array], Sequence[Tangent]]:
        return push(engine, asked(program_of, p, row, p, types(xs)), write_here, xs, ts)

    def transpose(
        engine: Engine, p: Params, cts: Sequence[Tangent], xs: Sequence[Known]
    ) -> Sequence[Tangent | None]:
        jaxpr = asked(program_of, p, row, p, types(xs))
        return pull(engine, jaxpr, write_here, cts, xs)

    def batch(
        engine: Engine, p: Params, size: int, xs: Sequence[Array], axes: Sequence[Axis]
    ) -> tuple[Sequence[Array], Sequence[Axis]]:
        each = [element(x.aval, axis) for x, axis in zip(xs, axes, strict=True)]
        jaxpr = asked(program_of, p, row, p, tuple(each))
        outs, out_axes = spread_batch(engine, jaxpr, write_here, size, xs, axes)
        due = asked(infer, p, row, p, *each)
        # Weakness is what the type rule says, as where the row itself is bound.
        typed = [
            x
            if x.weak_type == a.weak_type
            else engine.core.convert(x, a.dtype, a.weak_type)
            for x, a in zip(outs, due, strict=True)
        ]
        return typed, out_axes

    def lower(
        e: Emitter, p: Params, xs: Sequence[Operand], outs: Sequence[ShapedArray]
    ) -> Sequence[Operand]:
        return e.inline(asked(program_of, p, row, p, tuple([x.aval for x in xs])), xs)

    return {
        "evaluate": evaluate,
        "jvp": jvp,
        "transpose": transpose,
        "batch": batch,
        "lower": lower,
    }


def types(xs: Sequence[Known]) -> tuple[ShapedArray, ...]:
    return tuple([x.aval for x in xs])


def element(aval: ShapedArray, axis: Axis) -> ShapedArray:
    """The type of one batch element of a batched operand."""
    if axis is None:
        return aval
    return aval.element(axis)


@pure(PROGRAMS)
def program_of(row: SomeRow, params: Params, avals: tuple[ShapedArray, ...]) -> Jaxpr:
    """The program that `row.composition` writes for operands of these types.

    Raises:
        TypeError: it has other types than the type rule of the row says.
    """
    jaxpr = composed_program(row, params, avals)
    types = asked(infer, params, row, params, *avals)
    due = [aval.strong() for aval in types]
    result = [aval.strong() for aval in jaxpr.out_avals]
    if due != result:
        raise TypeError(
            f"the composition of {row.name} returns {result}, but its type rule says "
            f"{due}; make them agree"
        )
    return jaxpr


def composed_program(
    row: SomeRow, params: Params, avals: Sequence[ShapedArray]
) -> Jaxpr:
    """`program_of`, without a look at the type rule.

    It is traced under the widths of its operands, for its types and its program are
    remembered: what x64 was when it was first asked for must not decide.
    """
    composition = row.composition
    assert composition is not None

    def body(*xs: Array) -> Sequence[object]:
        out = composition(params, *xs)
        return (out,) if isinstance(out, Array) else tuple(out)

    with widths_of([aval.dtype for aval in avals]):
        return program(avals, body, f"the composition of {row.name}")


def composite[P: Params](
    name: str,
    params: type[P],
    composition: Callable[..., object],
    **columns: Any,
) -> Row[P]:
    """A row that means a function of other primitives, with all columns derived.

    `composition(params, *operands)` returns an array or a sequence of arrays; its types
    are the type rule. `columns` are those that the row writes itself (`jvp=...` where
    there is better mathematics), and `draw` and `domains` for the tests.

    >>> from verax.ir.jaxpr import NO_PARAMS, NoParams
    >>> from verax.lax import logistic, mul
    >>> swish_p = composite("swish", NoParams, lambda p, x: mul(x, logistic(x)))
    >>> float(swish_p.call(NO_PARAMS, 0.0))
    0.0
    >>> sorted(derived_columns(swish_p))
    ['batch', 'evaluate', 'jvp', 'lower', 'transpose']
    """

    def typing(p: P, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
        return composed_program(row, p, avals).out_avals

    row: Row[P] = Row(
        name,
        params,
        **{"typing": typing, "composition": composition, **columns},
    )
    return row


standard = RuleTable(complete=completed)
"""The table that takes every primitive as its row says: a table is what is changed
about the rows, and a row travels with its primitive, so this one is empty."""


# -----------------------------------------------------------------------------
# Loops in lowerings: the state, when to go on, and one step.
#
# Both parts are written as mathematics on arrays, like the rules, and become
# the regions of one `stablehlo.while`::
#
#     repeat(e, state, lambda i, x: lt(i, 10), lambda i, x: (add(i, 1), mul(x, 2.0)))


def repeat(
    e: Emitter,
    state: Sequence[Operand],
    proceed: Callable[..., Array],
    step: Callable[..., Sequence[Array]],
) -> tuple[Operand, ...]:
    """The state after as many steps as `proceed(*state)` asks for."""
    types = [x.aval for x in state]
    test = written(state, lambda *xs: (proceed(*xs),))
    body = written(state, step)
    return e.op(
        "stablehlo.while",
        state,
        types,
        (
            (types, lambda xs: e.inline(test, xs)),
            (types, lambda xs: e.inline(body, xs)),
        ),
    )


def written(
    operands: Sequence[Operand], function: Callable[..., Sequence[Array]]
) -> Jaxpr:
    """The jaxpr of a function on operands of these types."""
    return program([x.aval for x in operands], function, "a lower rule")


def lowered(
    e: Emitter, operands: Sequence[Operand], function: Callable[..., Sequence[Array]]
) -> tuple[Operand, ...]:
    """Lowers a function of arrays, here."""
    return e.inline(written(operands, function), operands)
