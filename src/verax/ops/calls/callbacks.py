"""Floor 2: callbacks: equations that call a function of the host.

One idea: an equation over batch elements (what `vmap` makes of one) means one call for
each batch element, in their order, so a batch costs one visit to the host and no effect
is lost, doubled or reordered; only pure callbacks may be asked to take the whole
batch. On the parts of a mesh each device calls the function for its own part::

    b:f32[8] = pure_callback[callback=f results=(f32[8],) ...] a
    debug_callback[callback=print effect=Effect(name=debug, ordered=False) ...] a
"""

from collections.abc import Sequence

import numpy as np
from attrs import evolve, field, frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import int32, stored_dtype
from verax.ir.effects import DEBUG, NO_EFFECTS, SHOWN, Effect
from verax.ir.jaxpr import Eqn, Jaxpr, Params
from verax.ir.meshes import Layout, MeshAxes, Split, layouts_text, manual_text
from verax.ir.records import QUIET, ReprMixin
from verax.ir.walk import map_eqns, map_jaxprs, map_subjaxprs, walk
from verax.ops.calls.call import dropping
from verax.ops.structure.shape import at_front, broadcast, broadcast_in_dim, move_axis
from verax.rules.programs.host import HostFunction, called
from verax.rules.rows.emitter import HOSTING, TOKEN, Emitter, Operand
from verax.rules.rows.row import (
    Axis,
    Engine,
    ForeignDerivative,
    JvpRule,
    Known,
    MissingRule,
    NDArray,
    Row,
    Rows,
    Tangent,
    Traits,
    TransposeRule,
    Zero,
    no_flops,
    unknown_flops,
)
from verax.rules.rows.type_shardings import whole_results
from verax.rules.values.array import Array

LANE_BY_LANE = ("sequential", "sequential_unrolled")
VECTORIZED = "legacy_vectorized"
"""The whole batch in front of the operands that have one; others are as they were."""
WHOLE_BATCH = ("expand_dims", "broadcast_all", VECTORIZED)
METHODS = (*LANE_BY_LANE, *WHOLE_BATCH)


@frozen(eq=False, repr=False)
class CallbackParams(Params):
    """The function, the types of the results of one call, and over what it runs.

    `lanes` are the sizes of the leading dimensions over which it is called one by one;
    the operands that `mapped` marks, and all results, begin with them. `vmap_method`
    says what becomes of one more such dimension.

    With a `mesh` each of its devices calls the function for its own part: `axes` has
    for each of `lanes` the axis of the mesh along which it runs, or None. What is
    `partitioned` is called by each device of a program, with what it has of the
    operands.
    """

    callback: HostFunction
    results: tuple[ShapedArray, ...]
    effect: Effect | None
    vmap_method: str | None
    lanes: Shape
    mapped: tuple[bool, ...]
    mesh: MeshAxes | None = field(default=None, metadata=QUIET)
    axes: tuple[str | None, ...] = field(default=(), metadata=QUIET)
    partitioned: bool = field(default=False, metadata=QUIET)

    @property
    def effects(self) -> frozenset[Effect]:
        return NO_EFFECTS if self.effect is None else frozenset((self.effect,))


def typing_callback(
    p: CallbackParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    for aval, flag in zip(avals, p.mapped, strict=True):
        if flag and aval.shape[: len(p.lanes)] != p.lanes:
            raise TypeError(
                f"a callback over a batch of shape {p.lanes} takes operands with "
                f"these leading dimensions, not {aval}"
            )
    return [a.with_shape((*p.lanes, *a.shape)) for a in p.results]


def on_host(p: CallbackParams, arrays: Sequence[NDArray]) -> list[NDArray]:
    """The results: one call, or one for each batch element in order.

    Raises:
        CallbackError: a call raised an exception or returned something else.
    """
    if not p.lanes:
        return called(p.callback, p.results, arrays)
    outs = [np.zeros((*p.lanes, *a.shape), stored_dtype(a.dtype)) for a in p.results]
    for lane in np.ndindex(*p.lanes):
        args = [
            np.asarray(x[lane]) if flag else x
            for x, flag in zip(arrays, p.mapped, strict=True)
        ]
        for out, value in zip(outs, called(p.callback, p.results, args), strict=True):
            out[lane] = value
    return outs


@frozen(cache_hash=True, repr=False)
class OnHost(ReprMixin):
    """The host's function of a compiled program: `on_host` of fixed params."""

    params: CallbackParams

    def __call__(self, *arrays: NDArray) -> Sequence[NDArray]:
        return on_host(self.params, arrays)

    def blanks(self) -> Sequence[NDArray]:
        """See `HostCall.blanks`."""
        p = self.params
        return [
            np.zeros((*p.lanes, *a.shape), stored_dtype(a.dtype)) for a in p.results
        ]


def batch_callback(
    engine: Engine,
    row: Row[CallbackParams],
    p: CallbackParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """One more dimension of batch elements in front, or the batch as a whole.

    The parts of an array on several devices are no batch: each has a call of its own.
    """
    name = mesh_axis(engine, p.mesh)
    in_parts = engine.axis is not None and engine.axis.of_parts
    if not in_parts and p.vmap_method in WHOLE_BATCH:
        given = [
            whole(p.vmap_method, x, a, size) for x, a in zip(args, axes, strict=True)
        ]
        results = tuple([a.with_shape((size, *a.shape)) for a in p.results])
        params = evolve(p, results=results)
    elif in_parts or p.vmap_method in LANE_BY_LANE:
        given, mapped = [], []
        for x, axis, flag in zip(args, axes, p.mapped, strict=True):
            mapped.append(flag or axis is not None)
            given.append(lane_first(p, x, axis, size, flag))
        lanes = (size, *p.lanes)
        params = evolve(p, lanes=lanes, mapped=tuple(mapped), axes=(name, *p.axes))
    else:
        raise MissingRule(
            f"vmap is only supported of {row.name} of {p.callback.name} with a "
            "vmap_method, which says how the callback takes a batch: vmap_method="
            f"{' or '.join(map(repr, METHODS))}"
        )
    outs = row.bind(params, *given)
    return outs, [0] * len(outs)


def mesh_axis(engine: Engine, mesh: MeshAxes | None) -> str | None:
    """The axis of the mesh along which `batch` adds a dimension, if it is one."""
    axis = engine.axis
    if mesh is None or axis is None or not axis.of_parts:
        return None
    return axis.name if axis.name in mesh.names else None


def whole(method: str | None, x: Array, axis: Axis, size: int) -> Array:
    """An operand with the batch, or a dimension of length 1 for it, in front."""
    if axis is None and method == VECTORIZED:
        return x
    if axis is None and method == "expand_dims":
        return broadcast_in_dim(x, (1, *x.shape), tuple(range(1, x.ndim + 1)))
    return at_front(x, axis, size)


def lane_first(
    p: CallbackParams, x: Array, axis: Axis, size: int, mapped: bool
) -> Array:
    """An operand with the new batch elements in front of those that it has."""
    if axis is None:
        return broadcast(x, (size,)) if mapped else x
    front = move_axis(x, axis, 0)
    if mapped or not p.lanes:
        return front
    shape = (size, *p.lanes, *front.shape[1:])
    places = (0, *range(1 + len(p.lanes), len(shape)))
    return broadcast_in_dim(front, shape, places)


def lower_callback(
    e: Emitter,
    p: CallbackParams,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> Sequence[Operand]:
    ordered = p.effect is not None and p.effect.ordered
    if not ordered and p.mesh is not None:
        out = lower_on_parts(e, p, p.mesh, operands, outs)
        if out is not None:
            return out
    return e.callback(
        OnHost(p),
        operands,
        outs,
        effect=p.effect is not None,
        ordered=ordered,
        partitioned=p.partitioned and not ordered and not p.lanes,
    )


def lower_on_parts(
    e: Emitter,
    p: CallbackParams,
    mesh: MeshAxes,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> Sequence[Operand] | None:
    """A call by each device of a mesh; None in a program for one device.

    Its part has length 1 in the dimensions that run along the mesh. Besides the
    operands it takes a scalar, since XLA finds no devices for a call without any.
    """
    if e.layout(Layout(mesh), TOKEN) is None:
        return None
    runs = tuple([1 if axis else n for axis, n in zip(p.axes, p.lanes, strict=True)])
    split: tuple[Split, ...] = tuple([(axis,) if axis else () for axis in p.axes])
    own = OnHost(evolve(p, lanes=runs, mesh=None, axes=()))

    def part(aval: ShapedArray, mapped: bool) -> ShapedArray:
        return aval.with_shape((*runs, *aval.shape[len(runs) :])) if mapped else aval

    def layouts(avals: Sequence[ShapedArray], mapped: Sequence[bool]) -> str:
        return layouts_text(
            [
                e.layout(Layout(mesh, split if flag else ()), aval)
                for aval, flag in zip(avals, mapped, strict=True)
            ]
        )

    def body(xs: Sequence[Operand]) -> Sequence[Operand]:
        made = [part(aval, True) for aval in outs]
        effect = p.effect is not None
        out = e.callback(
            own, xs[1:], made, effect=effect, ordered=False, everywhere=True
        )
        return [xs[0], *out]

    scalar = ShapedArray((), int32)
    ins = [scalar, *[x.aval for x in operands]]
    mapped, made = (False, *p.mapped), (False, *[True] * len(outs))
    _, *out = e.op(
        "sdy.manual_computation",
        [e.constant(0, scalar), *operands],
        [scalar, *outs],
        [([part(aval, flag) for aval, flag in zip(ins, mapped, strict=True)], body)],
        in_shardings=layouts(ins, mapped),
        out_shardings=layouts([scalar, *outs], made),
        manual_axes=manual_text(mesh.names),
    )
    return out


def said(p: CallbackParams) -> str:
    """The kind of a callback, at the beginning of a sentence."""
    return "Pure" if p.effect is None else "IO"


def jvp_refused(
    engine: Engine,
    p: CallbackParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    raise ForeignDerivative(
        f"{said(p)} callbacks do not support JVP. verax cannot see inside "
        f"{p.callback.name}; give the function that calls it a derivative with "
        "verax.custom_jvp or verax.custom_vjp, or apply verax.lax.stop_gradient to "
        "its operands"
    )


def jvp_debug(
    engine: Engine,
    p: CallbackParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """It shows the primal values; tangents are not shown."""
    outs = debug_callback_p.bind(p, *primals)
    return outs, [Zero(x.aval.tangent()) for x in outs]


def transpose_refused(
    engine: Engine, p: CallbackParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    raise ForeignDerivative(
        f"{said(p)} callbacks do not support transpose. {p.callback.name} is not "
        "linear; give the function that calls it a derivative with verax.custom_vjp"
    )


def callback_row(
    name: str,
    jvp: JvpRule[CallbackParams],
    transpose: TransposeRule[CallbackParams] | None = None,
) -> Row[CallbackParams]:
    """A row that calls the host; kinds of callbacks differ in their derivatives."""
    row: Row[CallbackParams] = Row(
        name,
        CallbackParams,
        typing=typing_callback,
        evaluate=lambda engine, p, xs: on_host(p, xs),
        jvp=jvp,
        transpose=transpose,
        batch=lambda engine, p, size, xs, axes: batch_callback(
            engine, row, p, size, xs, axes
        ),
        lower_on=dict.fromkeys(HOSTING, lower_callback),
        hosted=True,
        traits=Traits(flops=unknown_flops, makes_nans=False),
        multiple_results=True,
        sharding=whole_results,
    )
    return row


pure_callback_p = callback_row("pure_callback", jvp_refused, transpose_refused)
io_callback_p = callback_row("io_callback", jvp_refused, transpose_refused)
# Without results it has no cotangents, so that no rule is asked to transpose it.
debug_callback_p = callback_row("debug_callback", jvp_debug)


def refuse_callbacks(name: str, jaxpr: Jaxpr) -> None:
    """Raise if a program that XLA runs in its own order and number calls the host.

    Raises:
        TypeError: there is a callback inside.
    """
    for _, eqn in walk(jaxpr):
        if isinstance(eqn.params, CallbackParams):
            raise TypeError(
                f"the computation of {name} calls {eqn.params.callback.name}, at "
                f"{eqn.source}: {name} applies it in any order and any number of "
                "times, so it must not contain callbacks; use scan instead"
            )


def for_all_parts[P: Params](engine: Engine, params: P) -> P:
    """`params` of whose programs the elements along the map take different ones.

    If it runs along a mesh, every device computes all parts, so the first device calls
    the functions of the host for all.
    """
    axis = engine.axis
    if axis is None or not axis.spmd:
        return params
    return map_subjaxprs(params, lambda inner: map_jaxprs(inner, called_by_first))


def called_by_first(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` whose callbacks the first device calls."""

    def change(eqn: Eqn) -> Eqn:
        params = eqn.params
        if not isinstance(params, CallbackParams) or params.mesh is None:
            return eqn
        alone = evolve(params, mesh=None, axes=(), vmap_method=LANE_BY_LANE[0])
        return Eqn(eqn.primitive, alone, eqn.invars, eqn.outvars, eqn.source)

    return map_eqns(jaxpr, change)


def silenced(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` without what only shows or checks, where it is computed a second time.

    Such equations have no results, so every variable keeps its number.
    """
    return dropping(jaxpr, SHOWN)


# -----------------------------------------------------------------------------
# `dce_sink`: a value that stays in the program although nothing uses it.
#
# Removing what is unused keeps equations with effects, and all that this one does is to
# have one::
#
#     dce_sink[] a


@frozen(eq=False, repr=False)
class SinkParams(Params):
    """The params of a sink: none."""

    @property
    def effects(self) -> frozenset[Effect]:
        return frozenset((DEBUG,))


SINK = SinkParams()


def jvp_sink(
    engine: Engine,
    p: SinkParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """The primal value is kept, its tangent is not."""
    return dce_sink_p.bind(p, *primals), ()


dce_sink_p: Row[SinkParams] = Row(
    "dce_sink",
    SinkParams,
    typing=lambda p, avals: (),
    evaluate=lambda engine, p, xs: (),
    jvp=jvp_sink,
    batch=lambda engine, p, size, xs, axes: (dce_sink_p.bind(p, *xs), ()),
    lower=lambda e, p, xs, outs: (),
    multiple_results=True,
    sharding=whole_results,
    traits=Traits(flops=no_flops, view=True),
)


ROWS: Rows = (
    pure_callback_p,
    io_callback_p,
    debug_callback_p,
    dce_sink_p,
)
