"""Floor 3: vectorization: the same program on a stack of inputs.

One idea: every variable is either the same for all elements or has the batch
dimension at a known place; an equation with no batched operand is copied as it is::

    { lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }
    { lambda ; a:f32[8,3]. let b:f32[8,3] = sin a in (b,) }
"""

from collections.abc import Sequence

from attrs import evolve, fields

from verax.ir.atoms import Atom
from verax.ir.avals import AbstractRef, ShapedArray
from verax.ir.jaxpr import NO_PARAMS, Eqn, Jaxpr, Literal, Params, results
from verax.ir.meshes import (
    AxisType,
    Explicit,
    MeshType,
    explicit_on,
    terms_along,
)
from verax.ir.walk import beside, map_subjaxprs, read
from verax.rules.rows.builder import Builder, rebuilt
from verax.rules.rows.row import Axis, Engine, MissingRule
from verax.rules.values.memo import pure, recall
from verax.rules.values.state import Context, current_context
from verax.transforms.engine.templates import (
    Writer,
    Written,
    batch_template,
    located,
    types,
)

# -----------------------------------------------------------------------------
# Programs without what their types say of an axis of `shard_map`.
#
# Inside `shard_map`, types say along which axes values vary, which is what derivatives
# that are taken there need. Where the program becomes one of whole arrays, the axis is
# a dimension like others, and its types are those of all arrays again::
#
#     { lambda ; a:f32[]{V:m}. let b:f32[]{V:m} = sin a in (b,) }
#     { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }


def without_axis(jaxpr: Jaxpr, name: str) -> Jaxpr:
    """The program whose types do not speak of an axis; casts along it are gone."""
    return recall(untracked, jaxpr, jaxpr, name)


@pure(1 << 12)
def untracked(jaxpr: Jaxpr, name: str) -> Jaxpr:
    """`without_axis`, remembered."""

    def write(builder: Builder, eqn: Eqn, ins: tuple[Atom, ...]) -> Sequence[Atom]:
        params = plain_params(eqn.params, name)
        if params is None:
            return ins
        outs = results(0, tuple([plain_type(v.aval, name) for v in eqn.outvars]))
        return builder.copy(Eqn(eqn.primitive, params, ins, outs, eqn.source), ins)

    avals = [plain_type(aval, name) for aval in jaxpr.in_avals]
    return rebuilt(jaxpr, write, "shard_map", avals)


def plain_type(aval: ShapedArray, name: str) -> ShapedArray:
    """A type that does not speak of an axis."""
    if aval.explicit is None:
        return aval
    if isinstance(aval, AbstractRef):
        return AbstractRef(plain_type(aval.inner_aval, name))
    return aval.with_explicit(plain_explicit(aval.explicit, name))


def plain_explicit(explicit: Explicit, name: str) -> Explicit | None:
    """The type without what it says of an axis, which is the compiler's."""
    mesh = explicit.mesh
    rest = terms_along(explicit.terms, [axis for axis in mesh.names if axis != name])
    return explicit_on(plain_mesh(mesh, name), explicit.splits, rest)


def plain_mesh(mesh: MeshType, name: str) -> MeshType:
    """The mesh along whose axis the compiler decides."""
    types = [
        AxisType.Auto if axis == name else kind
        for axis, kind in zip(mesh.names, mesh.types, strict=True)
    ]
    return MeshType(mesh.names, mesh.sizes, tuple(types))


def plain_params(params: Params, name: str) -> Params | None:
    """Params whose types and programs do not speak of an axis; None of a mere cast."""
    if params is NO_PARAMS:
        return params
    own = params.without_axis(name)
    if own is None:
        return None
    changes: dict[str, object] = {}
    for attribute in fields(type(own)):
        before: object = getattr(own, attribute.name)
        after = plain_value(before, name)
        if after is not before:
            changes[attribute.alias or attribute.name] = after
    typed = evolve(own, **changes) if changes else own
    return map_subjaxprs(typed, lambda inner: without_axis(inner, name))


def plain_value(value: object, name: str) -> object:
    """An attribute of params that does not speak of an axis; itself if it does not."""
    if isinstance(value, ShapedArray):
        return plain_type(value, name)
    if isinstance(value, MeshType):
        mesh = plain_mesh(value, name) if name in value.names else value
        return value if mesh == value else mesh
    if isinstance(value, Explicit):
        return plain_explicit(value, name)
    if isinstance(value, tuple) and any([isinstance(x, ShapedArray) for x in value]):
        return tuple([plain_value(x, name) for x in value])
    return value


# -----------------------------------------------------------------------------
# Vectorization: the same program on a stack of inputs.


def batch(
    engine: Engine, jaxpr: Jaxpr, size: int, axes: tuple[Axis, ...]
) -> tuple[Jaxpr, tuple[Axis, ...]]:
    """The program over `size` elements at once.

    Contract: input i has the extra dimension of length `size` at `axes[i]`, or is the
    same for all elements where that is None. The returned axes say the same of the
    outputs.
    """
    mapped = engine.axis
    if mapped is not None and mapped.of_parts:
        jaxpr = without_axis(jaxpr, mapped.spmd[0])
    builder = Builder("vmap")
    ins = builder.input_atoms(stacked(engine, jaxpr, size, axes))
    batched = batch_into(engine, builder, jaxpr, size, axes, ins)
    return builder.close(batched[0])[0], batched[1]


def stacked(
    engine: Engine, jaxpr: Jaxpr, size: int, axes: Sequence[Axis]
) -> list[ShapedArray]:
    """The types of the inputs of the program over `size` elements."""
    return [
        v.aval if axis is None else stack_type(engine, v.aval, size, axis)
        for v, axis in zip(jaxpr.invars, axes, strict=True)
    ]


def stack_type(engine: Engine, aval: ShapedArray, size: int, axis: int) -> ShapedArray:
    """The type of a stack along dimension `axis`, split as the map says."""
    mapped = engine.axis
    if mapped is None or mapped.mesh is None:
        return aval.stacked(size, axis)
    out = aval.stacked(size, axis, mapped.spmd)
    if aval.explicit is not None:
        return out
    splits = [mapped.spmd if i == axis else () for i in range(out.ndim)]
    return out.with_explicit(explicit_on(mapped.mesh, splits))


def batch_into[V: Written](
    engine: Engine,
    writer: Writer[V],
    jaxpr: Jaxpr,
    size: int,
    axes: Sequence[Axis],
    ins: Sequence[V],
) -> tuple[list[V | Literal], tuple[Axis, ...]]:
    """`batch`, written, or run, by `writer` on what has the types `stacked`."""
    context = current_context()
    env, places = list(ins), list(axes)
    for eqn in jaxpr.eqns:
        batch_eqn(context, engine, writer, eqn, size, env, places)
    return read(jaxpr.outvars, env), tuple(beside(jaxpr.outvars, places))


def meets(engine: Engine, eqn: Eqn) -> bool:
    """Whether a collective in the equation names the dimension that is added.

    A rule of the user's own may, whose program is not known yet.
    """
    axis = engine.axis
    if axis is None:
        return False
    return axis.name in eqn.params.named_axes or axis.name in eqn.params.rule_axes


def batch_eqn[V: Written](
    context: Context,
    engine: Engine,
    writer: Writer[V],
    eqn: Eqn,
    size: int,
    env: list[V],
    places: list[Axis],
) -> None:
    """Write one equation over all elements, or once if it is the same for all."""
    ins = read(eqn.invars, env)
    axes = tuple(beside(eqn.invars, places))
    if axes.count(None) == len(axes) and not meets(engine, eqn):
        env += writer.copy(eqn, ins)
        places += [None] * len(eqn.outvars)
        return
    primitive, params, avals = eqn.primitive, eqn.params, types(ins)
    try:
        key = (context, engine, primitive, params, avals, size, axes)
        # A frame less for each level of nested programs than `recall` alone.
        template, out_axes = (
            recall(batch_template, params, *key)
            if params.transient
            else batch_template(*key)
        )
    except MissingRule as error:
        raise located(error, eqn) from error
    env += writer.inline(template, ins, eqn.source.derived("vmap"))
    places += out_axes
