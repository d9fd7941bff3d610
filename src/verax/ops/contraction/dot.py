"""Floor 2: contraction: `dot_general` and the products that it makes.

One idea: a dimension of an operand is batch, contracted or free; the result has the
batch dimensions, the free ones of the left, the free ones of the right::

    dot_general(x, y, (((1,), (0,)), ((), ())))    # the product of two matrices
"""

from collections.abc import Sequence
from math import prod
from random import Random
from typing import cast

import numpy as np
from attrs import evolve, frozen

from verax.ir.avals import Shape, ShapedArray, finfo, iinfo
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    bfloat16,
    bool_,
    complex64,
    float16,
    float32,
    float64,
    int8,
    int32,
    is_bool,
    is_complex,
    is_float,
    is_integer,
    numpy_dtype,
    real_dtype,
    uint8,
)
from verax.ir.jaxpr import Params
from verax.ir.meshes import (
    NO_TERMS,
    Splits,
    Terms,
    TypeShardings,
    closed,
    opened,
    terms_of,
)
from verax.ir.records import ReprMixin
from verax.ops.contraction.orders import Numbers, apart, is_small, is_thin, turned
from verax.ops.contraction.precision import (
    Algorithm,
    DotAlgorithm,
    DotAlgorithmPreset,
    DotPrecision,
    Precision,
    algorithm_attribute,
    is_default,
    mlir_name,
    precision_attribute,
    precision_of,
    storage,
)
from verax.ops.structure.reshard import call_sharded, retyped
from verax.rules.families.elementwise import SMALL, in_bytes, whole_bytes
from verax.rules.families.linear import bilinear
from verax.rules.families.reducer import total
from verax.rules.rows.builder import program
from verax.rules.rows.eager_costs import contraction
from verax.rules.rows.emitter import Emitter, Operand, converted, ints
from verax.rules.rows.kernels import Kernel
from verax.rules.rows.row import (
    Avals,
    Axis,
    Domain,
    Engine,
    NDArray,
    Sample,
    Traits,
    Work,
)
from verax.rules.rows.type_shardings import (
    axes_along,
    common_mesh,
    connected,
    is_open,
    spec_texts,
)
from verax.rules.values.array import Array
from verax.rules.values.constants import ANYTHING, aval_of
from verax.rules.values.conversions import ShardingTypeError
from verax.rules.values.memo import pure
from verax.rules.values.sizes import AxisError, ShapeError, as_axes, beside, draw_sizes
from verax.rules.values.state import asked_dtype

# -----------------------------------------------------------------------------
# Products with vectors whose contracted dimension is long, in NumPy.
#
# BLAS adds such products one after another, so they are made in blocks, whose
# sums are added in short chains::
#
#     product(np.ones((1, 2**25), np.float32), np.ones((2**25, 1), np.float32))


# Within a block BLAS adds one after another, or in a few lanes.
BLOCK = 1024
LONG_CHAIN = (2 * BLOCK,)


def product(x: NDArray, y: NDArray) -> NDArray:
    """`np.matmul` of stacked matrices, in blocks if one is a row or a column."""
    n = x.shape[-1]
    vectors = min(x.shape[-2], y.shape[-1]) == 1
    if (n,) < LONG_CHAIN or not vectors or x.dtype.kind not in "fc":
        return np.asarray(np.matmul(x, y))
    lead, count = x.ndim - 2, n // BLOCK
    end = count * BLOCK
    rows = x[..., :end].reshape((*x.shape[:-1], count, BLOCK))
    columns = y[..., :end, :].reshape((*y.shape[:-2], count, BLOCK, y.shape[-1]))
    parts = np.matmul(np.moveaxis(rows, -2, lead), columns)
    out = total(parts, (lead,))
    if end < n:
        out = out + np.matmul(x[..., end:], y[..., end:, :])
    return out


# -----------------------------------------------------------------------------
# Contractions from which tests draw: their dimensions, their types.
#
# A dimension of an operand is batch, contracted or free, each has a size of its
# own, and the types are all that go together::
#
#     draw_numbers(Random(0))    # dimension numbers, and the shapes of both operands


type Pair = tuple[Shape, Shape]
MIXED: Sequence[tuple[DType, DType]] = (
    (float32, bfloat16),
    (float16, float32),
    (int8, int32),
    (complex64, float32),
    (uint8, float32),
    (bool_, int32),
)
ALGORITHMS: Sequence[Algorithm] = (
    DotAlgorithm(float32, float32, float32),
    DotAlgorithmPreset.ANY_F8_ANY_F8_F32,
    DotAlgorithmPreset.F16_F16_F32,
    DotAlgorithmPreset.BF16_BF16_F32,
    DotAlgorithmPreset.F32_F32_F32,
    DotAlgorithmPreset.TF32_TF32_F32,
    DotAlgorithmPreset.BF16_BF16_F32_X3,
    DotAlgorithmPreset.F64_F64_F64,
)
"""Those whose sums have more digits than what is summed, or as many."""


def draw_numbers(random: Random) -> tuple[Numbers, tuple[Shape, Shape]]:
    """Up to two dimensions of each of the four sorts, in random order."""
    sizes = draw_sizes(random, 8, (1, 2, 3, 4, 1, 2, 3, 5))
    batch, contracted, *free = (
        [sizes.pop() for _ in range(random.choice((0, 1, 1, 2)))] for _ in range(4)
    )
    places, shapes = [], []
    for own in free:
        pool = [*batch, *contracted, *own]
        order = random.sample(range(len(pool)), len(pool))
        shapes.append(tuple(pool[order.index(i)] for i in range(len(pool))))
        places.append(order)
    b, c = len(batch), len(batch) + len(contracted)
    (left, right) = places
    numbers = (
        (tuple(left[b:c]), tuple(right[b:c])),
        (tuple(left[:b]), tuple(right[:b])),
    )
    return numbers, (shapes[0], shapes[1])


def draw_dtypes(random: Random) -> tuple[DType, DType]:
    """Twice the same, mostly."""
    if random.random() < 0.15:
        x, y = random.choice(MIXED)
        return random.choice(((x, y), (y, x)))
    dtype = random.choice(ANYTHING.samples())
    return dtype, dtype


def draw_precision(
    random: Random, x: DType, y: DType
) -> tuple[DotPrecision, DType | None]:
    """Draws a precision and a dtype to sum up in, where there is a choice."""
    pair = Precision.HIGHEST, Precision.DEFAULT
    precision = pair if random.random() < 0.2 else None
    if x != y or is_bool(x) or not (is_float(x) or is_integer(x)):
        return precision, None
    if is_float(x) and x.itemsize <= 4 and random.random() < 0.25:
        return random.choice(ALGORITHMS), None
    small = x.itemsize < 4 and random.random() < 0.5
    return precision, (float32 if is_float(x) else int32) if small else None


@frozen(eq=False, repr=False)
class DotParams(Params):
    """Contracted and batch dimensions (of the left, of the right), and the types."""

    dimension_numbers: Numbers
    precision: DotPrecision = None
    preferred_element_type: DType | None = None


def free(p: DotParams, side: int, rank: int) -> Shape:
    """The dimensions of an operand that stay its own."""
    contracted, batch = p.dimension_numbers
    used = (*contracted[side], *batch[side])
    return tuple(i for i in range(rank) if i not in used)


def dot_typing(p: DotParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    if len(avals) != 2:
        raise TypeError(f"dot_general takes two operands, not {len(avals)}")
    x, y = avals
    for name, (left, right) in zip(
        ("contracting", "batch"), p.dimension_numbers, strict=True
    ):
        sizes = [x.shape[i] for i in left], [y.shape[i] for i in right]
        if sizes[0] != sizes[1]:
            raise ShapeError(
                f"dot_general takes {name} dimensions of equal size, but {left} of "
                f"{x} has {sizes[0]} and {right} of {y} has {sizes[1]}"
            )
    shape = (
        *(x.shape[i] for i in p.dimension_numbers[1][0]),
        *(x.shape[i] for i in free(p, 0, x.ndim)),
        *(y.shape[i] for i in free(p, 1, y.ndim)),
    )
    weak = x.weak_type and y.weak_type and p.preferred_element_type is None
    return (ShapedArray(shape, dot_dtype(p, x.dtype, y.dtype), weak),)


def dot_dtype(p: DotParams, x: DType, y: DType) -> DType:
    """The dtype of a product: the more precise operand's, or what was preferred."""
    for dtype in (x, y):
        if not ANYTHING.holds(dtype):
            raise TypeError(f"dot_general takes {ANYTHING}, not {dtype}")
    natural = x if rank_of(x) >= rank_of(y) else y
    if rank_of(x) == rank_of(y) and x != y:
        raise TypeError(
            f"dot_general: the dtypes {x} and {y} have no common dtype; convert one "
            "operand (verax.lax.convert_element_type)"
        )
    expected = p.preferred_element_type
    if expected is None or expected == natural:
        return natural
    if (
        rank_of(expected)[3] < rank_of(natural)[3]
        and not isinstance(p.precision, DotAlgorithm | DotAlgorithmPreset)
        and not is_float(natural)
    ):
        raise TypeError(
            f"preferred_element_type={expected} is narrower than {natural}, the dtype "
            "of the product; convert the operands, or the result"
        )
    return expected


WHOLE = (False, -1, -1)
"""Neither complex, nor of any range or precision that a float has."""


def rank_of(dtype: DType) -> tuple[bool, int, int, int, bool]:
    """The precision of a dtype, as XLA orders them: complex, range, mantissa, bits."""
    real = real_dtype(dtype)
    if is_float(real):
        info = finfo(real)
        return is_complex(dtype), int(info.maxexp), int(info.nmant), info.bits, True
    if is_bool(dtype):
        return *WHOLE, 1, True
    limits = iinfo(dtype)
    return *WHOLE, int(limits.bits), int(limits.min) < 0


type NumPyDType = np.dtype[np.generic]


@frozen(repr=False)
class Blocks(ReprMixin):
    """The form of a product of two types as a product of stacked matrices in NumPy.

    `stored` are the dtypes to which an algorithm rounds the operands, if there is one;
    `orders` put their dimensions in the order of (batch, free, contracted) and of
    (batch, contracted, free), and `shapes` make matrices of them.
    """

    stored: tuple[NumPyDType, NumPyDType] | None
    orders: tuple[Shape, Shape]
    shapes: tuple[Shape, Shape]
    working: NumPyDType
    shape: Shape
    out: NumPyDType


@pure(1 << 12)
def blocks(p: DotParams, x: Shape, dx: DType, y: Shape, dy: DType) -> Blocks:
    """See `Blocks`, for shapes x and y and dtypes dx and dy."""
    out = numpy_dtype(dot_dtype(p, dx, dy))
    stored = None
    if isinstance(p.precision, DotAlgorithm | DotAlgorithmPreset):
        first, second = (numpy_dtype(storage(p.precision, d)[0]) for d in (dx, dy))
        stored = first, second
    contracted, batch = p.dimension_numbers
    left, right = free(p, 0, len(x)), free(p, 1, len(y))
    sizes = tuple([x[i] for i in batch[0]])
    inner = prod([x[i] for i in contracted[0]])
    rows, columns = [x[i] for i in left], [y[i] for i in right]
    return Blocks(
        stored,
        ((*batch[0], *left, *contracted[0]), (*batch[1], *contracted[1], *right)),
        ((*sizes, prod(rows), inner), (*sizes, inner, prod(columns))),
        working_dtype(out, dx, dy),
        (*sizes, *rows, *columns),
        out,
    )


def evaluate_dot(p: DotParams, x: NDArray, y: NDArray) -> NDArray:
    """The product by `np.matmul` on (batch, free, contracted) blocks."""
    if x.shape[-1:] < LONG_CHAIN and is_plain(p, x, y):
        plain: NDArray = np.matmul(x, y)
        return plain
    form = blocks(p, x.shape, x.dtype, y.shape, y.dtype)
    if form.stored is not None:
        x, y = x.astype(form.stored[0]), y.astype(form.stored[1])
    xs, ys = x.transpose(form.orders[0]), y.transpose(form.orders[1])
    xs = xs.astype(form.working, copy=False).reshape(form.shapes[0])
    ys = ys.astype(form.working, copy=False).reshape(form.shapes[1])
    out: NDArray = product(xs, ys).reshape(form.shape).astype(form.out, copy=False)
    return out


def is_plain(p: DotParams, x: NDArray, y: NDArray) -> bool:
    """Whether this is what NumPy calls a product of float matrices or vectors."""
    return (
        x.dtype == y.dtype
        and x.dtype in (float32, float64)
        and p.preferred_element_type in (None, x.dtype)
        and not isinstance(p.precision, DotAlgorithm | DotAlgorithmPreset)
        and 1 <= y.ndim <= 2
        and p.dimension_numbers == (((x.ndim - 1,), (0,)), ((), ()))
    )


def working_dtype(out: NumPyDType, *operands: DType) -> NumPyDType:
    """The dtype in which NumPy contracts: as wide as all, float32 for small floats."""
    result = [
        float32
        if is_float(d) and numpy_dtype(d).itemsize < 4
        else int32
        if is_bool(d) or numpy_dtype(d).kind == "V"
        else numpy_dtype(d)
        for d in (out, *operands)
    ]
    if all(d.kind in "iu" for d in result):
        return int32 if is_bool(out) else result[0]
    return np.result_type(*result)


def to_lhs(engine: Engine, p: DotParams, ct: Array, x: ShapedArray, y: Array) -> Array:
    """The cotangent of the left operand: contract the free dimensions of the right."""
    return contract_back(engine, p, ct, x, y, 0)


def to_rhs(engine: Engine, p: DotParams, ct: Array, y: ShapedArray, x: Array) -> Array:
    """The cotangent of the right operand: contract the free dimensions of the left."""
    return contract_back(engine, p, ct, y, x, 1)


def contract_back(
    engine: Engine, p: DotParams, ct: Array, own: ShapedArray, other: Array, side: int
) -> Array:
    """`ct` contracted with the other operand, dimensions put back in `own`'s order."""
    contracted, batch = p.dimension_numbers
    mine, theirs = free(p, side, own.ndim), free(p, 1 - side, other.ndim)
    b = len(batch[0])
    places = range(b + len(mine), ct.ndim) if side == 0 else range(b, b + len(theirs))
    back = DotParams(
        ((tuple(places), theirs), (tuple(range(b)), batch[1 - side])),
        swapped(p.precision) if side else p.precision,
    )
    # The result holds: batch, own free, then the other's contracted, in its own order.
    order = sorted(range(len(contracted[side])), key=contracted[1 - side].__getitem__)
    held = (*batch[side], *mine, *(contracted[side][i] for i in order))
    if own.explicit is not None and own.explicit.terms.reduced:
        product = summed_later(back, ct, other)  # terms of this cotangent are due
    else:
        product = dot_general_p.call(back, ct, other)
    return engine.core.transpose(product, tuple(held.index(i) for i in range(own.ndim)))


def summed_later(p: DotParams, x: Array, y: Array) -> Array:
    """The contraction, its sums over what splits both operands left to be made.

    It is a program of its own, because types of arrays do not hold what is open.
    """

    def body(x: Array, y: Array) -> Sequence[Array]:
        array = dot_general_p.call(p, retyped(x, opened(x.aval.explicit)), y)
        return (retyped(array, closed(array.aval.explicit)),)

    jaxpr = program([x.aval, y.aval], body, "dot_general")
    return cast(Array, TypeShardings.called("dot_general", jaxpr, x, y)[0])


def swapped(precision: DotPrecision) -> DotPrecision:
    """The precision for operands in the other order."""
    return precision[::-1] if isinstance(precision, tuple) else precision


def batch_dot(
    engine: Engine,
    p: DotParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """One more batch dimension if both operands have one, else one more free one."""
    sides = [
        tuple(
            dims[i] if a is None else beside(dims[i], a) for dims in p.dimension_numbers
        )
        for i, a in enumerate(axes)
    ]
    (left, left_batch), (right, right_batch) = sides
    a, b = axes
    if a is not None and b is not None:
        numbers = ((left, right), ((a, *left_batch), (b, *right_batch)))
        return dot_general_p.bind(evolve(p, dimension_numbers=numbers), *args), (0,)
    changed = evolve(p, dimension_numbers=((left, right), (left_batch, right_batch)))
    own = free(changed, 0 if b is None else 1, args[0 if b is None else 1].ndim)
    place = len(left_batch) + own.index(a if b is None else b)
    if b is not None:
        place += len(free(changed, 0, args[0].ndim))
    return dot_general_p.bind(changed, *args), (place,)


def lower_dot(
    e: Emitter, p: DotParams, operands: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """One `stablehlo.dot_general`, with conversions where an algorithm wants them."""
    (contracted, batch), precision = p.dimension_numbers, p.precision
    fields = (
        ("lhs_batching_dimensions", batch[0]),
        ("rhs_batching_dimensions", batch[1]),
        ("lhs_contracting_dimensions", contracted[0]),
        ("rhs_contracting_dimensions", contracted[1]),
    )
    text = ", ".join(f"{name} = {ints(dims)}" for name, dims in fields if dims)
    attributes = {
        "dot_dimension_numbers": f"#stablehlo.dot<{text}>",
        "precision_config": precision_attribute(precision),
    }
    if isinstance(precision, DotAlgorithm | DotAlgorithmPreset):
        return lower_algorithm(e, precision, operands, outs[0], attributes)
    if e.platform == "cpu" and outs[0].dtype not in SMALL:
        operands = [summed_on_cpu(e, x, outs[0].dtype) for x in operands]
    return in_bytes(e, "stablehlo.dot_general", operands, outs, **attributes)


def summed_on_cpu(e: Emitter, x: Operand, out: DType) -> Operand:
    """An operand in a type whose products XLA sums in the result's on a CPU.

    It refuses some products of short floats after it has folded transposes into them
    (`DotThunk: BF16 x BF16 = F32`). In the wider type they are exact.
    """
    short = is_float(x.aval.dtype) and x.aval.dtype.itemsize < float32.itemsize
    if short and is_float(out) and out.itemsize >= float32.itemsize:
        return converted(e, x, out)
    return whole_bytes(e, x)


def lower_algorithm(
    e: Emitter,
    algorithm: Algorithm,
    operands: Sequence[Operand],
    out: ShapedArray,
    attributes: dict[str, str],
) -> Sequence[Operand]:
    """The contraction in the types of the algorithm, and back."""
    types = [storage(algorithm, x.aval.dtype) for x in operands]
    entering = [
        converted(e, x, dtype) for x, (dtype, _) in zip(operands, types, strict=True)
    ]
    lhs, rhs = (mlir_name(x.aval.dtype) for x in entering)
    attributes["algorithm"] = algorithm_attribute(algorithm, lhs, rhs)
    leaving = out.with_dtype(types[0][1])
    (z,) = e.op("stablehlo.dot_general", entering, (leaving,), (), **attributes)
    return (converted(e, z, out.dtype),)


def draw_dot(random: Random) -> Sample[DotParams]:
    """Any dimensions of each sort, any types that go together.

    In which order terms overflow is up to XLA, so finite numbers are not that large.
    """
    numbers, shapes = draw_numbers(random)
    dtypes = draw_dtypes(random)
    precision, preferred = draw_precision(random, *dtypes)
    rounds = isinstance(precision, DotAlgorithm | DotAlgorithmPreset)
    domain = Domain(-1e15, 1e15, (np.inf, -np.inf, np.nan), smooth=not rounds)
    params = DotParams(numbers, precision, preferred)
    return Sample(params, tuple(map(ShapedArray, shapes, dtypes)), (domain,) * 2)


def dot_terms(p: DotParams, avals: Sequence[ShapedArray]) -> Terms:
    """Operands that are reduced may be so along what splits the other one."""
    for aval in avals:
        if terms_of(aval.explicit).unreduced:
            raise ShardingTypeError(
                "lhs or rhs passed to dot_general cannot be unreduced, but got "
                f"{aval}: reshard it first (verax.sharding.reshard)"
            )
    x, y = avals
    if not (is_open(x) or is_open(y)):
        return NO_TERMS
    left, right = axes_along(avals, p.dimension_numbers[0])
    if left != right:
        raise ShardingTypeError(
            "lhs and rhs contracting dims should be sharded identically where the sum "
            f"is left to be made, but got {x} and {y}"
        )
    mesh = common_mesh(avals)
    unreduced = [axis for axes in left for axis in axes]
    names = () if mesh is None else mesh.names
    return Terms(tuple([axis for axis in names if axis in unreduced]))


def check_batch_splits(specs: tuple[Splits, Splits]) -> None:
    """Raise ShardingTypeError where different axes split dimensions of a batch."""
    if any([a and b and a != b for a, b in zip(*specs, strict=True)]):
        left, right = spec_texts(specs)
        raise ShardingTypeError(
            "dot_general requires lhs batch dimensions and rhs batch dimensions to "
            f"have the same sharding, got {left} and {right}. Reshard one of them with "
            "verax.sharding.reshard"
        )


def dot_splits(
    p: DotParams, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> Sequence[Splits]:
    """Batch and free dimensions stay split; one that both contract is ambiguous."""
    x, y = avals
    batch = p.dimension_numbers[1]
    specs = axes_along(avals, p.dimension_numbers[0])
    left_open = is_open(x) or is_open(y)
    if not left_open:
        check_batch_splits(axes_along(avals, batch))
    if not left_open and any([a and b for a, b in zip(*specs, strict=True)]):
        left, right = spec_texts(specs)
        raise ShardingTypeError(
            "Contracting dimensions are sharded and it is ambiguous how the output "
            "should be sharded. Please specify the output sharding via the "
            "`out_sharding` parameter. Got "
            f"lhs_contracting_spec={left} and rhs_contracting_spec={right}"
        )
    labels: list[list[str]] = [
        [f"{side}{i}" for i in range(a.ndim)]
        for side, a in zip("xy", avals, strict=True)
    ]
    for number, (i, j) in enumerate(zip(*batch, strict=True)):
        labels[0][i] = labels[1][j] = f"batch{number}"
    result = [
        *[labels[0][i] for i in batch[0]],
        *[labels[0][i] for i in free(p, 0, x.ndim)],
        *[labels[1][i] for i in free(p, 1, y.ndim)],
    ]
    return connected(avals, labels, [result])


def sums_in(p: DotParams, dtype: DType) -> DotParams | None:
    """The product of narrower operands with sums and results of `dtype`.

    None where a precision was requested.
    """
    if not is_default(p.precision):
        return None
    return evolve(p, preferred_element_type=dtype)


def dot_flops(p: DotParams, ins: Avals, outs: Avals) -> float:
    """Two operations for each multiplication."""
    (contracted, _), _ = p.dimension_numbers
    return 2 * outs[0].size * prod([ins[0].shape[i] for i in contracted])


def has_kernel(p: DotParams, avals: Sequence[ShapedArray]) -> bool:
    """Whether the order of dimensions is one for which the compiler is slow."""
    if p.preferred_element_type is not None:
        return False
    x, y = [aval.shape for aval in avals]
    return is_thin(p.dimension_numbers, x, y) or is_small(p.dimension_numbers, x, y)


def in_fast_order(p: DotParams, x: Array, y: Array) -> Array:
    """The product for a CPU; see `verax.ops.contraction.orders`."""
    numbers = p.dimension_numbers
    if not is_thin(numbers, x.shape, y.shape):
        numbers, x, y = turned(numbers, x, y)
    # The dtype marks it as done.
    return apart(dot_general_p.call(DotParams(numbers, p.precision, x.dtype), x, y))


dot_general_p = bilinear(
    "dot_general",
    DotParams,
    typing=dot_typing,
    evaluate=evaluate_dot,
    to_lhs=to_lhs,
    to_rhs=to_rhs,
    batch=batch_dot,
    lower=lower_dot,
    draw=draw_dot,
    costly=contraction,
    sharding=dot_splits,
    terms=dot_terms,
    kernel=Kernel(dict.fromkeys((float32, float64), in_fast_order), suits=has_kernel),
    traits=Traits(Work.BLOCK, dot_flops, accumulate=sums_in),
)


def dot_general(
    lhs: object,
    rhs: object,
    dimension_numbers: Sequence[Sequence[Sequence[int]]],
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """The contraction of two arrays over any of their dimensions.

    The result has the batch dimensions, then the free ones of `lhs`, then those of
    `rhs`.

    Args:
        lhs: an array or scalar.
        rhs: an array or scalar; its dtype may differ from that of `lhs` if one of
            the two is more precise.
        dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch,
            rhs_batch))`, four sequences of dimensions. Those of a pair must have equal
            lengths and sizes; negative ones count from the last.
        precision: how exact products are on accelerators: a `lax.Precision` or its
            name, a pair of these for the two operands, or a `lax.DotAlgorithmPreset`;
            None for the default.
        preferred_element_type: the dtype in which products are summed and returned;
            None for that of the operands. For integers it may not be narrower.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        The sums of products, in the preferred dtype or else that of the more precise
        operand. The sum over no contracting dimension is the plain outer product.

    Raises:
        TypeError: sizes do not match, or the preferred dtype is too narrow.
        ValueError: a dimension is out of range or named twice.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.arange(6.0).reshape(2, 3)
    >>> lax.dot_general(x, x, (((1,), (1,)), ((0,), (0,))))  # rows with their equals
    Array([ 5., 50.], dtype=float32)
    >>> lax.dot_general(x, x, (((1,), (1,)), ((), ())))  # rows with all rows
    Array([[ 5., 14.],
           [14., 50.]], dtype=float32)
    """
    if out_sharding is not None:
        return call_sharded(dot_general, locals())
    x, y = aval_of(lhs), aval_of(rhs)
    contracted, batch = (
        (dims_of(left, x), dims_of(right, y)) for left, right in dimension_numbers
    )
    for i, aval in enumerate((x, y)):
        used = (*contracted[i], *batch[i])
        if len(set(used)) < len(used):
            raise AxisError(
                f"dot_general: a dimension of {aval} is named twice among "
                f"contracting={contracted[i]} and batch={batch[i]}"
            )
    preferred = (
        None if preferred_element_type is None else asked_dtype(preferred_element_type)
    )
    params = DotParams((contracted, batch), precision_of(precision), preferred)
    return dot_general_p.call(params, lhs, rhs)


def dims_of(dims: Sequence[int], aval: ShapedArray) -> Shape:
    return as_axes("dot_general", dims, aval.ndim)


def dot(
    lhs: object,
    rhs: object,
    *,
    dimension_numbers: Sequence[Sequence[Sequence[int]]] | None = None,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: object = None,
) -> Array:
    """The product of vectors and matrices, or `dot_general` with its dimensions.

    Args:
        lhs: a vector (k,) or a matrix (m, k); any array if `dimension_numbers` is
            given.
        rhs: a vector (k,) or a matrix (k, n); any array if `dimension_numbers` is
            given.
        dimension_numbers: those of `dot_general`; None to contract the last dimension
            of `lhs` with the first of `rhs`.
        precision: how exact products are on accelerators: a `lax.Precision` or its
            name; None for the default.
        preferred_element_type: the dtype in which products are summed and returned;
            None for that of the operands.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        The product, with the dimensions that are not contracted: those of `lhs`, then
        those of `rhs`; a scalar for two vectors.

    Raises:
        TypeError: an operand has neither one nor two dimensions, or sizes differ.

    Small integers overflow unless a wider dtype is preferred:

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x, ones = vnp.array([100, 100], vnp.int8), vnp.ones(2, vnp.int8)
    >>> lax.dot(x, ones)
    Array(-56, dtype=int8)
    >>> lax.dot(x, ones, preferred_element_type=vnp.int32)
    Array(200, dtype=int32)
    """
    x, y = aval_of(lhs), aval_of(rhs)
    numbers = dimension_numbers
    if numbers is None:
        if not (1 <= x.ndim <= 2 and 1 <= y.ndim <= 2):
            raise ShapeError(
                f"dot takes operands of one or two dimensions, not {x} and {y}; use "
                "dot_general, or verax.numpy.matmul"
            )
        numbers = (((x.ndim - 1,), (0,)), ((), ()))
    return dot_general(
        lhs,
        rhs,
        numbers,
        precision,
        preferred_element_type,
        out_sharding=out_sharding,
    )


def batch_matmul(lhs: object, rhs: object, precision: object = None) -> Array:
    """The products of two stacks of matrices with equal leading dimensions.

    Leading dimensions are not broadcast; `verax.numpy.matmul` does that.

    Args:
        lhs: matrices of shape (..., m, k).
        rhs: matrices of shape (..., k, n), with the same leading dimensions.
        precision: how exact products are on accelerators: a `lax.Precision` or its
            name; None for the default.

    Returns:
        The products, of shape (..., m, n).

    Raises:
        TypeError: an operand has fewer than two dimensions, or the numbers differ.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.array([[[1.0, 2.0]], [[3.0, 4.0]]])
    >>> lax.batch_matmul(x, x.reshape(2, 2, 1)).tolist()
    [[[5.0]], [[25.0]]]
    """
    x, y = aval_of(lhs), aval_of(rhs)
    if x.ndim < 2 or x.ndim != y.ndim:
        raise TypeError(
            "batch_matmul takes stacks of matrices with the same number of "
            f"dimensions, not {x} and {y}"
        )
    stack = tuple(range(x.ndim - 2))
    numbers = (((x.ndim - 1,), (x.ndim - 2,)), (stack, stack))
    return dot_general(lhs, rhs, numbers, precision)


ROWS = (dot_general_p,)
