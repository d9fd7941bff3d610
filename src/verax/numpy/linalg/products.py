"""Floor 6: products of arrays: vectors, matrices, tensors.

One idea: every product is one `dot_general` whose dimension numbers are found once per
pair of shapes, and transposed only where its result has the dimensions in another
order than NumPy's::

    matmul(x, y), dot(x, y), tensordot(x, y, axes=1), multi_dot([a, b, c])
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from attrs import frozen

from verax.backend.eager.composites import remembered
from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import DType, DTypeLike, is_complex
from verax.ir.records import ReprMixin
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    as_type,
    avals_of,
    broadcast_shapes_of,
    canonical_axes,
    canonical_axis,
    chosen_dtype,
    common_type,
)
from verax.numpy.elementwise.arithmetic import multiply
from verax.numpy.shaping.shapes import (
    expand_dims,
    moveaxis,
    ravel,
    squeeze,
    transpose,
)
from verax.ops.contraction.dot import DotParams, dot_general_p
from verax.ops.contraction.precision import DotPrecision, precision_of
from verax.ops.elementwise.arith import conj
from verax.ops.elementwise.convert import convert
from verax.ops.structure.reshard import call_sharded
from verax.rules.values.array import Array
from verax.rules.values.memo import pure
from verax.rules.values.sizes import ShapeError, is_index
from verax.rules.values.state import STATE

type Precision = object


class Contraction(NamedTuple):
    """Dimension numbers of `dot_general`: contracted and batch ones."""

    contracted: tuple[Shape, Shape]
    batch: tuple[Shape, Shape]


@pure(1 << 12)
def dot_params(
    numbers: Contraction, precision: DotPrecision, preferred: DType | None
) -> DotParams:
    """The params of one product, with plain tuples, as they are read back from text."""
    return DotParams((numbers.contracted, numbers.batch), precision, preferred)


def contract(
    x: object,
    y: object,
    numbers: Contraction,
    precision: Precision,
    preferred: DType | None,
) -> Array:
    """One `dot_general`, in the preferred dtype."""
    params = dot_params(numbers, precision_of(precision), preferred)
    return STATE.interpreter.bind(dot_general_p, params, (x, y))[0]


def operands(
    name: str, a: ArrayLike, b: ArrayLike, preferred: DTypeLike | None
) -> tuple[Array, Array, DType | None]:
    """Two operands in their common dtype, and the dtype that is preferred."""
    if (
        preferred is None
        and isinstance(a, Array)
        and isinstance(b, Array)
        and a.aval.dtype == b.aval.dtype
    ):
        return a, b, None
    avals = avals_of(name, (a, b))
    dtype, weak = common_type(avals)
    x, y = [as_type(v, t, dtype, weak) for v, t in zip((a, b), avals, strict=True)]
    expected = chosen_dtype(name, preferred)
    return as_array(name, x), as_array(name, y, 1), expected


# ----------------------------------------------------------------------- matrices


@frozen(repr=False)
class MatmulPlan(ReprMixin):
    """The plan of a product of stacked matrices: squeeze, contract and transpose.

    The dimensions of size 1 that meet larger ones are squeezed away, so that nothing is
    broadcast; the result of `dot_general` is transposed by `order`, unless it is None.
    """

    left: Shape
    right: Shape
    numbers: Contraction
    order: Shape | None


@pure(1 << 12)
def matmul_plan(a: Shape, b: Shape) -> MatmulPlan:
    """The plan for operands of the shapes `a` and `b`.

    Raises:
        ValueError: an operand has no dimensions.
        TypeError: the sizes that are contracted differ.
    """
    if not a or not b:
        raise ValueError(
            f"matmul takes operands with at least one dimension, not {a} and {b}; use "
            "multiply for scalars"
        )
    depth = b[0] if len(b) == 1 else b[-2]
    if a[-1] != depth:
        raise ShapeError(
            f"matmul: shapes {a} and {b} do not match: the contracted dimensions have "
            f"sizes {a[-1]} and {depth}"
        )
    stack = broadcast_shapes_of("matmul", (a[:-2], b[:-2]))
    rank = len(stack)
    sides = [stack_places(shape[:-2], stack) for shape in (a, b)]
    both = [i for i in range(rank) if i in sides[0] and i in sides[1]]
    squeezed, kept = [], []
    for shape, places in zip((a, b), sides, strict=True):
        missing = rank - len(shape[:-2])
        gone = tuple(i for i in range(len(shape[:-2])) if i + missing not in places)
        squeezed.append(gone)
        kept.append([i for i in range(len(shape)) if i not in gone])
    numbers, order = matmul_numbers(a, b, sides, both, rank)
    moved = None if order == tuple(range(len(order))) else order
    return MatmulPlan(squeezed[0], squeezed[1], numbers, moved)


def stack_places(own: Shape, stack: Shape) -> list[int]:
    """The dimensions of the stack that an operand has, other than as size 1."""
    missing = len(stack) - len(own)
    return [i + missing for i, n in enumerate(own) if n == stack[i + missing]]


def matmul_numbers(
    a: Shape, b: Shape, sides: list[list[int]], both: list[int], rank: int
) -> tuple[Contraction, Shape]:
    """Dimension numbers after squeezing, and the order that NumPy's result has."""
    one, two = sides
    # A dimension of size 1 in both stacks is in both sides, and so is a batch one.
    left_batch = tuple(one.index(i) for i in both)
    right_batch = tuple(two.index(i) for i in both)
    left_depth = len(one) + (len(a) > 1)
    right_depth = len(two)
    numbers = Contraction(((left_depth,), (right_depth,)), (left_batch, right_batch))
    names: list[int] = list(both)
    names += [i for i in one if i not in both]
    names += [rank] if len(a) > 1 else []
    names += [i for i in two if i not in both]
    names += [rank + 1] if len(b) > 1 else []
    order = tuple(names.index(i) for i in sorted(names))
    return numbers, order


@remembered
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Precision = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: object = None,
) -> Array:
    """The product of matrices, of vectors with matrices, and of stacks of them.

    The last dimension of `a` meets the second to last of `b`, or its only one; leading
    dimensions broadcast. Scalars are errors: `multiply` is for them.

    Args:
        a: an array of shape (..., m, n), or a vector (n,).
        b: an array of shape (..., n, k), or a vector (n,).
        precision: how exact products are on accelerators: a `lax.Precision` or its
            name; None for the default.
        preferred_element_type: the dtype in which products are summed and returned;
            None for that of the operands.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        an array of shape (..., m, k), without m where `a` is a vector and k where `b`
        is; in the common dtype of both unless another is preferred. Sums of narrow
        integers wrap.

    Raises:
        TypeError: the sizes that meet differ.
        ValueError: an operand has no dimensions.

    >>> import verax.numpy as vnp
    >>> a = vnp.array([100, 100], dtype=vnp.int8)
    >>> b = vnp.array([[1, 0], [1, 1]], dtype=vnp.int8)
    >>> vnp.matmul(a, b), vnp.matmul(a, b, preferred_element_type=vnp.int32)
    (Array([-56, 100], dtype=int8), Array([200, 100], dtype=int32))
    """
    if out_sharding is not None:
        return call_sharded(matmul, locals())
    x, y, preferred = operands("matmul", a, b, preferred_element_type)
    plan = matmul_plan(x.aval.shape, y.aval.shape)
    if plan.left:
        x = squeeze(x, plan.left)
    if plan.right:
        y = squeeze(y, plan.right)
    out = contract(x, y, plan.numbers, precision, preferred)
    return out if plan.order is None else transpose(out, plan.order)


@remembered
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of matrices `[..., m, n]` and vectors `[..., n]`: `[..., m]`.

    Args:
        x1: an array of shape (..., m, n).
        x2: an array of shape (..., n), whose leading dimensions broadcast with those of
            `x1`.

    Returns:
        an array of shape (..., m) in the common dtype of both.

    Raises:
        ValueError: an operand has too few dimensions, or sizes do not fit.

    >>> import verax.numpy as vnp
    >>> vnp.matvec(vnp.array([[1, 2], [3, 4]]), vnp.array([[1, 0], [0, 1], [1, 1]]))
    Array([[1, 3],
           [2, 4],
           [3, 7]], dtype=int32)
    """
    check_vectors("matvec", x1, x2)
    product = matmul(x1, expand_dims(x2, -1))
    return squeeze(product, -1)


@remembered
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of conjugated vectors `[..., n]` and matrices `[..., n, m]`.

    Args:
        x1: an array of shape (..., n), which is conjugated if it is complex.
        x2: an array of shape (..., n, m), whose leading dimensions broadcast with those
            of `x1`.

    Returns:
        an array of shape (..., m) in the common dtype of both.

    Raises:
        ValueError: an operand has too few dimensions, or sizes do not fit.

    >>> import verax.numpy as vnp
    >>> vnp.vecmat(vnp.array([1j, 1]), vnp.array([[1, 2], [3, 4]]))
    Array([3.-1.j, 4.-2.j], dtype=complex64)
    """
    check_vectors("vecmat", x2, x1)
    product = matmul(expand_dims(conjugated("vecmat", x1), -2), x2)
    return squeeze(product, -2)


def check_vectors(name: str, matrices: ArrayLike, vectors: ArrayLike) -> None:
    """Raise ValueError unless there are matrices and vectors."""
    for x, kind, rank in ((matrices, "matrices", 2), (vectors, "vectors", 1)):
        aval = as_array(name, x).aval
        if aval.ndim < rank:
            raise ValueError(
                f"{name} takes {kind} of at least {rank} dimensions, not {aval}"
            )


def conjugated(name: str, a: ArrayLike) -> Array:
    """The complex conjugate; real operands as they are."""
    x = as_array(name, a)
    return conj(x) if is_complex(x.dtype) else x


# ------------------------------------------------------------------------ vectors


@remembered
def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Precision = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: object = None,
) -> Array:
    """The last dimension of `a` against the second to last of `b`; scalars multiply.

    Unlike in `matmul`, leading dimensions are not paired: the result has all
    combinations.

    Args:
        a: an array of shape (..., n), or a scalar.
        b: an array of shape (..., n, k), a vector (n,), or a scalar.
        precision: how exact products are on accelerators: a `lax.Precision` or its
            name; None for the default.
        preferred_element_type: the dtype in which products are summed and returned;
            None for that of the operands.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        an array with the dimensions of `a` but its last, then those of `b` but the one
        that it meets; in the common dtype of both unless another is preferred.

    Raises:
        TypeError: the sizes that meet differ, or the dtype that is preferred is
            narrower than that of the operands.

    >>> import verax.numpy as vnp
    >>> vnp.dot(vnp.array([[1, 2], [3, 4]]), vnp.array([10, 1]))
    Array([12, 34], dtype=int32)
    >>> a, b = vnp.ones((5, 2, 3)), vnp.ones((5, 3, 4))
    >>> vnp.dot(a, b).shape, vnp.matmul(a, b).shape
    ((5, 2, 5, 4), (5, 2, 4))
    """
    if out_sharding is not None:
        return call_sharded(dot, locals())
    x, y, preferred = operands("dot", a, b, preferred_element_type)
    if not x.ndim or not y.ndim:
        if preferred is None:
            return multiply(x, y)
        return contract(x, y, Contraction(((), ()), ((), ())), precision, preferred)
    meets = 0 if y.ndim == 1 else y.ndim - 2
    check_sizes("dot", x, y, (x.ndim - 1,), (meets,))
    numbers = Contraction(((x.ndim - 1,), (meets,)), ((), ()))
    return contract(x, y, numbers, precision, preferred)


def check_sizes(name: str, x: Array, y: Array, left: Shape, right: Shape) -> None:
    """Raise TypeError unless contracted dimensions have equal sizes."""
    sizes = tuple([x.shape[i] for i in left]), tuple([y.shape[i] for i in right])
    if sizes[0] != sizes[1]:
        raise TypeError(
            f"{name}: dot_general requires contracting dimensions to have the same "
            f"shape, got {sizes[0]} and {sizes[1]}. They are dimensions {left} of "
            f"{x.shape} and {right} of {y.shape}"
        )


@remembered
def vdot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Precision = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The product of all elements in order, those of `a` conjugated, summed.

    Args:
        a: an array or scalar.
        b: an array or scalar with as many elements, in whatever shape.
        precision: how exact products are on accelerators: a `lax.Precision` or its
            name; None for the default.
        preferred_element_type: the dtype in which products are summed and returned;
            None for that of the operands.

    Returns:
        a scalar array in the common dtype of both unless another is preferred.

    Raises:
        TypeError: the numbers of elements differ.

    >>> import verax.numpy as vnp
    >>> z = vnp.array([[1j, 2], [3, 0]])
    >>> vnp.vdot(z, z), vnp.sum(z * z)
    (Array(14.+0.j, dtype=complex64), Array(12.+0.j, dtype=complex64))
    """
    return dot(
        ravel(conjugated("vdot", a)),
        ravel(as_array("vdot", b, 1)),
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


@remembered
def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: Precision = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The products of vectors along `axis`, those of `x1` conjugated, summed.

    Args:
        x1: an array, which is conjugated if it is complex.
        x2: an array whose other dimensions broadcast with those of `x1`.
        axis: the dimension of the vectors in both, by default the last; it counts in
            each before they broadcast.
        precision: how exact products are on accelerators: a `lax.Precision` or its
            name; None for the default.
        preferred_element_type: the dtype in which products are summed and returned;
            None for that of the operands.

    Returns:
        an array of the other dimensions, in the common dtype of both unless another is
        preferred.

    Raises:
        ValueError: the sizes along `axis` differ.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[1, 2], [3, 4]])
    >>> vnp.vecdot(x, vnp.array([1, 10])), vnp.vecdot(x, x, axis=0)
    (Array([21, 43], dtype=int32), Array([10, 20], dtype=int32))
    """
    x, y = conjugated("vecdot", x1), as_array("vecdot", x2, 1)
    x = moveaxis(x, canonical_axis("vecdot", axis, x.ndim), -1)
    y = moveaxis(y, canonical_axis("vecdot", axis, y.ndim), -1)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(
            f"vecdot: shapes {x.shape} and {y.shape} differ along axis {axis}"
        )
    product = matmul(
        expand_dims(x, -2),
        expand_dims(y, -1),
        precision=precision,
        preferred_element_type=preferred_element_type,
    )
    return squeeze(product, (-2, -1))


@remembered
def inner(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Precision = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The last dimension of `a` against the last of `b`; scalars multiply.

    Complex numbers are not conjugated: `vdot` and `vecdot` do so.

    Args:
        a: an array of shape (..., n), or a scalar.
        b: an array of shape (..., n), or a scalar.
        precision: how exact products are on accelerators: a `lax.Precision` or its
            name; None for the default.
        preferred_element_type: the dtype in which products are summed and returned, and
            to which operands are converted where one is a scalar; None for that of the
            operands.

    Returns:
        an array with the dimensions of `a` but its last, then those of `b` but its
        last, in the common dtype of both unless another is preferred.

    Raises:
        TypeError: the sizes that meet differ.

    >>> import verax.numpy as vnp
    >>> vnp.inner(vnp.array([[1, 2], [3, 4]]), vnp.array([[1, 0], [1, 1]]))
    Array([[1, 3],
           [3, 7]], dtype=int32)
    """
    x, y, preferred = operands("inner", a, b, preferred_element_type)
    if not x.ndim or not y.ndim:
        pair = (x, y) if preferred is None else (convert(z, preferred) for z in (x, y))
        return multiply(*pair)
    left, right = (x.ndim - 1,), (y.ndim - 1,)
    check_sizes("inner", x, y, left, right)
    return contract(x, y, Contraction((left, right), ((), ())), precision, preferred)


# ------------------------------------------------------------------------ tensors


def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    *,
    precision: Precision = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: object = None,
) -> Array:
    """The last n dimensions of `a` against the first n of `b`, or given pairs.

    Args:
        a: an array.
        b: an array.
        axes: the number n of dimensions that meet, 2 by default; or a pair: a dimension
            of `a`, or a sequence of them, and those of `b` that they meet, in this
            order.
        precision: how exact products are on accelerators: a `lax.Precision` or its
            name; None for the default.
        preferred_element_type: the dtype in which products are summed and returned;
            None for that of the operands.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        an array with the other dimensions of `a`, then those of `b`, in the common
        dtype of both unless another is preferred.

    Raises:
        TypeError: the sizes that meet differ, or there are not enough dimensions.

    >>> import verax.numpy as vnp
    >>> a, b = vnp.arange(6).reshape(2, 3), vnp.arange(6).reshape(3, 2)
    >>> vnp.tensordot(a, b, axes=1)
    Array([[10, 13],
           [28, 40]], dtype=int32)
    >>> vnp.tensordot(a, b, axes=((0, 1), (1, 0)))
    Array(50, dtype=int32)
    """
    if out_sharding is not None:
        return call_sharded(tensordot, locals())
    x, y, preferred = operands("tensordot", a, b, preferred_element_type)
    left, right = contracted_axes(x.aval, y.aval, axes)
    check_sizes("tensordot", x, y, left, right)
    return contract(x, y, Contraction((left, right), ((), ())), precision, preferred)


def contracted_axes(
    x: ShapedArray, y: ShapedArray, axes: object
) -> tuple[Shape, Shape]:
    """The dimensions that meet, for all that `tensordot` takes as `axes`.

    Raises:
        TypeError, ValueError: they are not pairs of dimensions.
    """
    if is_index(axes):
        n = int(axes)
        if not 0 <= n <= min(x.ndim, y.ndim):
            raise TypeError(
                f"Number of tensordot axes ({n}) is negative or exceeds input ranks "
                f"({x.ndim} and {y.ndim})"
            )
        return tuple(range(x.ndim - n, x.ndim)), tuple(range(n))
    pair = [] if isinstance(axes, str) or not isinstance(axes, Iterable) else [*axes]
    if len(pair) != 2:
        raise TypeError(
            "tensordot axes argument must be an int, a pair of ints, or a pair of "
            f"lists, not {axes!r}"
        )
    for own in pair:
        if isinstance(own, str):
            raise TypeError(
                "tensordot requires both axes lists to be either ints, tuples or "
                f"lists, not {own!r}"
            )
    counts = [1 if is_index(own) else len(own) for own in pair]
    if counts[0] != counts[1]:
        raise TypeError(
            "tensordot requires axes lists to have equal length, got axes="
            f"{axes}: they name the dimensions that meet"
        )
    left = canonical_axes("tensordot", pair[0], x.ndim)
    right = canonical_axes("tensordot", pair[1], y.ndim)
    return left, right


def multi_dot(arrays: Sequence[ArrayLike], *, precision: Precision = None) -> Array:
    """The product of two or more matrices, in the cheapest order.

    The order is that of the fewest multiplications, found from the shapes.

    Args:
        arrays: two or more matrices; the first and the last may be vectors.
        precision: how exact products are on accelerators: a `lax.Precision` or its
            name; None for the default.

    Returns:
        a matrix, without the dimension of a first or last vector, in the common dtype
        of all.

    Raises:
        ValueError: there are fewer than two.

    >>> import verax.numpy as vnp
    >>> x = vnp.arange(1.0, 4.0)
    >>> a = vnp.diag(x)
    >>> vnp.linalg.multi_dot([x, a, a, x])
    Array(98., dtype=float32)
    """
    parts = [as_array("multi_dot", a, i) for i, a in enumerate(arrays)]
    if len(parts) < 2:
        raise ValueError(f"multi_dot takes at least two arrays, not {len(parts)}")
    sizes = [
        *([parts[0].shape[0]] if parts[0].ndim == 2 else [1]),
        *(part.shape[0] for part in parts[1:]),
        *([parts[-1].shape[1]] if parts[-1].ndim == 2 else [1]),
    ]
    cuts = best_order(tuple(sizes))

    def product(i: int, j: int) -> Array:
        if i == j:
            return parts[i]
        cut = cuts[i, j]
        return matmul(product(i, cut), product(cut + 1, j), precision=precision)

    return product(0, len(parts) - 1)


def best_order(sizes: Shape) -> dict[tuple[int, int], int]:
    """The cut of each run of matrices, by the number of multiplications."""
    n = len(sizes) - 1
    costs: dict[tuple[int, int], int] = {(i, i): 0 for i in range(n)}
    cuts: dict[tuple[int, int], int] = {}
    for span in range(1, n):
        for i in range(n - span):
            j = i + span
            ends = sizes[i] * sizes[j + 1]
            best = min(
                (costs[i, k] + costs[k + 1, j] + ends * sizes[k + 1], k)
                for k in range(i, j)
            )
            costs[i, j], cuts[i, j] = best
    return cuts
