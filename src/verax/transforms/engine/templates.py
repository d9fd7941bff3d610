"""Floor 3: rules run once: an equation's rewrite as a small jaxpr, memoised.

One idea: what a pure rule makes of an equation depends only on (context, table,
primitive, params, operand types, which operands take part), so it is a memo entry, and
every matching equation is rewritten by substituting variables::

    template = jvp_template(context, engine, sin_p, NO_PARAMS, (f32_8,), (True,))

Params that hold captured arrays or closures keep their templates themselves
(`recall`).
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol

from verax.ir.atoms import Atom
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import (
    UNKNOWN_SOURCE,
    Eqn,
    Jaxpr,
    Literal,
    Params,
    Primitive,
    Source,
)
from verax.ir.meshes import Axes, MeshType, explicit_on, terms_of
from verax.rules.rows.builder import Builder, program
from verax.rules.rows.infer import Mask, infer, nonzeros
from verax.rules.rows.row import (
    Axis,
    Engine,
    Linear,
    MissingRule,
    SomeRow,
    Tangent,
    Zero,
    as_typed,
    is_split,
    missing,
)
from verax.rules.rows.type_shardings import check_variation, common_mesh
from verax.rules.values.array import Array
from verax.rules.values.conversions import ShardingTypeError
from verax.rules.values.memo import asked, memo, pure, recall
from verax.rules.values.state import (
    Context,
    current_context,
    interpreting,
    user_source,
    widths_of,
)

TEMPLATES = 1 << 14

type Avals = tuple[ShapedArray, ...]
type Written = Atom | Array
"""The values of writers: all of them have a type."""


class Writer[V](Protocol):
    """Does with atoms what `Builder` does, or with values as another writer."""

    def copy(self, eqn: Eqn, atoms: Sequence[V | Literal], /) -> Sequence[V]:
        """The results of `eqn` on other operands of the same types."""
        ...

    def inline(
        self,
        jaxpr: Jaxpr,
        atoms: Sequence[V | Literal],
        source: Source | None = None,
        /,
    ) -> Sequence[V]:
        """The outputs of `jaxpr`, whose equations come from `source`."""
        ...


def located(error: MissingRule, eqn: Eqn) -> MissingRule:
    """The error of a rule that is missing, with the user's line."""
    return type(error)(f"{error}; met at {eqn.source}")


def writing(
    avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> AbstractContextManager[None]:
    """The block in which the rule for an equation of these types runs.

    Whether dtypes have 64 bits there, the types of the equation say, not this thread:
    the 2.0 in a rule beside a weak f32 is of 32 bits, as it was in the program.
    """
    return widths_of([aval.dtype for aval in (*avals, *outs)])


@memo(TEMPLATES)
def jvp_template(
    context: Context,
    engine: Engine,
    primitive: Primitive,
    params: Params,
    avals: Avals,
    nonzero: Mask,
) -> tuple[Jaxpr, Mask]:
    """(operands, nonzero tangents) -> (results, nonzero tangents), and which are."""
    row = engine.rules[primitive]
    if row.jvp is None:
        raise missing(row, "jvp", "give its row jvp=..., or use stop_gradient")
    if not any(nonzero):
        jaxpr = program(avals, lambda *xs: row.bind(params, *xs))
        return jaxpr, (False,) * len(jaxpr.outvars)
    builder = Builder("a jvp rule", source=UNKNOWN_SOURCE)
    primals = [builder.input(aval) for aval in avals]
    tangents: list[Tangent] = [
        builder.input(aval.tangent()) if active else Zero(aval.tangent())
        for aval, active in zip(avals, nonzero, strict=True)
    ]
    due = asked(infer, params, row, params, *avals)
    rule = row.jvp
    with interpreting(builder), writing(avals, due):
        (outs, out_tangents), mesh = freely(
            engine,
            builder,
            row,
            partial(rule, engine, params),
            primals,
            tangents,
        )
        results = [typed_as(engine, x, a, mesh) for x, a in zip(outs, due, strict=True)]
        moving = [
            typed_as(engine, t, a.tangent(), mesh)
            for t, a in zip(out_tangents, due, strict=True)
            if not isinstance(t, Zero)
        ]
    jaxpr, _ = builder.finish([*results, *moving])
    return jaxpr, nonzeros(out_tangents)


def equation_jvp(
    engine: Engine, primitive: Primitive, params: Params, avals: Avals, nonzero: Mask
) -> tuple[Jaxpr, Mask]:
    """`jvp_template` in the current context, for custom transformations."""
    context = current_context()
    return recall(
        jvp_template, params, context, engine, primitive, params, avals, nonzero
    )


def typed_as(
    engine: Engine, x: Array, aval: ShapedArray, mesh: MeshType | None
) -> Array:
    """`x`, weak if the required type is, and strong if not; split as it is.

    The equations that read the result were typed for that. A rule may well give
    another: of `strong + weak` the tangent of the weak operand alone is weak. Any other
    difference of types is a mistake of the rule, and stays to be found.
    """
    if x.aval.shape == aval.shape:
        x = split_as(engine, x, aval, mesh)
    if x.aval.weak_type == aval.weak_type or x.aval.dtype != aval.dtype:
        return x
    return engine.core.convert(x, aval.dtype, aval.weak_type)


@memo(TEMPLATES)
def transpose_template(
    context: Context,
    engine: Engine,
    primitive: Primitive,
    params: Params,
    avals: Avals,
    linear: Mask,
    nonzero: Mask,
    out_avals: Avals,
) -> tuple[Jaxpr, Mask]:
    """(other operands, nonzero cotangents) -> nonzero cotangents of linear operands."""
    row = engine.rules[primitive]
    if row.transpose is None:
        raise missing(
            row, "transpose", "it is not linear, or its row lacks transpose=..."
        )
    builder = Builder("a transpose rule", source=UNKNOWN_SOURCE)
    args = [
        Linear(aval) if flag else builder.input(aval)
        for aval, flag in zip(avals, linear, strict=True)
    ]
    cts: list[Tangent] = [
        builder.input(aval) if active else Zero(aval)
        for aval, active in zip(out_avals, nonzero, strict=True)
    ]
    rule = row.transpose
    with interpreting(builder), writing(avals, out_avals):
        result, mesh = freely(
            engine,
            builder,
            row,
            partial(rule, engine, params),
            cts,
            args,
        )
        results = [
            split_as(engine, ct, aval.cotangent(), mesh)
            if isinstance(ct, Array)
            else ct
            for ct, flag, aval in zip(result, linear, avals, strict=True)
            if flag
        ]
    live = [ct for ct in results if isinstance(ct, Array)]
    jaxpr, _ = builder.finish(live)
    return jaxpr, tuple(isinstance(ct, Array) for ct in results)


@memo(TEMPLATES)
def batch_template(
    context: Context,
    engine: Engine,
    primitive: Primitive,
    params: Params,
    avals: Avals,
    size: int,
    axes: tuple[Axis, ...],
) -> tuple[Jaxpr, tuple[Axis, ...]]:
    """Operands, batched at `axes`, to results, batched at the returned axes."""
    row = engine.rules[primitive]
    if row.batch is None:
        raise missing(row, "batch", "give its row batch=...")
    builder = Builder("a batch rule", source=UNKNOWN_SOURCE)
    args = [builder.input(aval) for aval in avals]
    rule = row.batch
    due = asked(infer, params, row, params, *map(element, avals, axes))
    with interpreting(builder), writing(avals, due):
        (outs, out_axes), _ = freely(
            engine,
            builder,
            row,
            partial(rule, engine, params, size),
            args,
            axes,
        )
        if is_split(avals) and row.sharding is not as_typed:
            outs = split_as_stack(engine, row, params, avals, axes, outs, out_axes)
    jaxpr, _ = builder.finish(outs)
    return jaxpr, tuple(out_axes)


type Rule = Callable[[Sequence[Any], Sequence[Any]], Any]


def freely(
    engine: Engine,
    builder: Builder,
    row: SomeRow,
    rule: Rule,
    xs: Sequence[object],
    ys: Sequence[object],
) -> tuple[Any, MeshType | None]:
    """Applies a rule to operands, some of which explicit mesh axes may split.

    Where the steps of the rule leave open how values are split, the compiler decides:
    what comes in loses its axes, and results must get those that are due, on the mesh
    that is returned.
    """
    avals = [x.aval for x in (*xs, *ys) if hasattr(x, "aval")]
    if not is_split(avals):
        return rule(xs, ys), None
    try:
        with builder.undone_on_error():
            return rule(xs, ys), None
    except ShardingTypeError:
        if row.sharding is as_typed:
            raise
    free = [[without_axes(engine, x) for x in part] for part in (xs, ys)]
    return rule(*free), common_mesh(avals)


def without_axes(engine: Engine, x: object) -> object:
    """An operand of a rule, of which its type says not how it is split."""
    if isinstance(x, Zero | Linear):
        return type(x)(x.aval.whole())
    return engine.core.reshard(x, None) if isinstance(x, Array) else x


def split_as(
    engine: Engine, x: Array, aval: ShapedArray, mesh: MeshType | None
) -> Array:
    """A value split as a type says; whole on `mesh`, if there is one and it is not."""
    if mesh is None and x.aval.explicit == aval.explicit:
        return x
    out = engine.core.reshard(x, aval.explicit, mesh)
    check_variation(out.aval, aval)
    return out


def split_as_stack(
    engine: Engine,
    row: SomeRow,
    params: Params,
    avals: Avals,
    axes: Sequence[Axis],
    outs: Sequence[Array],
    out_axes: Sequence[Axis],
) -> list[Array]:
    """Results of a batch rule, each element split as the equation says."""
    batch: Axes = ()
    if engine.axis is not None and engine.axis.mesh is not None:
        batch = engine.axis.spmd
    ones = [element(aval, axis) for aval, axis in zip(avals, axes, strict=True)]
    due = asked(infer, params, row, params, *ones)
    mesh = common_mesh(avals)
    out = []
    for x, axis, aval in zip(outs, out_axes, due, strict=True):
        splits = ((),) * aval.ndim if aval.explicit is None else aval.explicit.splits
        if axis is not None:
            splits = (*splits[:axis], batch, *splits[axis:])
        terms = terms_of(aval.explicit)
        out.append(engine.core.reshard(x, explicit_on(mesh, splits, terms)))
    return out


def element(aval: ShapedArray, axis: Axis) -> ShapedArray:
    """The type of one element of a stack, or of what is the same for all."""
    return aval if axis is None else aval.element(axis)


@pure(TEMPLATES)
def sum_template(engine: Engine, x: ShapedArray, y: ShapedArray) -> Jaxpr:
    """The sum of two cotangents of these types, as a program."""
    return program((x, y), lambda x, y: (engine.core.add(x, y),), "transpose")


def added[V: Written](
    engine: Engine, writer: Writer[V], before: V | None, ct: V, source: Source | None
) -> V:
    """A cotangent added to what there is so far; `source` is that of the sum."""
    if before is None:
        return ct
    template = sum_template(engine, before.aval, ct.aval)
    return writer.inline(template, (before, ct), source)[0]


@pure(TEMPLATES)
def cast_template(engine: Engine, given: ShapedArray, due: ShapedArray) -> Jaxpr:
    """The conversion of a tangent to the type `due`, as a program."""

    def cast(x: Array) -> Sequence[Array]:
        same = engine.core.convert(x, due.dtype, due.weak_type)
        array = engine.core.reshard(same, due.explicit)
        if array.aval.explicit is not None:
            check_variation(array.aval, due)
        return (array,)

    return program((given,), cast)


def coerce[V: Written](
    engine: Engine, writer: Writer[V], tangent: V, due: ShapedArray
) -> V:
    """The tangent in the type of its primal: weakness may differ, and mesh axes."""
    given: ShapedArray = tangent.aval
    if given is due:
        return tangent
    template = cast_template(engine, given, due)
    return writer.inline(template, (tangent,), user_source())[0]


def types(atoms: Sequence[Written]) -> Avals:
    """The types of atoms, as a part of a cache key."""
    return tuple([a.aval for a in atoms])
