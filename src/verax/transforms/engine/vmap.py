"""Floor 3: vectorization: the same program on a stack of inputs.

One idea: every variable is either the same for all elements or has the batch
dimension at a known place; an equation with no batched operand is copied as it is::

    { lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }
    { lambda ; a:f32[8,3]. let b:f32[8,3] = sin a in (b,) }
"""

from collections.abc import Sequence

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Eqn, Jaxpr, Literal
from verax.ir.meshes import explicit_on
from verax.ir.walk import beside, read
from verax.rules.rows.builder import Builder
from verax.rules.rows.row import Axis, Engine, MissingRule
from verax.rules.values.memo import Unshared
from verax.rules.values.state import Context, current_context
from verax.transforms.engine.manual import without_axis
from verax.transforms.engine.templates import (
    Writer,
    Written,
    batch_template,
    located,
    types,
)


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
    found = aval.stacked(size, axis, mapped.spmd)
    if aval.explicit is not None:
        return found
    splits = [mapped.spmd if i == axis else () for i in range(found.ndim)]
    return found.with_explicit(explicit_on(mapped.mesh, splits))


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
        template, out_axes = batch_template(
            context, engine, primitive, params, avals, size, axes
        )
    except Unshared as kept:
        template, out_axes = kept.result
    except MissingRule as error:
        raise located(error, eqn) from error
    env += writer.inline(template, ins, eqn.source.derived("vmap"))
    places += out_axes
