"""Floor 1: the family of rows on stacks of matrices, computed by LAPACK.

One idea: a row says what it does to one matrix: the types of its results, one call of
SciPy's LAPACK, and the same routine as a custom call. The family adds the leading
dimensions, empty matrices, batching, and NaN where the routine reports failure::

    cholesky_p = matrix_row("cholesky", NoParams, results=..., evaluate=..., ...)
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from attrs import evolve

from verax.ir.avals import Shape, ShapedArray, SymbolicSize, smaller_size
from verax.ir.dtypes import (
    DType,
    complex64,
    complex128,
    float32,
    float64,
    int32,
    is_complex,
    is_inexact,
    numpy_dtype,
)
from verax.ir.jaxpr import Params
from verax.rules.families.elementwise import moving
from verax.rules.rows.emitter import (
    Emitter,
    Operand,
    aliases_text,
    batch_attributes,
    compared,
    layout_text,
    typed_call,
)
from verax.rules.rows.infer import infer
from verax.rules.rows.row import (
    NO_TRAITS,
    NOWHERE,
    Avals,
    Axis,
    BatchRule,
    Engine,
    Flops,
    JvpRule,
    LowerRule,
    NDArray,
    Row,
    Traits,
    TransposeRule,
    TypeRule,
    Work,
)
from verax.rules.rows.type_shardings import leading
from verax.rules.values.array import Array
from verax.rules.values.memo import asked, pure
from verax.rules.values.sizes import ShapeError

LETTERS: Mapping[DType, str] = {
    float32: "s",
    float64: "d",
    complex64: "c",
    complex128: "z",
}


@pure()
def host_routine(name: str, dtype: np.dtype[np.generic]) -> Callable[..., Any]:
    """LAPACK's routine of this name for a dtype, from SciPy, which takes long to load.

    To look it up costs as much as to call it.
    """
    from scipy.linalg.lapack import get_lapack_funcs

    (out,) = get_lapack_funcs((name,), dtype=dtype)
    function: Callable[..., object] = out
    return function


SOLVING = ("cpu", "gpu")
"""The platforms with routines for matrices: LAPACK, and the solvers of GPUs."""
VENDORS: Mapping[str, str] = MappingProxyType({"cuda": "cu", "rocm": "hip"})
"""The beginnings of the names of the routines for GPUs."""
type Cores[P] = Callable[[P, Sequence[ShapedArray]], Sequence[ShapedArray]]
type OneMatrix[P] = Callable[..., Sequence[NDArray]]


def turned_columns(vectors: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The phases that bring the columns of `exact` nearest to those of `vectors`.

    >>> v = np.eye(2)
    >>> turned_columns(-v, v).tolist()
    [-1.0, -1.0]
    """
    inner = np.sum(np.conj(exact) * vectors, axis=-2)
    size = np.abs(inner)
    return np.where(size > 0, inner / np.where(size > 0, size, 1), 1)


def matrix_row[P: Params](
    name: str,
    params: type[P],
    *,
    results: Cores[P],
    evaluate: OneMatrix[P],
    lower: LowerRule[P] | None = None,
    lower_on: Mapping[str, LowerRule[P]] = NOWHERE,
    ranks: Sequence[int] = (2,),
    jvp: JvpRule[P] | None = None,
    transpose: TransposeRule[P] | None = None,
    batch: BatchRule[P] | None = None,
    integers: bool = False,
    multiple_results: bool = False,
    traits: Traits = NO_TRAITS,
) -> Row[P]:
    """A row on operands whose last `ranks[i]` dimensions are one matrix or vector.

    `results(params, types of one call)` gives the types of one call, or raises;
    `evaluate(params, *arrays)` is one call. The dimensions in front are shared by all
    operands and lead all results. `lower` and the rules of `lower_on` see whole
    operands, none of them empty.
    """

    def stacked(rule: LowerRule[P]) -> LowerRule[P]:
        return lambda e, p, xs, outs: lower_stack(e, row, p, xs, outs, ranks, rule)

    row: Row[P] = Row(
        name,
        params,
        typing=stacked_typing(name, results, ranks, integers),
        evaluate=lambda engine, p, xs: evaluate_stack(row, p, xs, ranks, evaluate),
        jvp=jvp,
        transpose=transpose,
        batch=batch
        or (
            lambda engine, p, size, xs, axes: batch_stack(
                engine, row, p, size, xs, axes
            )
        ),
        lower=None if lower is None else stacked(lower),
        lower_on={name: stacked(rule) for name, rule in lower_on.items()},
        multiple_results=multiple_results,
        traits=evolve(traits, work=traits.work or Work.STORED),
        sharding=leading(lambda x: ranks[0]),
    )
    return row


def cubic(factor: float) -> Flops:
    """A factorisation of m x n matrices: `factor m n min(m, n)` operations."""

    def count(p: object, ins: Avals, outs: Avals) -> float:
        *_, m, n = ins[0].shape
        return factor * ins[0].size * smaller_size(m, n)

    return count


def aval_like(x: NDArray) -> ShapedArray:
    return ShapedArray(x.shape, x.dtype)


def stacked_typing[P](
    name: str, results: Cores[P], ranks: Sequence[int], integers: bool
) -> TypeRule[P]:
    """Types with the leading dimensions that all operands share."""

    def typing(p: P, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
        if len(avals) != len(ranks):
            raise TypeError(f"{name} takes {len(ranks)} operands, not {len(avals)}")
        for aval, rank in zip(avals, ranks, strict=True):
            check_operand(name, aval, avals[0].dtype, rank, integers)
        stack = avals[0].shape[: avals[0].ndim - ranks[0]]
        for aval, rank in zip(avals, ranks, strict=True):
            if aval.shape[: aval.ndim - rank] != stack:
                raise TypeError(
                    f"{name} takes operands with equal leading dimensions, not "
                    f"{', '.join(map(str, avals))}; broadcast them first"
                )
        weak = all(aval.weak_type for aval in avals)
        cores = [aval.with_shape(aval.shape[len(stack) :]) for aval in avals]
        return tuple(
            ShapedArray((*stack, *x.shape), x.dtype, weak and is_inexact(x.dtype))
            for x in results(p, cores)
        )

    return typing


def check_operand(
    name: str, aval: ShapedArray, dtype: DType, rank: int, integers: bool
) -> None:
    """Raise unless LAPACK has the dtype and the operand enough dimensions."""
    if aval.dtype != dtype:
        raise TypeError(
            f"{name} takes operands of the same dtype, not {dtype} and {aval.dtype}"
        )
    if integers and dtype != int32:
        raise TypeError(f"{name} takes int32 arrays, not {dtype}")
    if not integers and dtype not in LETTERS:
        raise TypeError(
            f"{name} does not accept dtype {dtype}: it takes float32, float64, "
            "complex64 or complex128 arrays; convert them with "
            "verax.lax.convert_element_type"
        )
    if aval.ndim < rank:
        raise ShapeError(
            f"{name} takes a {'vector' if rank == 1 else 'matrix'} or a stack of them "
            f"(at least {rank} dimensions), not {aval}"
        )


def square(name: str, aval: ShapedArray) -> int:
    """The size of a square matrix.

    Raises:
        ValueError: the matrix is not square.
    """
    rows, columns = aval.shape
    if rows != columns:
        raise ValueError(
            f"{name} takes square matrices, not matrices of {rows} x {columns} ({aval})"
        )
    return rows


def evaluate_stack[P: Params](
    row: Row[P],
    p: P,
    xs: Sequence[NDArray],
    ranks: Sequence[int],
    evaluate: OneMatrix[P],
) -> Sequence[NDArray]:
    """One call for each element of the leading dimensions."""
    stack = xs[0].shape[: xs[0].ndim - ranks[0]]
    if not stack:
        return [np.asarray(result, order="C") for result in evaluate(p, *xs)]
    outs = asked(infer, p, row, p, *map(aval_like, xs))
    out = [np.zeros(aval.shape, numpy_dtype(aval.dtype)) for aval in outs]
    for index in np.ndindex(stack):
        results = evaluate(p, *[x[index] for x in xs])
        for whole, result in zip(out, results, strict=True):
            whole[index] = result
    return out


def batch_stack[P: Params](
    engine: Engine,
    row: Row[P],
    p: P,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """One more leading dimension, in front, for all operands."""
    outs = row.bind(
        p, *[in_front(engine, x, a, size) for x, a in zip(args, axes, strict=True)]
    )
    return outs, (0,) * len(outs)


def in_front(engine: Engine, x: Array, axis: Axis, size: int) -> Array:
    """`x` with its batch dimension, which it may lack, in front."""
    if axis is None:
        shape = (size, *x.shape)
        return engine.core.broadcast_in_dim(x, shape, tuple(range(1, x.ndim + 1)))
    return engine.core.transpose(x, moving(x.ndim, axis, 0)) if axis else x


def lower_stack[P: Params](
    e: Emitter,
    row: Row[P],
    p: P,
    xs: Sequence[Operand],
    outs: Sequence[ShapedArray],
    ranks: Sequence[int],
    lower: LowerRule[P],
) -> Sequence[Operand]:
    """The routine, or the constants that it gives for empty operands."""
    if all(x.aval.size for x in xs):
        return lower(e, p, xs, outs)
    stack = xs[0].aval.shape[: xs[0].aval.ndim - ranks[0]]
    # A stack of symbolic size is one matrix, as often as it takes.
    skipped = len(stack) if any([isinstance(n, SymbolicSize) for n in stack]) else 0
    shapes = [x.aval.shape[skipped:] for x in xs]
    dtypes = [numpy_dtype(x.aval.dtype) for x in xs]
    empty = [np.zeros(s, dtype) for s, dtype in zip(shapes, dtypes, strict=True)]
    assert row.evaluate is not None
    # What has no elements holds no information: the routines take no such operands.
    values = row.evaluate(None, p, empty)  # type: ignore[arg-type]  # not looked at
    out = []
    for value, aval in zip(values, outs, strict=True):
        dims = tuple(range(skipped, aval.ndim))
        one = e.constant(value, aval.with_shape(aval.shape[skipped:]))
        out.append(e.broadcast(one, aval.shape, dims) if skipped else one)
    return out


# -------------------------------------------------------------------- custom calls


def layout(rank: int, columns: bool) -> str:
    """The minor-to-major order of dimensions; matrices are stored by columns."""
    order = list(range(rank))[::-1]
    if columns:
        order[:2] = [rank - 2, rank - 1]
    return layout_text(order)


def layouts(avals: Sequence[ShapedArray], rank: int) -> str:
    return f"[{', '.join(layout(a.ndim, a.ndim == rank) for a in avals)}]"


def letter(value: str) -> str:
    """A LAPACK option as an attribute."""
    return f"{ord(value)} : ui8"


def routine(
    e: Emitter,
    name: str,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
    aliases: Mapping[int, int],
    **options: str,
) -> tuple[Operand, ...]:
    """One LAPACK routine; `aliases` says which operand becomes which result.

    `name` has a `?` for the letter of the dtype of the first operand.
    """
    target = f"lapack_{name.replace('?', LETTERS[operands[0].aval.dtype])}_ffi"
    return matrix_call(e, target, operands, outs, aliases, options)


def solver(
    e: Emitter,
    name: str,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
    *,
    columns: bool = True,
    **options: str,
) -> tuple[Operand, ...]:
    """One routine of cuSOLVER or hipSOLVER; the first operand becomes the first result.

    They have one name for all dtypes. Without `columns`, matrices are stored by rows.
    """
    target = f"{VENDORS[e.platform]}solver_{name}_ffi"
    return matrix_call(e, target, operands, outs, {0: 0}, options, columns=columns)


def hybrid(
    e: Emitter,
    name: str,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
    aliases: Mapping[int, int],
    **options: str,
) -> tuple[Operand, ...]:
    """One routine that the plugin of a GPU computes on the host, or by MAGMA.

    It takes MAGMA where that is installed and the matrices are large.
    """
    target = f"{VENDORS[e.platform]}hybrid_{name}"
    settings = {"magma": '"auto"', **options}
    return matrix_call(e, target, operands, outs, aliases, settings)


def matrix_call(
    e: Emitter,
    target: str,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
    aliases: Mapping[int, int],
    options: Mapping[str, str],
    *,
    columns: bool = True,
) -> tuple[Operand, ...]:
    """A custom call on matrices; `aliases` says which operand becomes which result.

    Of the operands at least one is a matrix, or a stack of them.
    """
    avals = [x.aval for x in operands]
    rank = max([aval.ndim for aval in avals])
    config = ", ".join(f"{key} = {value}" for key, value in options.items())
    return e.op(
        "stablehlo.custom_call",
        operands,
        outs,
        (),
        call_target_name=f'"{target}"',
        operand_layouts=layouts(avals, rank if columns else -1),
        result_layouts=layouts(outs, rank if columns else -1),
        output_operand_aliases=aliases_text(aliases.items(), len(outs)),
        **typed_call(config),
        **batch_attributes(avals, outs, rank - 2),
    )


def by_dtype(dtype: DType, real: str, other: str) -> str:
    """The name of a routine that is called differently for complex matrices."""
    return other if is_complex(dtype) else real


def info_type(stack: Shape) -> ShapedArray:
    return ShapedArray(stack, int32)


def or_nan(
    e: Emitter,
    info: Operand,
    results: Sequence[Operand],
    way: str = "EQ",
) -> tuple[Operand, ...]:
    """The results, NaN for those matrices for which `info` says that LAPACK failed."""
    stack = info.aval.shape
    fine = compared(e, info, way, e.constant(0, info.aval))
    dims = tuple(range(len(stack)))
    return tuple(
        e.op(
            "stablehlo.select",
            (
                e.broadcast(fine, x.aval.shape, dims) if stack else fine,
                x,
                e.constant(nan(x.aval.dtype), x.aval),
            ),
            (x.aval,),
        )[0]
        for x in results
    )


def nan(dtype: DType) -> Any:
    return complex(np.nan, np.nan) if is_complex(dtype) else np.nan


def nan_like(x: NDArray) -> NDArray:
    """An array of NaN in the shape and dtype of `x`."""
    return np.full(x.shape, nan(x.dtype), x.dtype)
