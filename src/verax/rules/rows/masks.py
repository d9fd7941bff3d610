"""Floor 1: which operands take part: masks, and what is picked by them.

One idea: tangents that are zero and operands that are unknown are told apart by class,
programs take and give only the others, so a rule speaks of both by a mask::

    pushed, mask = engine.jvp(jaxpr, nonzeros(tangents))
    outs = bind(pushed, *primals, *live(tangents))
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from verax.ir.avals import ShapedArray
from verax.ir.meshes import terms_of
from verax.rules.rows.row import Engine, Known, Linear, Tangent, Zero
from verax.rules.values.array import Array

type Mask = tuple[bool, ...]


def chosen[T](flags: Iterable[bool], values: Iterable[T]) -> list[T]:
    """The marked values."""
    return [x for flag, x in zip(flags, values, strict=True) if flag]


def others[T](flags: Iterable[bool], values: Iterable[T]) -> list[T]:
    """The values that are not marked."""
    return [x for flag, x in zip(flags, values, strict=True) if not flag]


def merged[T](flags: Iterable[bool], marked: Iterable[T], rest: Iterable[T]) -> list[T]:
    """`chosen` and `others` joined again."""
    ours, theirs = iter(marked), iter(rest)
    return [next(ours) if flag else next(theirs) for flag in flags]


def either(*masks: Sequence[bool]) -> Mask:
    """What is marked in one of the masks."""
    return tuple([any(flags) for flags in zip(*masks, strict=True)])


def fixpoint(start: Mask, step: Callable[[Mask], Sequence[bool]]) -> Mask:
    """The least mask that holds `start` and everything that follows from itself."""
    while True:
        found = either(start, step(start))
        if found == start:
            return start
        start = found


def live(tangents: Iterable[Tangent]) -> list[Array]:
    """The tangents that are not known to be zero."""
    return [t for t in tangents if not isinstance(t, Zero)]


def nonzeros(tangents: Iterable[Tangent]) -> Mask:
    """Which tangents are not known to be zero."""
    return tuple([not isinstance(t, Zero) for t in tangents])


def filled(
    mask: Sequence[bool], found: Iterable[Array], avals: Iterable[ShapedArray]
) -> list[Tangent]:
    """Tangents for all of `avals`: those found where marked, and zeros."""
    made = iter(found)
    return [
        next(made) if flag else Zero(aval.tangent())
        for flag, aval in zip(mask, avals, strict=True)
    ]


def cotangents(avals: Iterable[ShapedArray]) -> list[ShapedArray]:
    """The types of cotangents of values of these types."""
    return [aval.cotangent() for aval in avals]


def as_cotangent(engine: Engine, ct: Any, due: ShapedArray) -> Array:
    """A cotangent in the dtype that is due, and summed or not as that type says."""
    found = engine.core.convert(ct, due.dtype, due.weak_type)
    if terms_of(found.aval.explicit) == terms_of(due.explicit):
        return found
    return engine.core.reshard(found, due.explicit)


def dense(engine: Engine, tangent: Tangent) -> Array:
    """A tangent or cotangent as an array."""
    return engine.core.zeros(tangent.aval) if isinstance(tangent, Zero) else tangent


def instantiated(engine: Engine, tangent: Tangent, aval: ShapedArray) -> Array:
    """A tangent or cotangent as an array of the tangent type of `aval`."""
    due = aval.tangent()
    if isinstance(tangent, Zero):
        return engine.core.zeros(due)
    return engine.core.convert(tangent, due.dtype, due.weak_type)


def arrays_of(
    engine: Engine,
    mask: Sequence[bool],
    tangents: Iterable[Tangent],
    avals: Iterable[ShapedArray],
) -> list[Array]:
    """The marked ones of the tangents of `avals`, each `instantiated`."""
    pairs = chosen(mask, zip(tangents, avals, strict=True))
    return [instantiated(engine, t, aval) for t, aval in pairs]


def sum_of(engine: Engine, x: Tangent, y: Tangent) -> Tangent:
    """The sum of two tangents, of which one or both may be zero."""
    if isinstance(x, Zero):
        return y
    return x if isinstance(y, Zero) else engine.core.add(x, y)


def unknowns(args: Iterable[Known]) -> Mask:
    """Which operands are known by their type only."""
    return tuple([isinstance(x, Linear) for x in args])


def knowns(args: Iterable[Known]) -> list[Array]:
    """The operands that are values."""
    return [x for x in args if not isinstance(x, Linear)]


def for_unknowns(
    args: Iterable[Known], cts: Iterable[Tangent | None]
) -> list[Tangent | None]:
    """Cotangents of operands without those of operands that are values."""
    return [
        ct if isinstance(x, Linear) else None for x, ct in zip(args, cts, strict=True)
    ]
