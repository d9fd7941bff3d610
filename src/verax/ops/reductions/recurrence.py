"""Floor 2: linear recurrences of first order along a dimension.

One idea: y[i] = a[i] y[i-1] + x[i] has derivatives of the same kind, and so has its
transpose, which runs the other way::

    dy[i] = a[i] dy[i-1] + (y[i-1] da[i] + dx[i])
    ct_x[i] = ct_y[i] + a[i+1] ct_x[i+1]

Running products, extremes and log-sum-exps are differentiated with it. On a CPU it is
one loop; elsewhere pairs are combined by an associative rule, in log-many steps.
Source: G. E. Blelloch, Prefix sums and their applications, CMU-CS-90-190, 1990.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

import numpy as np
from attrs import evolve

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import (
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    is_bool,
    numpy_dtype,
)
from verax.ir.jaxpr import Jaxpr
from verax.ops.elementwise.arith import add, mul
from verax.ops.elementwise.bits import bitwise_or
from verax.ops.elementwise.compare import eq
from verax.ops.elementwise.select import select
from verax.ops.structure.create import zeros
from verax.ops.structure.joining import concatenate, rev
from verax.ops.structure.slicing import pad, slice_in_dim
from verax.rules.families.cumulative import (
    LONGEST,
    Operands,
    ScanParams,
    Step,
    loops_of,
    lower_scan,
)
from verax.rules.families.elementwise import moving
from verax.rules.families.linear import Pushed
from verax.rules.families.reducer import doubled
from verax.rules.rows.builder import program
from verax.rules.rows.emitter import Emitter, Operand, compared
from verax.rules.rows.row import (
    REALS,
    Axis,
    Domain,
    Engine,
    Known,
    Linear,
    NDArray,
    Row,
    Rows,
    Sample,
    Tangent,
    Traits,
    Work,
    Zero,
    each_operand,
)
from verax.rules.rows.type_shardings import same_places
from verax.rules.values.array import Array
from verax.rules.values.constants import ANY_FLOAT, aval_of
from verax.rules.values.conversions import NotLinear
from verax.rules.values.memo import asked, pure
from verax.rules.values.operands import alike
from verax.rules.values.sizes import as_axis, beside, draw_shape, surely_less

type Elements = tuple[Array, ...]

DTYPES: Final = (bfloat16, float16, float32, float64, complex64, complex128)
NAME: Final = "linear_recurrence"


def associative_scan(
    combine: Callable[[Elements, Elements], Elements], elements: Elements, axis: int
) -> Elements:
    """The running combinations of `elements` along `axis`, in about 2 n steps.

    `combine` is associative and works on slices of all elements at once.
    """
    x, *_ = elements
    n = x.shape[axis]
    if surely_less(n, 2):
        return elements

    def part(start: int, limit: int) -> Elements:
        return tuple([slice_in_dim(x, start, limit, 2, axis) for x in elements])

    odd = associative_scan(combine, combine(part(0, n - 1), part(1, n)), axis)
    first = tuple([slice_in_dim(x, 0, 1, 1, axis) for x in elements])
    if n == 2:
        return tuple(
            [concatenate((x, y), axis) for x, y in zip(first, odd, strict=True)]
        )
    before = odd
    if n % 2 == 0:
        before = tuple([slice_in_dim(x, 0, n // 2 - 1, 1, axis) for x in odd])
    even = combine(before, part(2, n))
    joined = [concatenate((x, y), axis) for x, y in zip(first, even, strict=True)]
    return tuple([interleave(x, y, axis) for x, y in zip(joined, odd, strict=True)])


def interleave(even: Array, odd: Array, axis: int) -> Array:
    """The elements of `even` and `odd` in turns along `axis`."""
    n = even.shape[axis] + odd.shape[axis]

    def spread(x: Array, low: int) -> Array:
        edges = [(0, 0, 0)] * x.ndim
        edges[axis] = (low, n - low - 2 * x.shape[axis] + 1, 1)
        return pad(x, zeros(x.aval.with_shape(())), edges)

    join = bitwise_or if is_bool(even.dtype) else add
    return join(spread(even, 0), spread(odd, 1))


def neighbours(
    x: Array, axis: int, fill: Callable[[ShapedArray], Array], back: bool = False
) -> Array:
    """The element before each along `axis`, or with `back` the one after it.

    That of the element at the edge is `fill`.
    """
    n = x.shape[axis]
    if surely_less(n, 1):
        return x
    edge = fill(x.aval.with_shape((*x.shape[:axis], 1, *x.shape[axis + 1 :])))
    if back:
        return concatenate((slice_in_dim(x, 1, n, 1, axis), edge), axis)
    return concatenate((edge, slice_in_dim(x, 0, n - 1, 1, axis)), axis)


def recurrence_typing(
    p: ScanParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    """The type of both operands."""
    a, x = avals
    for aval in avals:
        ANY_FLOAT.check(NAME, aval.dtype)
    if (a.shape, a.dtype) != (x.shape, x.dtype):
        raise TypeError(
            f"{NAME} takes arrays of the same shape and dtype, not {a} and {x}; use "
            "verax.numpy.broadcast_arrays and verax.numpy.promote_types"
        )
    if not 0 <= p.axis < x.ndim:
        raise ValueError(f"{NAME}: {x} has no dimension {p.axis}")
    return (x.strong() if x.weak_type and not a.weak_type else x,)


def evaluate_recurrence(p: ScanParams, a: NDArray, x: NDArray) -> NDArray:
    """The recurrence in NumPy, in double precision."""
    if x.shape[p.axis] == 0:
        return x
    working = numpy_dtype(doubled(x.dtype))
    rows = [v.swapaxes(p.axis, 0).astype(working) for v in (a, x)]
    y = folded(*[v[::-1] for v in rows])[::-1] if p.reverse else folded(*rows)
    return y.swapaxes(0, p.axis).astype(x.dtype)


def folded(a: NDArray, x: NDArray) -> NDArray:
    """The recurrence along dimension 0, in log-many steps as in `associative_scan`."""
    if len(x) < 2:
        return x
    y = np.empty_like(x)
    y[0] = x[0]
    y[1::2] = folded(a[1::2] * a[:-1:2], kept(a[1::2], x[:-1:2]) + x[1::2])
    y[2::2] = kept(a[2::2], y[1:-1:2]) + x[2::2]
    return y


def kept(a: NDArray, x: NDArray) -> NDArray:
    return np.where(a == 0, 0, a * x)


@pure(1 << 8)
def in_steps(p: ScanParams, avals: tuple[ShapedArray, ...]) -> Jaxpr:
    """The recurrence in log-many steps, of pairs of a factor and a value."""

    def body(*pair: Array) -> Elements:
        if not p.reverse:
            return (associative_scan(combine, pair, p.axis)[1],)
        back = tuple([rev(v, (p.axis,)) for v in pair])
        return (rev(associative_scan(combine, back, p.axis)[1], (p.axis,)),)

    return program(avals, body, NAME)


def combine(left: Elements, right: Elements) -> Elements:
    """What two runs do one after the other to what comes before them."""
    (a, x), (b, y) = left, right
    return mul(a, b), add(select(eq(b, zeros(b.aval)), zeros(b.aval), mul(x, b)), y)


def lower_step(e: Emitter, left: Operands, right: Operands) -> Operands:
    """`combine` in StableHLO."""
    (a, x), (b, y) = left, right
    zero = e.constant(0, b.aval)

    def op(name: str, *operands: Operand) -> Operand:
        return e.op(f"stablehlo.{name}", operands, (b.aval,))[0]

    kept = op("select", compared(e, b, "EQ", zero), zero, op("multiply", x, b))
    return op("multiply", a, b), op("add", kept, y)


STEP: Final = Step(lower_step, lambda dtype: (1, 0), in_blocks=False)


def lower_recurrence(
    e: Emitter, p: ScanParams, xs: Operands, outs: Sequence[ShapedArray]
) -> Operands:
    """`in_steps`, or where nobody knows how many steps these are, a loop."""
    if isinstance(xs[0].aval.shape[p.axis], int):
        avals = tuple([x.aval for x in xs])
        return e.inline(asked(in_steps, p, p, avals), xs)
    return (lower_scan(e, p, xs, STEP),)


def push_recurrence(
    engine: Engine, p: ScanParams, primals: Sequence[Array], ts: Sequence[Tangent]
) -> Pushed:
    """dy[i] = a[i] dy[i-1] + (y[i-1] da[i] + dx[i])."""
    (a, x), (t_a, t_x) = primals, ts
    y = linear_recurrence_p.call(p, a, x)
    if isinstance(t_a, Array):
        added = mul(neighbours(y, p.axis, zeros, back=p.reverse), t_a)
        t_x = add(added, t_x) if isinstance(t_x, Array) else added
    assert isinstance(t_x, Array), "a rule is asked where a tangent is not zero"
    return (y,), (linear_recurrence_p.call(p, a, t_x),)


def pull_recurrence(
    engine: Engine, p: ScanParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    """ct_x[i] = ct_y[i] + a[i+1] ct_x[i+1]."""
    (ct,), (a, x) = cts, args
    if isinstance(a, Linear):
        raise NotLinear(f"{NAME} is linear in its second operand alone")
    if isinstance(ct, Zero):
        return None, Zero(x.aval)
    factors = neighbours(a, p.axis, zeros, back=not p.reverse)
    back = ScanParams(p.axis, not p.reverse)
    return None, linear_recurrence_p.call(back, factors, ct)


def batch_recurrence(
    engine: Engine, p: ScanParams, size: int, xs: Sequence[Array], axes: Sequence[Axis]
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """The dimension of the batch where one of the operands has it."""
    place = next(axis for axis in axes if axis is not None)
    (axis,) = beside((p.axis,), place)
    whole = [
        batched_at(engine, x, at, place, size) for x, at in zip(xs, axes, strict=True)
    ]
    return (linear_recurrence_p.call(evolve(p, axis=axis), *whole),), (place,)


def batched_at(engine: Engine, x: Array, axis: Axis, place: int, size: int) -> Array:
    """`x` with its batch dimension, or a new one, at `place`."""
    core = engine.core
    if axis is None:
        shape = (*x.shape[:place], size, *x.shape[place:])
        return core.broadcast_in_dim(x, shape, beside(range(x.ndim), place))
    return x if axis == place else core.transpose(x, moving(x.ndim, axis, place))


def draw_recurrence(random: Random) -> Sample[ScanParams]:
    """Short dimensions, the longest as often as another, and some folded in parts."""
    shape = draw_shape(random, 1, 3, (1, 2, 3, 5, 8))
    axis = random.choice((random.randrange(len(shape)), shape.index(max(shape))))
    params = ScanParams(axis, random.random() < 0.4)
    dtype = random.choice(ANY_FLOAT.samples())
    if random.random() < 0.97:
        return Sample(params, (ShapedArray(shape, dtype),) * 2)
    x = ShapedArray((LONGEST + random.randint(1, 200),), dtype)
    small = (Domain(-1, 1, smooth=False), Domain(-2, 2, smooth=False))
    return Sample(evolve(params, axis=0), (x, x), small)


linear_recurrence_p: Row[ScanParams] = Row(
    NAME,
    ScanParams,
    typing=recurrence_typing,
    evaluate=lambda engine, p, xs: (evaluate_recurrence(p, *xs),),
    jvp=push_recurrence,
    transpose=pull_recurrence,
    batch=batch_recurrence,
    lower=lower_recurrence,
    kernel=loops_of(STEP, DTYPES, least=2),
    draw=draw_recurrence,
    domains=(Domain(-2, 2, special=(0,)), REALS),
    traits=Traits(Work.STORED, each_operand),
    sharding=same_places(
        lambda p, x: [i for i in range(x.ndim) if i != p.axis],
        "Input should be unsharded over the axis being reduced, which is dimension",
    ),
)


def linear_recurrence(
    factors: object, operand: object, axis: int = 0, reverse: bool = False
) -> Array:
    """The linear recurrence y[i] = factors[i] y[i-1] + operand[i] along `axis`.

    y[0] is operand[0], and with `reverse` y[i+1] stands for y[i-1]. A factor of zero
    forgets what came before, even infinities and NaN. On a CPU it is computed in double
    precision, elsewhere in log-many steps. Its derivatives are such recurrences: those
    of a state space model, of an exponential average or of discounted returns are
    compiled as fast as itself.

    Args:
        factors: an array of floats or complex numbers.
        operand: an array of its shape and dtype.
        axis: the dimension to work along; 0 by default.
        reverse: whether to begin at the end of the axis.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        ValueError: there is no such axis.
        TypeError: the operands differ in shape or dtype, or are no floats.

    >>> import verax
    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> rewards = vnp.array([1.0, 0.0, 0.0, 8.0])
    >>> lax.linear_recurrence(vnp.full(4, 0.5), rewards, reverse=True)
    Array([2., 2., 4., 8.], dtype=float32)
    >>> x = vnp.array([1.0, 2.0, 3.0])
    >>> verax.grad(lambda x: lax.linear_recurrence(x, x)[-1])(x)
    Array([6., 6., 5.], dtype=float32)
    """
    factors, operand = alike(factors, operand)
    place = as_axis(NAME, axis, aval_of(operand).ndim)
    return linear_recurrence_p.call(ScanParams(place, bool(reverse)), factors, operand)


ROWS: Rows = (linear_recurrence_p,)
