"""Floor 1: the type of a result, worked out once per primitive, params and types.

One idea: a type rule is pure, so its answer is a cache entry::

    infer(sin_p, NO_PARAMS, ShapedArray((3,), float32))
"""

from collections.abc import Callable, Iterable, Sequence

from verax.ir.avals import AbstractRef, ShapedArray
from verax.ir.jaxpr import Params
from verax.ir.meshes import NO_TERMS, terms_of
from verax.rules.rows.row import (
    Engine,
    Known,
    Linear,
    SomeRow,
    Tangent,
    Zero,
    as_typed,
    is_split,
    stripped,
)
from verax.rules.rows.type_shardings import (
    NAMED,
    checked_types,
    common_mesh,
    has_terms,
    is_uneven,
    terms_by,
    varies_only,
    varying_like,
)
from verax.rules.values.array import Array
from verax.rules.values.conversions import ShardingTypeError, UnsummedError
from verax.rules.values.memo import asked, pure


@pure(1 << 16)
def infer(row: SomeRow, params: Params, *avals: ShapedArray) -> tuple[ShapedArray, ...]:
    """The result types of `row` on operands of types `avals`.

    Raises:
        TypeError, ValueError: the operands do not fit; the text names the primitive.
    """
    if AbstractRef in map(type, avals) and not takes_references(params):
        raise TypeError(
            f"{row.name} takes arrays, not references {avals}; read them: ref[...]"
        )
    if is_split(avals):
        return infer_split(row, params, avals)
    return tuple(row.typing(params, avals))


class Uneven(Exception):
    """Some operands vary along axes of `shard_map` along which others do not.

    Who binds makes them vary alike and binds again; see `Builder.bind`.
    """


def infer_split(
    row: SomeRow, params: Params, avals: Sequence[ShapedArray]
) -> tuple[ShapedArray, ...]:
    """`infer` for operands of which explicit mesh axes split some.

    Raises:
        ShardingTypeError: how they split the results is ambiguous, or the row does not
            say it.
        ValueError: they are over different meshes.
        Uneven: the operands do not vary along the same axes.
    """
    if row.sharding is as_typed:
        return tuple(row.typing(params, avals))
    common_mesh(avals)
    if is_uneven(avals):
        raise Uneven(row.name)
    outs = tuple(row.typing(params, stripped(avals)))
    if varies_only(avals):
        return varying_like(avals, outs)
    if row.sharding is None:
        raise ShardingTypeError(
            f"{row.name} does not say how explicit mesh axes split its results, but "
            f"got {', '.join(map(str, avals))}; reshard the operands with "
            "verax.sharding.reshard, or call it within verax.sharding.auto_axes"
        )
    try:
        splits = row.sharding(params, avals, outs)
        terms = NO_TERMS
        if has_terms(avals):
            terms = terms_by(row.terms, params, avals)
        return checked_types(row.name, avals, outs, splits, terms)
    except UnsummedError as error:
        raise UnsummedError(
            f"unreduced rule for {row.name} is not implemented: {error}"
        ) from None
    except ShardingTypeError as error:
        text = str(error)
        if NAMED in text:
            raise ShardingTypeError(text.replace(NAMED, row.name)) from None
        joint = " " if text.startswith("got ") else ": "
        name = "" if text.startswith(row.name) else f"{row.name}{joint}"
        raise ShardingTypeError(f"{name}{text}") from None


def takes_references(params: Params) -> bool:
    """Whether operands may be references: to touch, or for a program inside."""
    return params.touches or any(True for _ in params.subjaxprs())


def inferred(
    row: SomeRow, params: Params, *avals: ShapedArray
) -> tuple[ShapedArray, ...]:
    """`infer` for any params: what holds arrays or closures is not kept."""
    return asked(infer, params, row, params, *avals)


# -----------------------------------------------------------------------------
# Which operands take part: masks, and what is picked by them.
#
# Tangents that are zero and operands that are unknown are told apart by class,
# programs take and give only the others, so a rule speaks of both by a mask::
#
#     pushed, mask = engine.jvp(jaxpr, nonzeros(tangents))
#     outs = bind(pushed, *primals, *live(tangents))


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
    """The flags that are set in one of the masks."""
    return tuple([any(flags) for flags in zip(*masks, strict=True)])


def fixpoint(start: Mask, step: Callable[[Mask], Sequence[bool]]) -> Mask:
    """The least mask that holds `start` and everything that follows from itself."""
    while True:
        result = either(start, step(start))
        if result == start:
            return start
        start = result


def live(tangents: Iterable[Tangent]) -> list[Array]:
    """The tangents that are not known to be zero."""
    return [t for t in tangents if not isinstance(t, Zero)]


def nonzeros(tangents: Iterable[Tangent]) -> Mask:
    """Flags of the tangents that are not known to be zero."""
    return tuple([not isinstance(t, Zero) for t in tangents])


def filled(
    mask: Sequence[bool], result: Iterable[Array], avals: Iterable[ShapedArray]
) -> list[Tangent]:
    """Tangents for all of `avals`: those found where marked, and zeros."""
    made = iter(result)
    return [
        next(made) if flag else Zero(aval.tangent())
        for flag, aval in zip(mask, avals, strict=True)
    ]


def cotangents(avals: Iterable[ShapedArray]) -> list[ShapedArray]:
    """The types of cotangents of values of these types."""
    return [aval.cotangent() for aval in avals]


def as_cotangent(engine: Engine, ct: object, due: ShapedArray) -> Array:
    """A cotangent in the dtype that is due, and summed or not as that type says."""
    out = engine.core.convert(ct, due.dtype, due.weak_type)
    if terms_of(out.aval.explicit) == terms_of(due.explicit):
        return out
    return engine.core.reshard(out, due.explicit)


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
    """Flags of the operands that are known by their type only."""
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
