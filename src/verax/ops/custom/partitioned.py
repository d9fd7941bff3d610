"""Floor 2: `custom_partitioning`: a call that the user partitions over devices.

The equation holds the function and, as a value, the rule. In a program for one device
it means the function; over a mesh, XLA asks the rule what each device computes::

    b:f32[8] = custom_partitioning[name=f captured=0 jaxpr={ ... } rule=...] a
"""

from collections.abc import Sequence
from typing import NoReturn

from attrs import evolve, frozen

from verax.ir.avals import ShapedArray
from verax.ir.effects import NO_EFFECTS, Effect
from verax.ir.jaxpr import Jaxpr, Params
from verax.ops.calls.call import NamedCall, jit_p, rule_call
from verax.ops.calls.callbacks import LANE_BY_LANE, METHODS, VECTORIZED, whole
from verax.ops.control.scan import one_by_one
from verax.ops.custom.base import custom_row, lower_body
from verax.rules.rows.emitter import (
    Emitter,
    Operand,
    Partitioner,
    aliases_text,
    batch_attributes,
    flag,
    layout_text,
    typed_call,
)
from verax.rules.rows.row import (
    Axis,
    Engine,
    ForeignDerivative,
    Known,
    MissingRule,
    Row,
    Rows,
    Tangent,
    Traits,
    unknown_flops,
)
from verax.rules.values.array import Array


@frozen(eq=False, repr=False)
class PartitioningParams(NamedCall):
    """The function, how many of its first inputs it captured, and the rule."""

    name: str
    captured: int
    jaxpr: Jaxpr
    rule: Partitioner


def lower_partitioned(
    e: Emitter,
    p: PartitioningParams,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> Sequence[Operand]:
    """Lowers what XLA asks the rule about; on one device the function.

    Raises:
        TypeError: the function has effects, which no device would own.
    """
    if not outs:
        return lower_body(e, p, operands, outs)
    out = e.partitioned(p.rule, operands[p.captured :], outs)
    if out is None:
        return lower_body(e, p, operands, outs)
    if p.jaxpr.effects:
        raise TypeError(
            f"the custom_partitioning function {p.name} has effects, which a program "
            "over several devices would lose: take the callbacks out of it"
        )
    return out


def refused(p: PartitioningParams, what: str, advice: str) -> MissingRule:
    """The error for a transformation of which the rule says nothing."""
    return MissingRule(
        f"{what} of the custom_partitioning function {p.name}: its rule says nothing "
        f"about that; {advice}"
    )


def jvp_refused(
    engine: Engine,
    p: PartitioningParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    raise refused(
        p,
        "the derivative",
        "give the function that calls it a derivative with verax.custom_vjp or "
        "verax.custom_jvp, which may call other such functions",
    )


def transpose_refused(
    engine: Engine,
    p: PartitioningParams,
    cts: Sequence[Tangent],
    args: Sequence[Known],
) -> Sequence[Tangent | None]:
    raise refused(
        p, "the transpose", "give the function that calls it one with custom_vjp"
    )


def batch_partitioned(
    engine: Engine,
    p: PartitioningParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """Inside `shard_map` the function, which each device computes for itself.

    Raises:
        MissingRule: the elements are not those of devices.
    """
    if engine.axis is not None and engine.axis.of_parts:
        jaxpr, out_axes = engine.batch(p.jaxpr, size, tuple(axes))
        return jit_p.bind(rule_call(p.name, jaxpr), *args), out_axes
    raise refused(
        p,
        "vmap",
        "write the function for arrays with leading dimensions (`...` in its "
        "sharding_rule), or give it a batching rule with verax.custom_batching",
    )


custom_partitioning_p: Row[PartitioningParams] = custom_row(
    "custom_partitioning",
    PartitioningParams,
    jvp=jvp_refused,
    transpose=transpose_refused,
    batch=batch_partitioned,
    lower=lower_partitioned,
)
ROWS: Rows = (custom_partitioning_p,)


# -----------------------------------------------------------------------------
# Calls of functions in other languages, by the name of a target of XLA.
#
# An equation states all that XLA is told of the call: types and layouts of operands and
# results, which operand a result may overwrite, and attributes, as text of MLIR::
#
#     b:f32[8] = ffi_call[target=rms_norm config=eps = 1e-05 : f32 ...] a
#
# Nothing is known of what happens inside, so a derivative is given around the call, and
# `vmap_method` says what a batch is to it.


FFI = Effect("FFI")
TYPED = 4
"""The version of XLA's calls in which attributes are typed."""

type MinorToMajor = tuple[int, ...]


@frozen(cache_hash=True, repr=False)
class ForeignParams(Params):
    """The target, and what XLA is told of its operands and results.

    Layouts are from minor to major; `aliases` are pairs of an operand and the result
    that overwrites it; `config` is the text of the attributes, or with an `api_version`
    below 4 a string that the target reads itself. The first `batch_dims` dimensions
    of all operands and results are those of `vmap`, and alike.
    """

    target: str
    results: tuple[ShapedArray, ...]
    input_layouts: tuple[MinorToMajor, ...]
    output_layouts: tuple[MinorToMajor, ...]
    aliases: tuple[tuple[int, int], ...]
    config: str
    api_version: int
    has_side_effect: bool
    vmap_method: str | None
    batch_dims: int = 0

    @property
    def effects(self) -> frozenset[Effect]:
        return frozenset((FFI,)) if self.has_side_effect else NO_EFFECTS


def typing_foreign(
    p: ForeignParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    for layout, aval in zip(p.input_layouts, avals, strict=True):
        if len(layout) != aval.ndim:
            raise TypeError(
                f"the foreign function {p.target} takes an operand of "
                f"{len(layout)} dimensions here, not {aval}"
            )
    return p.results


def refuse_derivative(engine: Engine, p: ForeignParams, *operands: object) -> NoReturn:
    raise ForeignDerivative(
        f"The FFI call to `{p.target}` cannot be differentiated. Give the function "
        "that calls it a derivative with verax.custom_jvp or verax.custom_vjp"
    )


def in_front(layout: MinorToMajor) -> MinorToMajor:
    """The layout of a batch of such arrays: the batch is the slowest dimension."""
    return (*[axis + 1 for axis in layout], 0)


def batch_foreign(
    engine: Engine,
    p: ForeignParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """One call for each element, or one of the whole batch."""
    if p.vmap_method in LANE_BY_LANE:
        return one_by_one(lambda *xs: ffi_call_p.bind(p, *xs), size, args, axes)
    if p.vmap_method not in METHODS:
        raise MissingRule(
            "vmap is only supported for the ffi_call primitive when vmap_method is one "
            f"of {', '.join(map(repr, METHODS))}. Got vmap_method="
            f"{p.vmap_method!r} for the target {p.target}"
        )
    given, layouts = [], []
    for x, axis, layout in zip(args, axes, p.input_layouts, strict=True):
        given.append(whole(p.vmap_method, x, axis, size))
        alone = axis is None and p.vmap_method == VECTORIZED
        layouts.append(layout if alone else in_front(layout))
    alike = all([x.shape[:1] == (size,) for x in given])
    params = evolve(
        p,
        batch_dims=p.batch_dims + 1 if alike and p.vmap_method != VECTORIZED else 0,
        results=tuple([a.with_shape((size, *a.shape)) for a in p.results]),
        input_layouts=tuple(layouts),
        output_layouts=tuple(map(in_front, p.output_layouts)),
    )
    outs = ffi_call_p.bind(params, *given)
    return outs, [0] * len(outs)


def lower_foreign(
    e: Emitter, p: ForeignParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    batched = batch_attributes([x.aval for x in xs], outs, p.batch_dims)
    plain = {
        "api_version": f"{p.api_version} : i32",
        "backend_config": quoted(p.config),
    }
    return e.op(
        "stablehlo.custom_call",
        xs,
        outs,
        (),
        call_target_name=quoted(p.target),
        has_side_effect=flag(p.has_side_effect),
        operand_layouts=listed(p.input_layouts),
        result_layouts=listed(p.output_layouts),
        output_operand_aliases=aliases_text(p.aliases, len(p.results)),
        **(typed_call(p.config) if p.api_version >= TYPED else plain),
        **batched,
    )


def listed(layouts: Sequence[MinorToMajor]) -> str:
    return f"[{', '.join(map(layout_text, layouts))}]"


def quoted(text: str) -> str:
    r"""A string attribute.

    >>> quoted('a "b"')
    '"a \\22b\\22"'
    """
    out = [
        c if c.isascii() and c.isprintable() and c not in '"\\' else escaped(c)
        for c in text
    ]
    return f'"{"".join(out)}"'


def escaped(character: str) -> str:
    """The bytes of a character as MLIR escapes them."""
    return "".join([f"\\{byte:02X}" for byte in character.encode()])


ffi_call_p: Row[ForeignParams] = Row(
    "ffi_call",
    ForeignParams,
    typing=typing_foreign,
    jvp=refuse_derivative,
    transpose=refuse_derivative,
    batch=batch_foreign,
    lower=lower_foreign,
    compiled=True,
    multiple_results=True,
    traits=Traits(flops=unknown_flops),
)
