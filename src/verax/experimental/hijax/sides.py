"""Values of an operation and the arrays that they are made of, in both directions.

One idea: rules of a class speak of values in the structures that it declares, and rows
of arrays; a `Side` takes the one to the other::

    side((f32[3], QArrayTy(...))).built(arrays)      # the arguments for `expand`
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen

import verax.numpy as vnp
from verax.api.custom.backward_logs import log
from verax.api.trees.hitypes import (
    HiPspec as HiPspec,
    HiType as HiType,
    MappingSpec as MappingSpec,
    carried,
    carrier_avals,
    hi_typeof,
    is_hi,
    lo_avals,
    lowered,
    raised,
    register_hitype as register_hitype,
    tangent_value,
)
from verax.api.trees.pytrees import KeptLeaves, prefix_leaves, split_leaves
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float0, is_inexact
from verax.ir.meshes import explicit_on, varying_axes
from verax.ir.records import ReprMixin
from verax.ops.elementwise.convert import convert
from verax.rules.rows.builder import Tracer
from verax.rules.rows.infer import Uneven
from verax.rules.rows.row import (
    Zero as Zero,
    is_split,
)
from verax.rules.rows.type_shardings import is_uneven, varies_only, varying_like
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of

type Mask = tuple[bool, ...]


def instantiate_zeros(x: object) -> Any:
    """An array of zeros for a `Zero`, and anything else as it is."""
    return vnp.zeros(x.aval.shape, x.aval.dtype) if isinstance(x, Zero) else x


# -----------------------------------------------------------------------------
# Where a backward rule may add up cotangents, instead of returning them.


class GradAccum(ABC):
    """What the cotangent of one argument is added to."""

    @abstractmethod
    def accum(self, x: object) -> None:
        """Add a cotangent."""


class NullAccum(GradAccum):
    """The accumulator of an argument that is not differentiated."""

    def __init__(self, aval: Any = None) -> None:
        self.aval = aval

    def accum(self, x: object) -> None:
        """Nothing: no cotangent is asked for."""


class ValAccum(GradAccum):
    """A sum of cotangents of type `aval`."""

    def __init__(self, aval: Any, val: object = None) -> None:
        self.aval, self.total = aval, val

    def accum(self, x: Any) -> None:
        """Add a cotangent; None and a `Zero` add nothing."""
        if x is not None and not isinstance(x, Zero):
            self.total = x if self.total is None else self.total + x

    def freeze(self) -> Any:
        """The sum."""
        return Zero(self.aval) if self.total is None else self.total


# -----------------------------------------------------------------------------
# The rules on leaves: arguments are built from them, and results are checked.


def expanded(prim: Any, leaves: Sequence[Any]) -> list[Any]:
    """The leaves of the output."""
    out = prim.expand(*prim.ins.built(leaves))
    outs: Side = prim.outs
    return outs.values(prim.name, "the output", out)


def forward(
    prim: Any, nonzero: Mask, leaves: Sequence[Any]
) -> tuple[list[Any], list[Any], KeptLeaves]:
    """The output, arrays among the residuals, and the rest of them."""
    out, res = prim.vjp_fwd(prim.ins.flags(nonzero), *prim.ins.built(leaves))
    saved, rest = split_leaves(res, is_array)
    return prim.outs.values(prim.name, "the output", out), saved, rest


def backward(prim: Any, nonzero: Mask, res: Any, cts: Sequence[Any]) -> list[Any]:
    """A cotangent for each argument that has a tangent."""
    outgrad = prim.outs.moved(cts)
    if prim.defines("vjp_bwd"):
        marked = pytrees.flatten(prim.ins.flags(nonzero))[0]
        accums = [
            ValAccum(ty) if flag else NullAccum(ty)
            for ty, flag in zip(prim.ins.types, marked, strict=True)
        ]
        logs = prim.vjp_bwd(res, outgrad, *prim.ins.tree.unflatten(accums))
        log(f"{prim.name}.vjp_bwd", logs)
        pulled = [x.freeze() if isinstance(x, ValAccum) else None for x in accums]
    else:
        pulled = prefix_leaves(
            "the cotangents",
            prim.vjp_bwd_retval(res, outgrad),
            prim.ins.tree.unflatten(range(len(prim.ins.types))),
            is_nothing_or_hi,
        )
    due = [aval.cotangent() for aval in prim.ins.avals]
    rows = zip(prim.ins.pushed(pulled), due, nonzero, strict=True)
    return [filled(prim.name, ct, aval) for ct, aval, flag in rows if flag]


def pushed(
    prim: Any, leaves: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """The output and its tangents, by the rule of forward mode."""
    primals, moved = prim.ins.built(leaves), prim.ins.moved(tangents)
    if prim.defines("jvp"):
        out, tangent = prim.jvp(primals, moved)
    elif prim.defines("lin"):
        nonzero = tuple([not isinstance(t, Zero) for t in tangents])
        out, res = prim.lin(prim.ins.flags(nonzero), *primals)
        tangent = prim.linearized(res, *moved)
    elif prim.defines("vjp_fwd"):
        raise TypeError(
            "can't apply forward-mode autodiff (jvp) to a primitive with rules for "
            f"reverse mode only: give {prim.name} a method `jvp`, or use reverse "
            "mode (grad, vjp, jacrev)"
        )
    else:
        return prim.lacks("vjp_fwd")  # type: ignore[no-any-return]  # raises
    what = "the tangent of the output"
    parts = prim.outs.pushed(matching(prim.name, what, tangent, prim.outs.tree))
    due = [aval.tangent() for aval in prim.outs.avals]
    pairs = zip(parts, due, strict=True)
    return (
        prim.outs.values(prim.name, "the output", out),
        [
            Zero(a) if t is None or is_float0(t) else typed(prim.name, what, t, a)
            for t, a in pairs
        ],
    )


@frozen(repr=False)
class Side(ReprMixin):
    """The types of the arguments of an operation, or those of its output.

    A `HiType` stands for the arrays of its values and for their carriers, which alone
    of them have tangents: `avals` are the types of all arrays, `moves` marks those that
    can have tangents, and `counts` says how many arrays and carriers a type has.
    """

    types: tuple[Any, ...]
    tree: PyTreeDef
    avals: tuple[ShapedArray, ...]
    moves: Mask
    counts: tuple[tuple[int, int], ...]

    def parts(self, leaves: Sequence[object]) -> Iterator[tuple[Any, list[Any], int]]:
        """Each type with its leaves, and how many of them are no carriers."""
        start = 0
        for ty, (count, carriers) in zip(self.types, self.counts, strict=True):
            end = start + count + carriers
            yield ty, list(leaves[start:end]), count
            start = end

    def built(self, leaves: Sequence[object]) -> Any:
        """The values of leaves."""
        return self.tree.unflatten(
            [
                raised(ty, own) if isinstance(ty, HiType) else own[0]
                for ty, own, _ in self.parts(leaves)
            ]
        )

    def moved(self, tangents: Sequence[object]) -> Any:
        """The tangents, or cotangents, of leaves."""
        out = []
        for ty, own, count in self.parts(tangents):
            if not isinstance(ty, HiType):
                out.append(own[0])
            elif all([isinstance(t, Zero) for t in own[count:]]):
                out.append(Zero(ty.to_tangent_aval()))
            else:
                out.append(tangent_value(ty, list(map(instantiate_zeros, own[count:]))))
        return self.tree.unflatten(out)

    def flags(self, nonzero: Sequence[bool]) -> Any:
        """Which values have tangents, of which leaves have."""
        return self.tree.unflatten([any(own) for _, own, _ in self.parts(nonzero)])

    def given(self, name: str, values: object) -> list[Any]:
        """The leaves of arguments.

        Raises:
            TypeError: they have another structure or other types.
        """
        leaves, tree = pytrees.flatten(values, is_hi)
        if tree != self.tree:
            raise TypeError(
                f"{name} takes arguments of structure {self.tree}, not {tree}"
            )
        out: list[object] = []
        for x, ty in zip(leaves, self.types, strict=True):
            if isinstance(ty, HiType) != is_hi(x) or (is_hi(x) and hi_typeof(x) != ty):
                given = hi_typeof(x) if is_hi(x) else aval_of(x)
                raise TypeError(f"{name} takes {ty}, but got {given}")
            out += lowered(x)[0] if is_hi(x) else [x]
        return out

    def values(self, name: str, what: str, out: object) -> list[Any]:
        """The leaves of what a rule returned, in the types that are due."""
        leaves: list[object] = []
        for x in matching(name, what, out, self.tree):
            leaves += lowered(x)[0] if is_hi(x) else [x]
        if len(leaves) != len(self.avals):
            raise TypeError(f"{name}: {what} is of other types than are declared")
        leaves = [
            vnp.zeros(aval.shape, aval.dtype, out_sharding=aval.sharding)
            if isinstance(x, np.ndarray) and aval.explicit is not None
            else x
            for x, aval in zip(leaves, self.avals, strict=True)
        ]
        pairs = zip(leaves, self.avals, strict=True)
        return [typed(name, what, x, aval) for x, aval in pairs]

    def pushed(self, tangents: Sequence[object]) -> list[Any]:
        """The leaves of tangents, or cotangents; None where there are none."""
        out: list[object] = []
        pairs = zip(self.types, self.counts, strict=True)
        for t, (ty, (count, carriers)) in zip(tangents, pairs, strict=True):
            if not isinstance(ty, HiType):
                out.append(None if is_nothing(t) else t)
            elif is_nothing(t):
                out += [None] * (count + carriers)
            else:
                out += carried(ty, t)
        return out


def side(types: object) -> Side:
    """The side of a pytree of types."""
    leaves, tree = pytrees.flatten(types)
    avals: list[ShapedArray] = []
    moves: list[bool] = []
    counts = []
    for ty in leaves:
        own = lo_avals(ty)
        carriers = carrier_avals(ty) if isinstance(ty, HiType) else []
        avals += [*own, *carriers]
        if isinstance(ty, HiType):
            moves += [*[False] * len(own), *[True] * len(carriers)]
        else:
            moves.append(is_inexact(ty.dtype))
        counts.append((len(own), len(carriers)))
    return Side(tuple(leaves), tree, tuple(avals), tuple(moves), tuple(counts))


def is_nothing_or_hi(x: object) -> bool:
    return is_nothing(x) or is_hi(x)


def is_nothing(x: object) -> bool:
    return x is None or isinstance(x, Zero)


def is_float0(x: object) -> bool:
    """Whether a tangent says by its dtype that there is none."""
    return getattr(x, "dtype", None) == float0


def is_tracer(x: object) -> bool:
    return isinstance(x, Tracer)


def is_array(x: object) -> bool:
    """Whether a residual is a value of the program; others stay as they are."""
    return isinstance(x, Array | np.ndarray)


def matching(name: str, what: str, out: object, tree: object) -> list[Any]:
    """The leaves of what a rule returned.

    Raises:
        TypeError: it has another structure than is due.
    """
    leaves, structure = pytrees.flatten(out, lambda x: isinstance(x, Zero) or is_hi(x))
    if structure != tree:
        raise TypeError(f"{name}: {what} has the structure {structure}, not {tree}")
    return leaves


def typed(name: str, what: str, x: object, due: ShapedArray) -> Any:
    """A value that a rule returned, in the type that is due."""
    if isinstance(x, Zero):
        return Zero(due)
    aval = aval_of(x)
    if aval.shape != due.shape or aval.dtype != due.dtype:
        raise TypeError(f"{name}: {what} is of type {aval}, but {due} is declared")
    return (
        x if aval.weak_type == due.weak_type else convert(x, due.dtype, due.weak_type)
    )


def filled(name: str, ct: object, due: ShapedArray) -> Any:
    """A cotangent in the type that is due, of zeros for none."""
    if ct is None or isinstance(ct, Zero):
        return vnp.zeros(due.shape, due.dtype)
    return typed(name, "a cotangent", ct, due)


def varying_as(
    avals: Sequence[ShapedArray], declared: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    """The declared types, which vary along no axes but those of the operands.

    Types that were read within `shard_map` say along which axes of its mesh values
    vary; the map takes these axes away one by one. Types that say nothing of them vary
    as the operands do.
    """
    if not any([varying_axes(aval.explicit) for aval in declared]):
        if not is_split(avals) or not varies_only(avals):
            return declared
        if is_uneven(avals):
            raise Uneven("a hijax primitive")
        return varying_like(avals, declared)
    known = {axis for aval in avals for axis in varying_axes(aval.explicit)}
    return [varying_along(aval, known) for aval in declared]


def varying_along(aval: ShapedArray, axes: Collection[str]) -> ShapedArray:
    """A type that varies along some axes at most."""
    explicit = aval.explicit
    if explicit is None:
        return aval
    varying = tuple([axis for axis in explicit.terms.varying if axis in axes])
    terms = evolve(explicit.terms, varying=varying)
    return aval.with_explicit(explicit_on(explicit.mesh, explicit.splits, terms))
