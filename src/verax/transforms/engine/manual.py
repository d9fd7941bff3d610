"""Floor 3: programs without what their types say of an axis of `shard_map`.

Inside `shard_map`, types say along which axes values vary, which is what derivatives
that are taken there need. Where the program becomes one of whole arrays, the axis is a
dimension like others, and its types are those of all arrays again::

    { lambda ; a:f32[]{V:m}. let b:f32[]{V:m} = sin a in (b,) }
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
"""

from collections.abc import Sequence

from attrs import evolve, fields

from verax.ir.atoms import Atom
from verax.ir.avals import AbstractRef, ShapedArray
from verax.ir.jaxpr import NO_PARAMS, Eqn, Jaxpr, Params, results
from verax.ir.meshes import (
    AxisType,
    Explicit,
    MeshType,
    explicit_on,
    terms_along,
)
from verax.ir.walk import map_subjaxprs
from verax.rules.rows.builder import Builder, rebuilt
from verax.rules.values.memo import pure, recall


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
    """What a type says that does not speak of an axis, which is the compiler's."""
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
