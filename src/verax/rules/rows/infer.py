"""Floor 1: the type of a result, worked out once per primitive, params and types.

One idea: a type rule is pure, so its answer is a cache entry::

    infer(sin_p, NO_PARAMS, ShapedArray((3,), float32))
"""

from collections.abc import Sequence
from typing import Any, Final

from verax.ir.avals import AbstractRef, ShapedArray
from verax.ir.jaxpr import Params
from verax.ir.meshes import NO_TERMS
from verax.rules.rows.row import Row, as_typed, is_split, stripped
from verax.rules.values.lazy import LazyModule
from verax.rules.values.memo import asked, pure
from verax.rules.values.typed import ShardingTypeError, UnsummedError

# Few programs have meshes with explicit axes.
SPLITS: Final = LazyModule("verax.rules.rows.type_shardings")


@pure(1 << 16, holder="params", keep=False)
def infer(
    row: Row[Any], params: Params, *avals: ShapedArray
) -> tuple[ShapedArray, ...]:
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
    row: Row[Any], params: Params, avals: Sequence[ShapedArray]
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
    SPLITS.common_mesh(avals)
    if SPLITS.is_uneven(avals):
        raise Uneven(row.name)
    outs = tuple(row.typing(params, stripped(avals)))
    if SPLITS.varies_only(avals):
        free: tuple[ShapedArray, ...] = SPLITS.varying_like(avals, outs)
        return free
    if row.sharding is None:
        raise ShardingTypeError(
            f"{row.name} does not say how explicit mesh axes split its results, but "
            f"got {', '.join(map(str, avals))}; reshard the operands with "
            "verax.sharding.reshard, or call it within verax.sharding.auto_axes"
        )
    try:
        splits = row.sharding(params, avals, outs)
        terms = NO_TERMS
        if SPLITS.has_terms(avals):
            terms = SPLITS.terms_by(row.terms, params, avals)
        found: tuple[ShapedArray, ...] = SPLITS.checked_types(
            row.name, avals, outs, splits, terms
        )
        return found
    except UnsummedError as error:
        raise UnsummedError(
            f"unreduced rule for {row.name} is not implemented: {error}"
        ) from None
    except ShardingTypeError as error:
        text = str(error)
        joint = " " if text.startswith("got ") else ": "
        name = "" if text.startswith(row.name) else f"{row.name}{joint}"
        raise ShardingTypeError(f"{name}{text}") from None


def takes_references(params: Params) -> bool:
    """Whether operands may be references: to touch, or for a program inside."""
    return params.touches or any(True for _ in params.subjaxprs())


def inferred(
    row: Row[Any], params: Params, *avals: ShapedArray
) -> tuple[ShapedArray, ...]:
    """`infer` for any params: what holds arrays or closures is not kept."""
    return asked(infer, params, row, params, *avals)
