"""Floor 1: the family of elementwise primitives.

One idea: a row says its mathematics (NumPy function, derivative, StableHLO name) and
the family adds what all elementwise rows share: types, scalar operands, batching,
symbolic zeros, sums of contributions, and samples for the tests::

    sin_p = elementwise(
        "sin", np.sin, jvp=lambda x, y, t: mul(t, cos(x)), lower=stablehlo("sine")
    )

Operands have one dtype and the same number of dimensions; a dimension of size 1 goes
with any size, and an operand without dimensions with any shape.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from attrs import evolve, frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import (
    DType,
    int2,
    int4,
    int8,
    is_complex,
    is_signed,
    uint2,
    uint4,
    uint8,
)
from verax.ir.jaxpr import NO_PARAMS, NoParams, Params
from verax.ir.records import ReprMixin
from verax.rules.rows.builder import program
from verax.rules.rows.eager_costs import Costly, narrow_floats
from verax.rules.rows.emitter import Emitter, Operand, converted
from verax.rules.rows.kernels import Kernel
from verax.rules.rows.row import (
    NO_TRAITS,
    NOWHERE,
    REALS,
    Axis,
    Domain,
    Engine,
    EvaluateRule,
    Known,
    Linear,
    LowerRule,
    Row,
    Sample,
    Tangent,
    TermRule,
    Traits,
    TypeRule,
    Zero,
    as_typed,
    each_result,
    no_flops,
)
from verax.rules.rows.type_shardings import axis_by_axis
from verax.rules.values.array import Array
from verax.rules.values.constants import ANY_FLOAT, Kind
from verax.rules.values.conversions import NotLinear

type Maths = Callable[..., Any]
type PerOperand = Maths | Sequence[Maths | None] | None
SHAPES: tuple[Shape, ...] = ((), (3,), (2, 3), (1,), (0,), (2, 1, 2))


def elementwise(
    name: str,
    evaluate: Maths,
    *,
    lower: Maths,
    lower_on: Mapping[str, Maths] = NOWHERE,
    kernel: Kernel | None = None,
    operands: int = 1,
    jvp: PerOperand = None,
    transpose: PerOperand = None,
    accepts: Kind = ANY_FLOAT,
    result: Callable[[DType], DType] | None = None,
    domains: Domain | Sequence[Domain] = REALS,
    costly: Costly | None = narrow_floats,
    terms: TermRule[NoParams] | None = None,
    traits: Traits = NO_TRAITS,
) -> Row[NoParams]:
    """A row without params from functions of the operands alone.

    `evaluate(*arrays)` is NumPy's function. `jvp` has one function per operand (or one
    function for a unary row): `(*operands, result, tangent) -> contribution`, or None
    where the derivative is zero. `transpose` has one per operand:
    `(cotangent, *operands) -> cotangent of the operand`, None where it is not linear;
    a linear operand itself arrives as `Linear`. `lower` comes from `stablehlo`, `chlo`
    or `composed`, and so do the rules of `lower_on`, for platforms that lower
    differently; `kernel` says the function in simpler operations. `accepts` are the
    dtypes; `result` maps the dtype, else it is kept.
    `terms` is the column of rows that are linear. The family adds to `traits` that
    the row is elementwise, and one operation for each element if `flops` says nothing.
    """
    kept = result or (lambda dtype: dtype)
    return parametric(
        name,
        NoParams,
        lambda p, *xs: evaluate(*xs),
        lower=lambda e, p, *rest: lower(e, p, *rest),
        lower_on=lower_on,
        kernel=kernel,
        operands=operands,
        jvp=without_params(jvp),
        transpose=without_params(transpose),
        accepts=accepts,
        result=lambda p, dtype: kept(dtype),
        domains=domains,
        costly=costly,
        params_of=lambda random, dtype: NO_PARAMS,
        column=lambda engine, p, xs: (evaluate(*xs),),
        terms=terms,
        traits=traits,
    )


def without_params(rules: PerOperand) -> PerOperand:
    if rules is None:
        return None
    if callable(rules):
        return lambda p, *xs: rules(*xs)
    return [None if rule is None else ignoring_params(rule) for rule in rules]


def ignoring_params(rule: Maths) -> Maths:
    return lambda p, *xs: rule(*xs)


def parametric[P: Params](
    name: str,
    params: type[P],
    evaluate: Maths,
    *,
    lower: LowerRule[P],
    lower_on: Mapping[str, LowerRule[P]] = NOWHERE,
    kernel: Kernel | None = None,
    params_of: Callable[[Random, DType], P],
    operands: int = 1,
    jvp: PerOperand = None,
    transpose: PerOperand = None,
    accepts: Kind = ANY_FLOAT,
    result: Callable[[P, DType], DType] | None = None,
    typing: TypeRule[P] | None = None,
    draw: Callable[[Random], Sample[P]] | None = None,
    domains: Domain | Sequence[Domain] = REALS,
    costly: Costly | None = narrow_floats,
    column: EvaluateRule[P] | None = None,
    terms: TermRule[P] | None = None,
    traits: Traits = NO_TRAITS,
) -> Row[P]:
    """`elementwise` for a row with params: each function takes them first.

    `params_of(random, dtype)` draws params for the tests. `typing` replaces the type
    rule, and `draw` the samples, when operands have dtypes of their own. `column` is
    the evaluate column, where `evaluate` has a shorter form.
    """
    derivatives = per_operand(jvp, operands)
    adjoints = per_operand(transpose, operands)
    out_dtype = result or (lambda p, dtype: dtype)
    row: Row[P] = Row(
        name,
        params,
        typing=typing or elementwise_typing(name, operands, accepts, out_dtype),
        evaluate=column or (lambda engine, p, xs: (evaluate(p, *xs),)),
        jvp=lambda engine, p, xs, ts: sum_of_contributions(
            engine, row, p, derivatives, xs, ts
        ),
        transpose=None
        if transpose is None
        else lambda engine, p, cts, xs: adjoint(engine, p, adjoints, cts[0], xs),
        batch=lambda engine, p, size, xs, axes: batch_elementwise(
            engine, row, p, size, xs, axes
        ),
        lower=with_full_operands(lower),
        lower_on={name: with_full_operands(f) for name, f in lower_on.items()},
        kernel=kernel,
        draw=draw or (lambda random: draw_sample(random, operands, accepts, params_of)),
        domains=(domains,) * operands
        if isinstance(domains, Domain)
        else tuple(domains),
        costly=costly,
        sharding=axis_by_axis,
        terms=terms,
        traits=evolve(traits, elementwise=True, flops=traits.flops or each_result),
    )
    return row


def with_full_operands[P](rule: LowerRule[P]) -> LowerRule[P]:
    return lambda e, p, xs, outs: rule(e, p, full_operands(e, xs, outs), outs)


def per_operand(rules: PerOperand, operands: int) -> tuple[Maths | None, ...]:
    if rules is None:
        return (None,) * operands
    return (rules,) * operands if callable(rules) else tuple(rules)


def elementwise_typing[P](
    name: str,
    operands: int,
    accepts: Kind,
    result: Callable[[P, DType], DType],
    shape: Callable[[str, Sequence[ShapedArray]], Shape] | None = None,
) -> TypeRule[P]:
    """Same dtype, shapes that go together, weak where all operands are weak.

    `shape` is the shape of the result by those of the operands, else `joint_shape`.
    """
    shape_of = shape or joint_shape

    def typing(params: P, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
        if len(avals) != operands:
            raise TypeError(f"{name} takes {operands} operands, not {len(avals)}")
        dtype = avals[0].dtype
        if any(aval.dtype != dtype for aval in avals):
            for aval in avals:
                accepts.check(name, aval.dtype)
            raise TypeError(
                f"{name} requires arguments to have the same dtypes, not "
                f"{', '.join(str(aval.dtype) for aval in avals)}; convert them "
                "(verax.lax.convert_element_type) or use verax.numpy, which promotes"
            )
        accepts.check(name, dtype)
        weak = all(aval.weak_type for aval in avals)
        return (ShapedArray(shape_of(name, avals), result(params, dtype), weak),)

    return typing


def common_shape(name: str, avals: Sequence[ShapedArray]) -> Shape:
    """The one shape of all operands that have dimensions, or `()`."""
    shapes = [aval.shape for aval in avals if aval.shape]
    if any(shape != shapes[0] for shape in shapes):
        raise TypeError(
            f"{name} takes operands of the same shape (or scalars), not "
            f"{', '.join(str(aval.shape) for aval in avals)}; use verax.numpy, which "
            "broadcasts, or verax.lax.broadcast_in_dim"
        )
    return shapes[0] if shapes else ()


def joint_shape(name: str, avals: Sequence[ShapedArray]) -> Shape:
    """The shape of the result: sizes of 1 grow to those of the other operands."""
    shapes = [aval.shape for aval in avals if aval.shape]
    for shape in shapes:
        if shape != shapes[0]:
            break
    else:
        return shapes[0] if shapes else ()
    if len(set(map(len, shapes))) > 1:
        raise TypeError(
            f"{name} takes arrays with the same number of dimensions (or scalars), not "
            f"of shapes {', '.join(str(aval.shape) for aval in avals)}; use "
            "verax.numpy, which broadcasts, or verax.lax.broadcast_in_dim"
        )
    sizes = [set(column) - {1} or {1} for column in zip(*shapes, strict=True)]
    if any(len(other) > 1 for other in sizes):
        raise TypeError(
            f"{name} takes arrays of the same shape, where a dimension of size 1 goes "
            f"with any size, not of shapes {', '.join(map(str, shapes))}"
        )
    return tuple([min(size) for size in sizes])


def broadcast_full(engine: Engine, x: Array, shape: Shape) -> Array:
    """`x` in the shape of the result; a scalar stays one."""
    if x.shape == shape or not x.shape:
        return x
    return engine.core.broadcast_in_dim(x, shape, tuple(range(len(shape))))


def sum_of_contributions[P: Params](
    engine: Engine,
    row: Row[P],
    params: P,
    rules: Sequence[Maths | None],
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """The jvp of an elementwise row: the contributions of its operands, summed."""
    y = row.call(params, *primals)
    if any(x.shape and x.shape != y.shape for x in primals):
        primals = [broadcast_full(engine, x, y.shape) for x in primals]
        tangents = [
            t if isinstance(t, Zero) else broadcast_full(engine, t, y.shape)
            for t in tangents
        ]
    total: Array | None = None
    for rule, t in zip(rules, tangents, strict=True):
        if rule is None or isinstance(t, Zero):
            continue
        part = rule(params, *primals, y, t)
        if isinstance(part, Zero):
            continue
        if part.shape != y.shape:
            part = engine.core.broadcast_in_dim(part, y.shape, ())
        total = part if total is None else engine.core.add(total, part)
    return (y,), (Zero(y.aval.tangent()) if total is None else total,)


def adjoint[P: Params](
    engine: Engine,
    params: P,
    rules: Sequence[Maths | None],
    cotangent: Tangent,
    operands: Sequence[Known],
) -> Sequence[Tangent | None]:
    """The transpose of an elementwise row in those operands that are linear."""
    results: list[Tangent | None] = []
    for rule, operand in zip(rules, operands, strict=True):
        if not isinstance(operand, Linear):
            results.append(None)
        elif isinstance(cotangent, Zero):
            results.append(Zero(operand.aval))
        elif rule is None:
            raise NotLinear(
                f"the rule cannot be transposed with respect to operand {len(results)}"
            )
        else:
            part = rule(params, cotangent, *operands)
            results.append(unbroadcast(engine, part, operand.aval.shape))
    return results


def unbroadcast(engine: Engine, x: Tangent, shape: Shape) -> Tangent:
    """The sum of a cotangent over the dimensions that its operand did not have."""
    if isinstance(x, Zero):
        return Zero(x.aval.with_shape(shape))
    if x.shape == shape:
        return x
    if not shape:
        return engine.core.reduce_sum(x, tuple(range(x.ndim)))
    axes = [i for i, (a, b) in enumerate(zip(x.shape, shape, strict=True)) if a != b]
    return engine.core.reshape(engine.core.reduce_sum(x, tuple(axes)), shape)


def batch_elementwise[P: Params](
    engine: Engine,
    row: Row[P],
    params: P,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """One batch dimension at one place for all operands that need it."""
    ranks = [x.ndim - (a is not None) for x, a in zip(args, axes, strict=True)]
    rank = max(ranks)
    full = [(x, a) for x, a, r in zip(args, axes, ranks, strict=True) if r == rank]
    batched = [(x, a) for x, a in full if a is not None]
    place = batched[0][1] if batched else 0
    assert place is not None
    if all(
        (a == place if r == rank else a is None) or (r == 0 and a is None)
        for a, r in zip(axes, ranks, strict=True)
    ):
        return row.bind(params, *args), (place,)
    shapes = [x.shape if a is None else without(x.shape, a) for x, a in full]
    joint = joint_shape(row.name, [full[0][0].aval.with_shape(s) for s in shapes])
    core = engine.core
    moved: list[Array] = []
    for x, a, r in zip(args, axes, ranks, strict=True):
        if r == rank and a is not None:
            moved.append(core.transpose(x, moving(x.ndim, a, place)))
        elif r == rank and rank > 0:
            kept = tuple(i for i in range(rank + 1) if i != place)
            own = (*x.shape[:place], size, *x.shape[place:])
            moved.append(core.broadcast_in_dim(x, own, kept))
        elif a is not None:
            whole = (*joint[:place], size, *joint[place:])
            moved.append(core.broadcast_in_dim(x, whole, (place,)))
        else:
            moved.append(x)
    return row.bind(params, *moved), (place,)


def without(shape: Shape, axis: int) -> Shape:
    """The sizes of all dimensions but one."""
    return (*shape[:axis], *shape[axis + 1 :])


def moving(rank: int, source: int, target: int) -> tuple[int, ...]:
    """The permutation that moves dimension `source` to place `target`.

    >>> moving(3, 2, 0)
    (2, 0, 1)
    """
    order = [i for i in range(rank) if i != source]
    order.insert(target, source)
    return tuple(order)


def full_operands(
    e: Emitter, operands: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """The operands in the shape of the result: XLA has no implicit scalars."""
    shape = outs[0].shape
    for x in operands:
        if x.aval.shape != shape:
            break
    else:
        return operands
    return [
        x
        if x.aval.shape == shape
        else e.broadcast(x, shape, tuple(range(len(x.aval.shape))))
        for x in operands
    ]


@frozen(repr=False)
class Named(ReprMixin):
    """A lowering to the one operation of that name."""

    operation: str
    attributes: tuple[tuple[str, str], ...] = ()

    def __call__(
        self,
        e: Emitter,
        params: Params,
        operands: Sequence[Operand],
        outs: Sequence[ShapedArray],
    ) -> Sequence[Operand]:
        if not self.attributes:
            return e.op(self.operation, operands, outs)
        return e.op(self.operation, operands, outs, (), **dict(self.attributes))


def stablehlo(name: str, **attributes: str) -> Named:
    """Lower to `stablehlo.name`."""
    return Named(f"stablehlo.{name}", tuple(attributes.items()))


def chlo(name: str, **attributes: str) -> Named:
    """Lower to `chlo.name`, which XLA expands."""
    return Named(f"chlo.{name}", tuple(attributes.items()))


@frozen(repr=False)
class Composed(ReprMixin):
    """A lowering to those of the operations that a function calls."""

    function: Maths

    def __call__(
        self,
        e: Emitter,
        params: Params,
        operands: Sequence[Operand],
        outs: Sequence[ShapedArray],
    ) -> Sequence[Operand]:
        avals = [x.aval for x in operands]
        jaxpr = program(avals, lambda *xs: [self.function(*xs)], "a lower rule")
        return e.inline(jaxpr, operands)


def composed(function: Maths) -> Composed:
    """Lower to what `function`, written in operations that have rows, lowers to."""
    return Composed(function)


@frozen(repr=False)
class Amended(ReprMixin):
    """A lowering whose complex results a function of operand and result puts right."""

    lowering: Maths
    amend: Maths

    def __call__(
        self,
        e: Emitter,
        params: Params,
        operands: Sequence[Operand],
        outs: Sequence[ShapedArray],
    ) -> Sequence[Operand]:
        out: Sequence[Operand] = self.lowering(e, params, operands, outs)
        if not is_complex(outs[0].dtype):
            return out
        return composed(self.amend)(e, params, (*operands, *out), outs)


def amended(lowering: Maths, amend: Maths) -> Amended:
    """Lower by `lowering`; complex numbers by `amend(x, y)` of its operand and result.

    For the special points that XLA has otherwise than the array API.
    """
    return Amended(lowering, amend)


def draw_sample[P: Params](
    random: Random,
    operands: int,
    accepts: Kind,
    params_of: Callable[[Random, DType], P],
    shape_of: Callable[[Random, int, Shape], Shape] | None = None,
) -> Sample[P]:
    """A random call: a dtype that the row accepts, a shape, some smaller operands."""
    smaller = shape_of or operand_shape
    dtype = random.choice(accepts.samples())
    shape = random.choice(SHAPES)
    avals = [
        ShapedArray(smaller(random, operands, shape), dtype) for _ in range(operands)
    ]
    return Sample(params_of(random, dtype), tuple(avals))


def operand_shape(random: Random, operands: int, shape: Shape) -> Shape:
    """`shape`; of one operand among several sometimes (), or some sizes of 1."""
    if operands == 1 or random.random() < 0.8:
        return scalar_or(random, operands, shape)
    return tuple([random.choice((1, size)) for size in shape])


def scalar_or(random: Random, operands: int, shape: Shape) -> Shape:
    """`shape`; of one operand among several sometimes ()."""
    return () if operands > 1 and random.random() < 0.2 else shape


# -----------------------------------------------------------------------------
# Rows that say something of a value, and leave it what it is.
#
# What is said is about the primal value alone: tangents and cotangents pass unmarked.
# The lowering, or who reads the jaxpr, knows what the params mean::
#
#     name_p = annotation("name", NameParams, draw=..., lower=lambda e, p, xs, outs: xs)


def annotation[P: Params](
    name: str,
    params: type[P],
    *,
    lower: LowerRule[P],
    draw: Callable[[Random], Sample[P]],
) -> Row[P]:
    """The identity of one operand, whose params say something of it."""
    row: Row[P] = Row(
        name,
        params,
        typing=lambda p, avals: avals,
        evaluate=lambda engine, p, xs: xs,
        jvp=lambda engine, p, xs, ts: ((row.call(p, *xs),), tuple(ts)),
        transpose=lambda engine, p, cts, args: cts,
        batch=lambda engine, p, size, xs, axes: ((row.call(p, *xs),), axes),
        lower=lower,
        draw=draw,
        sharding=as_typed,
        traits=Traits(
            flops=no_flops, makes_nans=False, additive=True, marker=True, view=True
        ),
    )
    return row


# -----------------------------------------------------------------------------
# Integers of less than a byte, where XLA on CPU refuses them.
#
# Some of XLA's own rewriting leaves types that its CPU backend does not take,
# such as 32-bit integers laid out in four bits, and of two bits it sorts, joins and
# multiplies what is not there; operands of a whole byte avoid that::
#
#     x = whole_bytes(e, x)      # i4[3] as i8[3], anything else as it is
#     in_bytes(e, "stablehlo.concatenate", xs, outs, dimension=i64(0))


SMALL: tuple[DType, ...] = (int2, int4, uint2, uint4)
TWO_BITS: tuple[DType, ...] = (int2, uint2)


def whole_bytes(e: Emitter, x: Operand) -> Operand:
    """Integers of two and four bits as integers of eight, with or without sign."""
    if x.aval.dtype not in SMALL:
        return x
    return e.op("stablehlo.convert", (x,), (of_bytes(x.aval),))[0]


def of_bytes(aval: ShapedArray) -> ShapedArray:
    """The type of integers of two and four bits as integers of eight."""
    return aval.with_dtype(int8 if is_signed(aval.dtype) else uint8)


def in_bytes(
    e: Emitter,
    name: str,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
    **attributes: str,
) -> Sequence[Operand]:
    """An operation whose integers are of eight bits inside, if some are of two.

    What wraps round at eight bits does so at two.
    """
    if not any(x.aval.dtype in TWO_BITS for x in operands):
        return e.op(name, operands, outs, (), **attributes)
    wide = [whole_bytes(e, x) for x in operands]
    avals = [of_bytes(out) if out.dtype in SMALL else out for out in outs]
    result = e.op(name, wide, avals, (), **attributes)
    return [converted(e, y, out.dtype) for y, out in zip(result, outs, strict=True)]
