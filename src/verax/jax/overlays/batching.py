"""`jax.interpreters.batching`: how a program's own primitives are batched."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import verax.numpy as vnp
from verax.jax.primitives import (
    AXIS_BATCHERS as fancy_primitive_batchers,
    PRIMITIVE_BATCHERS as primitive_batchers,
    AxisData as AxisData,
    Primitive,
)
from verax.jax.stand_ins import stand_in
from verax.rules.rows.builder import Builder, Tracer
from verax.rules.values.array import Array

__all__ = [
    "AxisData",
    "axis_primitive_batchers",
    "bdim_at_front",
    "broadcast",
    "defbroadcasting",
    "defvectorized",
    "fancy_primitive_batchers",
    "is_vmappable",
    "make_iota",
    "matchaxis",
    "moveaxis",
    "not_mapped",
    "primitive_batchers",
    "register_vmappable",
    "unregister_vmappable",
]


class AxisBatchers:
    """Takes rules that are told of the axis in pieces: its size, its name, and None."""

    def __setitem__(self, primitive: Primitive, rule: Callable[..., object]) -> None:
        def whole(axis: AxisData, args: object, dims: object, **params: object) -> Any:
            return rule(axis.size, axis.name, None, args, dims, **params)

        fancy_primitive_batchers[primitive] = whole


axis_primitive_batchers = AxisBatchers()
not_mapped: Final = None


def moveaxis(x: Array, src: int | None, dst: int) -> Array:
    """The batch dimension of `x` moved to `dst`."""
    return x if src is None or src == dst else vnp.moveaxis(x, src, dst)


def broadcast(x: Array, size: int, axis: int, *_: object) -> Array:
    """`x` repeated `size` times along a new dimension."""
    return vnp.broadcast_to(
        vnp.expand_dims(x, axis), (*x.shape[:axis], size, *x.shape[axis:])
    )


def bdim_at_front(x: Array, axis: int | None, size: int, *_: object) -> Array:
    """`x` with the batch dimension in front; repeated if it has none."""
    return broadcast(x, size, 0) if axis is None else moveaxis(x, axis, 0)


def matchaxis(
    axis_name: object,
    size: int,
    mesh_axis: object,
    src: int | None,
    dst: int,
    x: Array,
) -> Array:
    """`x` with its batch dimension at `dst`; repeated if it has none."""
    return broadcast(x, size, dst) if src is None else moveaxis(x, src, dst)


def defvectorized(primitive: Primitive) -> None:
    """A primitive of one operand that works element by element."""

    def rule(args: Sequence[object], dims: Sequence[object], **params: object) -> Any:
        return primitive.bind(*args, **params), dims[0]

    primitive_batchers[primitive] = rule


def defbroadcasting(primitive: Primitive) -> None:
    """A primitive of several operands that works element by element."""

    def rule(
        args: Sequence[Array], dims: Sequence[int | None], **params: object
    ) -> Any:
        size = next(
            x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None
        )
        rank = max(x.ndim + (d is None) for x, d in zip(args, dims, strict=True))
        moved = [bdim_at_front(x, d, size) for x, d in zip(args, dims, strict=True)]
        lifted = [
            vnp.reshape(x, (size, *(1,) * (rank - x.ndim), *x.shape[1:])) for x in moved
        ]
        return primitive.bind(*lifted, **params), 0

    primitive_batchers[primitive] = rule


class Vmappable:
    """Classes that libraries register: `vmap` maps them as pytrees."""

    def __init__(self) -> None:
        self.classes: dict[type, tuple[object, ...]] = {}

    def register(
        self,
        data_type: type,
        spec_type: type,
        axis_size_type: type,
        to_elt: Callable[..., object],
        from_elt: Callable[..., object],
        make_iota: Callable[..., object] | None,
    ) -> None:
        """Note a class that says how it is mapped."""
        rules = spec_type, axis_size_type, to_elt, from_elt, make_iota
        self.classes[data_type] = rules

    def unregister(self, data_type: type) -> None:
        """Forget what was registered for a class."""
        self.classes.pop(data_type)

    def holds(self, x: object) -> bool:
        """Whether the class of `x` has been registered."""
        return type(x) in self.classes


VMAPPABLE: Final = Vmappable()
register_vmappable = VMAPPABLE.register
unregister_vmappable = VMAPPABLE.unregister
is_vmappable = VMAPPABLE.holds


def make_iota(axis_size: int) -> Any:
    """The numbers of the elements along an axis."""
    return vnp.arange(axis_size)


def to_elt(
    trace: object, get_idx: Callable[[], Array], x: Array, spec: int | None
) -> Array:
    """One element of what is mapped along the dimension `spec`."""
    return x if spec is None else vnp.take(x, get_idx(), axis=spec)


def is_mapping(x: object) -> bool:
    """Whether `x` is the trace of a function that is being mapped."""
    return isinstance(x, Builder) and x.purpose == "vmap"


BatchTrace = stand_in("BatchTrace", is_mapping, "the traces of jax.vmap")
BatchTracer = stand_in(
    "BatchTracer",
    lambda x: isinstance(x, Tracer) and is_mapping(x.builder),
    "the tracers of jax.vmap",
)


type Batcher = Callable[..., Any]
