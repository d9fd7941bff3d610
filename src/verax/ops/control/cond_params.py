"""Floor 2: what a `cond` knows, and its type.

One idea: a choice for each batch element holds the branches of one batch element, so
that its rules are those of a single choice; only sizes and which operands differ are
kept beside::

    CondLanesParams(branches, lanes=(8,), mapped=(True, False))
"""

from collections.abc import Sequence

from attrs import field, frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import int32
from verax.ir.effects import Effect
from verax.ir.jaxpr import Jaxpr, Params
from verax.ir.meshes import explicit_on, terms_of
from verax.ir.records import QUIET
from verax.ops.calls.subjaxprs import same_types
from verax.rules.rows.masks import Mask
from verax.rules.rows.row import MissingRule

type Platforms = tuple[tuple[str, ...] | None, ...]
"""For each of some choices its platforms; None for all that are not named."""


@frozen(eq=False, repr=False)
class PlatformIndexParams(Params):
    """The choices, one of which is that of the platform."""

    platforms: Platforms


def choice_for(platforms: Platforms, platform: str) -> int:
    """The number of the choice for a platform.

    Raises:
        MissingRule: there is none.

    >>> choice_for((("cpu",), ("cuda", "rocm"), None), "rocm")
    1
    """
    for i, names in enumerate(platforms):
        if names is None or platform in names:
            return i
    known = ", ".join([name for names in platforms for name in names or ()])
    raise MissingRule(
        f"platform_dependent has functions for {known or 'no platform'}, but is needed "
        f"on {platform}; pass one for it ({platform}=...), or a default"
    )


@frozen(eq=False, repr=False)
class CondParams(Params):
    """The programs to choose from; they have the same input and result types.

    Under vmap with an index for each batch element, a `sequential` choice is made for
    one element after another, and only the branch that it takes runs. A choice by the
    platform says in `platforms` which branches are for which; its index is a
    `platform_index` of the same, and each platform gets only its own branch.
    """

    branches: tuple[Jaxpr, ...]
    sequential: bool = field(default=False, kw_only=True, metadata=QUIET)
    platforms: Platforms | None = field(default=None, kw_only=True, metadata=QUIET)

    @property
    def effects(self) -> frozenset[Effect]:
        return self.shifted_effects(*[1] * len(self.branches))

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        """What every branch takes."""
        return self.branches[0].in_avals

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        """What every branch gives."""
        return self.branches[0].out_avals


@frozen(eq=False, repr=False)
class CondLanesParams(CondParams):
    """A choice for each batch element: index and results begin with the shape `lanes`.

    `mapped` marks the operands that begin with those dimensions too.
    """

    lanes: Shape
    mapped: Mask


def mapped_operands(p: CondParams) -> Mask:
    """Which operands differ between batch elements."""
    if isinstance(p, CondLanesParams):
        return p.mapped
    return (False,) * len(p.in_avals)


def cond_typing(p: CondParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    index, *operands = avals
    lanes = p.lanes if isinstance(p, CondLanesParams) else ()
    if index.dtype != int32 or index.shape != lanes:
        raise TypeError(
            f"cond takes an int32 index of shape {lanes}, not {index}; convert it "
            "(verax.lax.convert_element_type)"
        )
    if not p.branches:
        raise TypeError("cond takes at least one branch")
    count = len(lanes)
    given = tuple(
        [
            x.with_shape(x.shape[count:]) if flag else x
            for x, flag in zip(operands, mapped_operands(p), strict=True)
        ]
    )
    for branch in p.branches:
        if not same_types(branch.in_avals, given):
            raise TypeError(f"a branch of cond takes {branch.in_avals}, not {given}")
        if not same_types(branch.out_avals, p.out_avals):
            raise TypeError(
                f"branches of cond return {p.out_avals} and {branch.out_avals}; they "
                "must return the same types"
            )
    return [over_lanes(index, a) for a in p.out_avals]


def over_lanes(index: ShapedArray, aval: ShapedArray) -> ShapedArray:
    """The type of a result for each batch element, split as their indices are."""
    found = aval.with_shape((*index.shape, *aval.shape))
    known = index.explicit or aval.explicit
    if known is None:
        return found
    front, back = (
        ((),) * x.ndim if x.explicit is None else x.explicit.splits
        for x in (index, aval)
    )
    terms = terms_of(aval.explicit)
    return found.with_explicit(explicit_on(known.mesh, (*front, *back), terms))
