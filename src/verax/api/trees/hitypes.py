"""Floor 5: types of a program's own: values that are arrays inside, and more outside.

One idea: a class with a `HiType` is a pytree node whose leaves are the arrays of its
values and, behind them, zeros in the type of its tangents: these carry derivatives,
which may be of another type than the arrays are::

    register_hitype(QArray, lambda q: QArrayTy(q.qvalue.shape))
    verax.typeof(q)                    # the QArrayTy
    verax.grad(loss)(q)                # a float array, as QArrayTy says of its tangents

Only primitives of `verax.experimental.hijax` give such values derivatives. Programs
show their arrays.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NoReturn

import numpy as np

from verax.api.trees.pytrees import prefix_leaves, register_pytree_node
from verax.backend import pytrees
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import numpy_dtype
from verax.rules.rows.builder import Tracer

MARK: Final = "_hijax"
"""The attribute of values within traces: their type, if it is known, and tangents."""


class MappingSpec:
    """How values of a type are mapped by `vmap`: a base class for types to have one."""


class HiPspec:
    """How values of a type are split by `shard_map`: a base class."""

    def to_lo(self) -> tuple[Any, ...]:
        """A partition spec for each array."""
        raise NotImplementedError(f"{type(self).__name__} must implement `to_lo`")


class HiType:
    """A type of a program's own; values of its class are made of arrays.

    A subclass can be hashed and compared, and says by `lo_ty` which arrays its values
    have, by `lower_val` and `raise_val` how they are taken apart and made, and by
    `to_tangent_aval` the type of its tangents, a type of arrays or another `HiType`.
    """

    def lacks(self, method: str, purpose: str) -> NoReturn:
        raise NotImplementedError(
            f"{purpose} requires {type(self).__name__} to implement the `{method}` "
            "method"
        )

    def lo_ty(self) -> list[Any]:
        """The types of the arrays."""
        return self.lacks("lo_ty", "lowering (e.g. under jit)")

    def lower_val(self, hi_val: object, /) -> list[Any]:
        """The arrays of a value."""
        return self.lacks("lower_val", "lowering values (e.g. under jit)")

    def raise_val(self, *lo_vals: object) -> Any:
        """The value of arrays."""
        return self.lacks("raise_val", "raising lowered values (e.g. under jit)")

    def to_tangent_aval(self) -> Any:
        """The type of tangents."""
        return self.lacks("to_tangent_aval", "autodiff")

    def to_ct_aval(self) -> Any:
        """The type of cotangents: that of tangents, if not said otherwise."""
        return self.to_tangent_aval()

    def dec_rank(self, size: int | None, spec: MappingSpec) -> Any:
        """The type of an element of stacked values."""
        return self.lacks("dec_rank", "vmap")

    def inc_rank(self, size: int | None, spec: MappingSpec) -> Any:
        """The type of stacked values."""
        return self.lacks("inc_rank", "vmap")

    def leading_axis_spec(self) -> MappingSpec:
        """How values are mapped by loops."""
        return self.lacks("leading_axis_spec", "scan")

    def str_short(
        self, short_dtypes: bool = False, mesh_axis_types: bool = False
    ) -> str:
        """The type in messages."""
        return type(self).__name__


class Registered:
    """The classes that have types, and how the types of their values are found."""

    def __init__(self) -> None:
        self.types: dict[type, Callable[[Any], HiType]] = {}

    def holds(self, x: object) -> bool:
        """Whether the class of `x` has a type."""
        return type(x) in self.types

    def add(self, val_cls: type, typeof_fn: Callable[[Any], HiType]) -> None:
        """Note a class; a second time, another function replaces the first."""
        if val_cls not in self.types:
            register_pytree_node(val_cls, lowered, raised)
        self.types[val_cls] = typeof_fn


HI: Final = Registered()
is_hi = HI.holds


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], HiType]) -> None:
    """Say that values of a class have a type, which `typeof_fn` finds."""
    HI.add(val_cls, typeof_fn)


def hi_typeof(x: object) -> HiType:
    """The type of a value whose class has one."""
    known = getattr(x, MARK, (None, None))[0]
    return HI.types[type(x)](x) if known is None else known


def lo_avals(ty: HiType | ShapedArray) -> list[ShapedArray]:
    """The arrays of a type; a type of arrays is one itself."""
    if isinstance(ty, ShapedArray):
        return [ty]
    return [lo for part in ty.lo_ty() for lo in lo_avals(part)]


def carrier_avals(ty: HiType) -> list[ShapedArray]:
    """The arrays of the tangents of a type; none for a type without tangents."""
    if type(ty).to_tangent_aval is HiType.to_tangent_aval:
        return []
    return [aval.strong() for aval in lo_avals(ty.to_tangent_aval())]


def zeros_of(avals: Iterable[ShapedArray]) -> list[np.ndarray]:
    """Zeros that take no memory."""
    return [np.broadcast_to(np.zeros((), numpy_dtype(a.dtype)), a.shape) for a in avals]


def lowered(x: object) -> tuple[tuple[Any, ...], HiType]:
    """The arrays of a value and its carriers, and its type."""
    ty = hi_typeof(x)
    carriers = getattr(x, MARK, (None, None))[1]
    if carriers is None:
        carriers = zeros_of(carrier_avals(ty))
    return (*ty.lower_val(x), *carriers), ty


def raised(ty: HiType, children: Iterable[object]) -> Any:
    """The value of arrays; within traces it holds its carriers.

    What is no array, as a place or an axis, leaves the type to be remembered.
    """
    parts = list(children)
    count = len(lo_avals(ty))
    out = ty.raise_val(*parts[:count])
    plain = any([hasattr(x, "shape") and hasattr(x, "dtype") for x in parts])
    if not plain or any([isinstance(x, Tracer) for x in parts]):
        mark(out, None if plain else ty, parts[count:])
    return out


def mark(x: object, ty: HiType | None, carriers: Sequence[object]) -> None:
    """Have a value hold its carriers."""
    try:
        object.__setattr__(x, MARK, (ty, list(carriers)))
    except AttributeError as error:
        raise TypeError(
            f"values of {type(x).__name__} have a hijax type, but take no attribute; "
            "let the class have a __dict__"
        ) from error


def tangent_value(ty: HiType, parts: Sequence[object]) -> object:
    """The tangent, or cotangent, of arrays."""
    target = ty.to_tangent_aval()
    return parts[0] if isinstance(target, ShapedArray) else target.raise_val(*parts)


# -----------------------------------------------------------------------------
# Derivatives by such values: by their carriers.


def carried(ty: HiType, tangent: object) -> list[Any]:
    """A tangent, or cotangent, for all leaves of a value: its carriers have it."""
    target = ty.to_tangent_aval()
    own = [tangent] if isinstance(target, ShapedArray) else target.lower_val(tangent)
    return [*[None] * len(lo_avals(ty)), *own]


def cotangent_leaves(what: str, cotangent: object, whole: object) -> list[Any]:
    """The cotangents of all leaves of `whole`; None stands for those of any subtree.

    Raises:
        ValueError: `cotangent`, which messages call `what`, is no prefix of `whole`.
    """
    units, tree = pytrees.flatten(whole, is_hi)
    shape = tree.unflatten(range(len(units)))
    parts = prefix_leaves(what, cotangent, shape, lambda x: x is None or is_hi(x))
    out: list[Any] = []
    for unit, part in zip(units, parts, strict=True):
        if not is_hi(unit):
            out.append(part)
        elif part is None:
            out += [None] * len(every_aval(hi_typeof(unit)))
        else:
            out += carried(hi_typeof(unit), part)
    return out


def slots(args: object) -> tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]:
    """What derivatives are taken by instead of values with types.

    With that come two functions: from slots to the arguments, and from cotangents of
    slots to those of the arguments.
    """
    leaves, tree = pytrees.flatten(args, is_hi)
    types = [hi_typeof(x) if is_hi(x) else None for x in leaves]
    pairs = list(zip(leaves, types, strict=True))
    given = [x if ty is None else lowered(x)[0][len(lo_avals(ty)) :] for x, ty in pairs]

    def filled(now: object) -> Any:
        parts = tree.flatten_up_to(now)
        out = []
        for (x, ty), part in zip(pairs, parts, strict=True):
            arrays = () if ty is None else lowered(x)[0][: len(lo_avals(ty))]
            out.append(part if ty is None else raised(ty, (*arrays, *part)))
        return tree.unflatten(out)

    def pulled(cts: object) -> Any:
        parts = tree.flatten_up_to(cts)
        out = [
            part if ty is None else tangent_value(ty, part)
            for ty, part in zip(types, parts, strict=True)
        ]
        return tree.unflatten(out)

    return tree.unflatten(given), filled, pulled


def refuse_hi(purpose: str, does: str, tree: object) -> None:
    """Raise NotImplementedError for such values where only arrays have derivatives."""
    held = [x for x in pytrees.flatten(tree, is_hi)[0] if is_hi(x)]
    if held:
        raise NotImplementedError(
            f"{purpose} of a function that {does} a value of type "
            f"{hi_typeof(held[0])}: take gradients of scalars by it (grad, "
            "value_and_grad), and make and read it inside the function"
        )


# -----------------------------------------------------------------------------
# Axes of such values: their types say which dimension of which array is mapped.


def has_specs(axes: object) -> bool:
    """Whether axes of a `vmap` have specs among them."""
    if not HI.types:
        return False
    return any([isinstance(x, MappingSpec) for x in pytrees.flatten(axes)[0]])


def axes_by_specs(
    what: str, axes: object, tree: object, size: int | None, stacked: bool
) -> object:
    """Axes for all arrays of a tree, of axes with specs for values with types.

    The values of the tree are `stacked`, or elements of what will be.
    """
    leaves, structure = pytrees.flatten(tree, is_hi)
    whole = structure.unflatten(range(len(leaves)))
    entries = prefix_leaves(what, axes, whole, lambda x: x is None)
    if size is None:
        size = next(
            (
                x.shape[axis]
                for x, axis in zip(leaves, entries, strict=True)
                if isinstance(axis, int) and not is_hi(x)
            ),
            None,
        )
    out = [
        in_arrays(x, axis, size, stacked) if isinstance(axis, MappingSpec) else axis
        for x, axis in zip(leaves, entries, strict=True)
    ]
    return structure.unflatten(out)


def specs_by_types(specs: object, tree: object) -> object:
    """Specs of a `shard_map` for all arrays, of some with `HiPspec`s among them.

    Carriers are split as the arrays of their value are, one by one; if there are not as
    many of them, as the first, which has the shape of the value.
    """
    given = pytrees.flatten(specs)[0]
    if not any([isinstance(spec, HiPspec) for spec in given]):
        return specs
    leaves, structure = pytrees.flatten(tree, is_hi)
    whole = structure.unflatten(range(len(leaves)))
    entries = prefix_leaves("specs", specs, whole, lambda x: x is None)
    out = []
    for x, spec in zip(leaves, entries, strict=True):
        if not isinstance(spec, HiPspec):
            out.append(spec)
            continue
        ty, own = hi_typeof(x), spec.to_lo()
        count = len(carrier_avals(ty))
        also = own if count == len(own) else [own[0]] * count
        out.append(raised(ty, [*own, *also]))
    return structure.unflatten(out)


def in_arrays(x: object, spec: MappingSpec, size: int | None, stacked: bool) -> object:
    """The axes of the arrays of a value, in its place."""
    ty = hi_typeof(x)
    whole = ty if stacked else ty.inc_rank(size, spec)
    part = ty.dec_rank(size, spec) if stacked else ty
    pairs = zip(every_aval(whole), every_aval(part), strict=True)
    return raised(ty, [lost_axis(a, b) for a, b in pairs])


def every_aval(ty: HiType) -> list[ShapedArray]:
    """The types of the arrays of a value and its carriers."""
    return [*lo_avals(ty), *carrier_avals(ty)]


def lost_axis(whole: ShapedArray, part: ShapedArray) -> int | None:
    """The dimension that an element lacks; None if it lacks none."""
    if whole.ndim == part.ndim:
        return None
    for i in range(whole.ndim):
        if (*whole.shape[:i], *whole.shape[i + 1 :]) == part.shape:
            return i
    raise ValueError(f"{part} is no element of {whole}")
