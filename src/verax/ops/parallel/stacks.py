"""Floor 2: what devices hold along explicit axes, as a stack along new dimensions.

A value that is unreduced along an axis is a sum of which each device has a term, and of
one that is reduced each device has all. `shard_map` hands its function what a device
holds. These two rows lead there and back, and no device sends anything::

    b:f32[2,8] = spread[axes=('x',) state='unreduced'] a     # of a:f32[8]{U:x}
    c:f32[8]{U:x} = collect[axes=('x',) state='unreduced'] b

One idea: the transpose of each is the other, in the dual state.
"""

from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Params
from verax.ir.meshes import (
    Axes,
    AxisType,
    Explicit,
    MeshType,
    Terms,
    explicit_on,
    layouts_text,
    manual_text,
    terms_along,
    terms_of,
    terms_together,
)
from verax.ops.structure.shape import move_axis
from verax.rules.families.linear import linear, one_batched, one_linear
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.row import Row, as_typed
from verax.rules.values.array import Array


@frozen(cache_hash=True, repr=False)
class StackParams(Params):
    """Along which axes of `mesh`, explicit ones, and what a value is along them."""

    axes: Axes
    mesh: MeshType
    state: str

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple([self.mesh.size((axis,)) for axis in self.axes])

    @property
    def dual(self) -> "StackParams":
        """The state of cotangents along the axes."""
        other = "reduced" if self.state == "unreduced" else "unreduced"
        return evolve(self, state=other)


def mesh_with(mesh: MeshType, axes: Axes, kind: AxisType) -> MeshType:
    """The mesh where some axes are of another type."""
    types = [
        kind if name in axes else own
        for name, own in zip(mesh.names, mesh.types, strict=True)
    ]
    return MeshType(mesh.names, mesh.sizes, tuple(types))


def spread_explicit(p: StackParams, x: ShapedArray) -> Explicit | None:
    """The type of the stack, which says nothing of the axes."""
    if x.explicit is None:
        return None
    mesh = mesh_with(x.explicit.mesh, p.axes, AxisType.Auto)
    rest = terms_along(x.explicit.terms, [a for a in mesh.names if a not in p.axes])
    return explicit_on(mesh, (*[()] * len(p.axes), *x.explicit.splits), rest)


def spread_typing(
    p: StackParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    (x,) = avals
    full = x.with_shape((*p.sizes, *x.shape))
    return (full.with_explicit(spread_explicit(p, x)),)


def collect_typing(
    p: StackParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    (x,) = avals
    count = len(p.axes)
    known = p.mesh if x.explicit is None else x.explicit.mesh
    mesh = mesh_with(known, p.axes, AxisType.Explicit)
    splits = ((),) * x.ndim if x.explicit is None else x.explicit.splits
    own = Terms(p.axes) if p.state == "unreduced" else Terms((), p.axes)
    terms = terms_together(mesh, terms_of(x.explicit), own)
    value = x.with_shape(x.shape[count:])
    return (value.with_explicit(explicit_on(mesh, splits[count:], terms)),)


def spread_values(p: StackParams, x: np.ndarray) -> np.ndarray:
    """One of the stacks that stand for the value: the first device has the sum."""
    if p.state == "reduced":
        return np.broadcast_to(x, (*p.sizes, *x.shape))
    out = np.zeros((*p.sizes, *x.shape), x.dtype)
    out[(0,) * len(p.axes)] = x
    return out


def collect_values(p: StackParams, x: np.ndarray) -> np.ndarray:
    if p.state == "reduced":
        first: np.ndarray = x[(0,) * len(p.axes)]
        return first
    return x.sum(tuple(range(len(p.axes))), dtype=x.dtype)


def batch_spread(p: StackParams, size: int, x: Array, axis: int) -> tuple[Array, int]:
    return spread_p.call(p, x), axis + len(p.axes)


def batch_collect(p: StackParams, size: int, x: Array, axis: int) -> tuple[Array, int]:
    """The new dimension comes behind those that the axes split."""
    count = len(p.axes)
    if axis < count:
        x, axis = move_axis(x, axis, count), count
    return collect_p.call(p, x), axis - count


def by_device(
    e: Emitter, p: StackParams, x: Operand, stack: ShapedArray, out: ShapedArray
) -> Sequence[Operand] | None:
    """A program for each device, which has one row of the stack; None of one device."""
    count, mesh = len(p.axes), mesh_with(p.mesh, p.axes, AxisType.Auto)
    explicit = stack.explicit
    splits = ((),) * stack.ndim if explicit is None else explicit.splits
    rows = ([*[(a,) for a in p.axes], *splits[count:]], terms_of(explicit))
    shown = stack.with_explicit(explicit_on(mesh, *rows))
    value = x.aval if out is stack else out
    if e.typed_layout(mesh, shown) is None:
        return None
    pair = (value, shown) if out is stack else (shown, value)
    texts = [e.typed_layout(mesh, aval) or "" for aval in pair]
    if out is stack:  # Shardy wants to be told of terms right before they are left
        (x,) = e.op("sdy.sharding_constraint", (x,), (value,), sharding=texts[0])
    row = stack.whole().with_shape((*[1] * count, *stack.shape[count:]))
    before, after = (value.whole(), row) if out is stack else (row, value.whole())
    return e.op(
        "sdy.manual_computation",
        (x,),
        (out,),
        [((before,), lambda xs: e.op("stablehlo.reshape", xs, (after,)))],
        in_shardings=layouts_text(texts[:1]),
        out_shardings=layouts_text(texts[1:]),
        manual_axes=manual_text(p.axes),
    )


def lower_spread(
    e: Emitter, p: StackParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    (x,), (out,) = xs, outs
    result = by_device(e, p, x, out, out)
    return e.op("stablehlo.reshape", (x,), (out,)) if result is None else result


def lower_collect(
    e: Emitter, p: StackParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    (x,), (out,) = xs, outs
    result = by_device(e, p, x, x.aval, out)
    return e.op("stablehlo.reshape", (x,), (out,)) if result is None else result


spread_p: Row[StackParams] = linear(
    "spread",
    StackParams,
    typing=spread_typing,
    evaluate=spread_values,
    transpose=one_linear(lambda p, ct, x: collect_p.call(p.dual, ct)),
    batch=one_batched(batch_spread),
    lower=lower_spread,
    draw=None,
    compiled=True,
    sharding=as_typed,
)
collect_p: Row[StackParams] = linear(
    "collect",
    StackParams,
    typing=collect_typing,
    evaluate=collect_values,
    transpose=one_linear(lambda p, ct, x: spread_p.call(p.dual, ct)),
    batch=one_batched(batch_collect),
    lower=lower_collect,
    draw=None,
    compiled=True,
    sharding=as_typed,
)

ROWS = (spread_p, collect_p)


def spread(x: Array, axes: Axes, mesh: MeshType, state: str) -> Array:
    """Stacks what each device holds of a value along new first dimensions."""
    return spread_p.call(StackParams(axes, mesh, state), x) if axes else x


def collect(x: Array, axes: Axes, mesh: MeshType, state: str) -> Array:
    """The value of which the devices hold the rows of `x`."""
    return collect_p.call(StackParams(axes, mesh, state), x) if axes else x
