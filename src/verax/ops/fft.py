"""Floor 2: discrete Fourier transforms.

One idea: a transform is linear and, except for halves of spectra and for scale, its own
transpose, so its derivative is itself and its adjoint the same kind of transform::

    fft(x, "FFT", (8,))                 # over the last dimension
    fft(x, "IRFFT", (4, 5))             # real signals of 4 x 5 from half spectra
"""

from collections.abc import Sequence
from math import log2, prod
from random import Random

import numpy as np
from attrs import frozen

from verax.ir.avals import Shape, ShapedArray, larger_size
from verax.ir.dtypes import (
    DType,
    complex64,
    complex128,
    complex_dtype,
    float32,
    float64,
    numpy_dtype,
    real_dtype,
)
from verax.ir.jaxpr import Params
from verax.ops.elementwise.arith import complex as joined, mul
from verax.ops.elementwise.bits import bitwise_or
from verax.ops.elementwise.compare import eq
from verax.ops.elementwise.select import select
from verax.ops.linalg.triangular import as_operand, conjugate
from verax.ops.structure.create import broadcasted_iota, full_like
from verax.ops.structure.shape import move_axis
from verax.rules.families.linear import linear, one_batched
from verax.rules.rows.emitter import Emitter, Operand, i64s
from verax.rules.rows.row import (
    Avals,
    Domain,
    Engine,
    Known,
    NDArray,
    Row,
    Rows,
    Sample,
    Tangent,
    Traits,
    Work,
    Zero,
)
from verax.rules.rows.type_shardings import same_places
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError, as_sizes, draw_size

KINDS = ("FFT", "IFFT", "RFFT", "IRFFT")
REALS = (float32, float64)
COMPLEXES = (complex64, complex128)


@frozen(eq=False, repr=False)
class FftParams(Params):
    """The transform, and the lengths of the signals in the last dimensions."""

    kind: str
    fft_lengths: Shape


def half(lengths: Shape) -> Shape:
    """The lengths of the spectrum of a real signal."""
    return (*lengths[:-1], lengths[-1] // 2 + 1)


def fft_typing(p: FftParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    (x,) = avals
    count = len(p.fft_lengths)
    accepted = REALS if p.kind == "RFFT" else COMPLEXES
    if x.dtype not in accepted:
        raise ShapeError(
            f"{p.kind} input must be {' or '.join(map(str, accepted))}, got {x.dtype}"
        )
    if x.ndim < count:
        raise ValueError(
            f"{p.kind} input shape {x.shape} must have at least as many input "
            f"dimensions as fft_lengths {p.fft_lengths}"
        )
    if not 1 <= count <= 3:
        raise ValueError(f"fft runs over one to three dimensions, not {count} of {x}")
    lengths = half(p.fft_lengths) if p.kind == "IRFFT" else p.fft_lengths
    if x.shape[-count:] != lengths:
        raise ValueError(
            f"{p.kind} input shape {x.shape} minor dimensions must be equal to "
            + (
                f"all except the last fft_length, got fft_lengths={p.fft_lengths}; the "
                f"last of them is halved: {lengths}"
                if p.kind == "IRFFT"
                else f"fft_lengths {p.fft_lengths}"
            )
        )
    stack = x.shape[:-count]
    if p.kind == "RFFT":
        shape, dtype = half(p.fft_lengths), complex_dtype(x.dtype)
    elif p.kind == "IRFFT":
        shape, dtype = p.fft_lengths, real_dtype(x.dtype)
    else:
        shape, dtype = lengths, x.dtype
    return (ShapedArray((*stack, *shape), dtype, x.weak_type),)


def evaluate_fft(p: FftParams, x: NDArray) -> NDArray:
    axes = tuple(range(-len(p.fft_lengths), 0))
    if not prod(p.fft_lengths):
        (out,) = fft_typing(p, [ShapedArray(x.shape, x.dtype)])
        return np.zeros(out.shape, numpy_dtype(out.dtype))
    from scipy.fft import fftn, ifftn, irfftn, rfftn

    functions = {
        "FFT": fftn,
        "IFFT": ifftn,
        "RFFT": rfftn,
        "IRFFT": irfftn,
    }
    result: NDArray = functions[p.kind](x, s=p.fft_lengths, axes=axes)
    return result


def transpose_fft(
    engine: Engine, p: FftParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    (ct,), (x,) = cts, args
    if isinstance(ct, Zero):
        return (Zero(x.aval),)
    if p.kind == "RFFT":
        return (from_half_spectrum(p.fft_lengths, ct),)
    if p.kind == "IRFFT":
        return (to_half_spectrum(p.fft_lengths, ct),)
    return (fft_p.call(p, ct),)


def from_half_spectrum(lengths: Shape, ct: Array) -> Array:
    """The transpose of RFFT: IRFFT of the conjugate, halved where it is doubled."""
    halved = mul(conjugate(ct), weights(lengths, ct, 1.0, 0.5))
    out = fft_p.call(FftParams("IRFFT", lengths), halved)
    return mul(out, full_like(out, float(prod(lengths))))


def to_half_spectrum(lengths: Shape, ct: Array) -> Array:
    """The transpose of IRFFT: the spectrum, doubled where it stands for two places."""
    spectrum = fft_p.call(FftParams("RFFT", lengths), ct)
    scale = 1 / max(prod(lengths), 1)
    weight = weights(lengths, spectrum, scale, 2 * scale)
    return mul(conjugate(spectrum), weight)


def weights(lengths: Shape, x: Array, alone: float, paired: float) -> Array:
    """One number where half a spectrum stands for one place, another for two."""
    last = x.ndim - 1
    places = broadcasted_iota(np.int32, x.shape, last)
    single = eq(places, 0)
    if lengths[-1] % 2 == 0:
        single = bitwise_or(single, eq(places, lengths[-1] // 2))
    return select(single, full_like(x, alone), full_like(x, paired))


def batch_fft(p: FftParams, size: int, x: Array, axis: int) -> tuple[Array, int]:
    if axis >= x.ndim - len(p.fft_lengths):
        x, axis = move_axis(x, axis, 0), 0
    return fft_p.call(p, x), axis


def lower_fft(
    e: Emitter, p: FftParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    if not xs[0].aval.size or not outs[0].size:
        return (e.constant(0, outs[0]),)
    return e.op(
        "stablehlo.fft",
        xs,
        outs,
        (),
        fft_type=f"#stablehlo<fft_type {p.kind}>",
        fft_length=i64s(p.fft_lengths),
    )


def draw_fft(random: Random) -> Sample[FftParams]:
    """Even and odd lengths, one and none, after up to two other dimensions."""
    kind = random.choice(KINDS)
    count = random.choice((1, 1, 2, 3))
    lengths = tuple(draw_size(random, (1, 2, 3, 4, 5)) for _ in range(count))
    stack = tuple(random.choice((0, 1, 2)) for _ in range(random.choice((0, 0, 1, 2))))
    shape = half(lengths) if kind == "IRFFT" else lengths
    dtype: DType = float32 if kind == "RFFT" else complex64
    aval = ShapedArray((*stack, *shape), dtype)
    return Sample(FftParams(kind, lengths), (aval,))


def fft_flops(p: FftParams, ins: Avals, outs: Avals) -> float:
    """`5 n log2 n` operations for each transform of size n."""
    size = larger_size(ins[0].size, outs[0].size)
    return 5.0 * size * log2(max(2, prod(p.fft_lengths)))


fft_p: Row[FftParams] = linear(
    "fft",
    FftParams,
    typing=fft_typing,
    evaluate=evaluate_fft,
    transpose=transpose_fft,
    batch=one_batched(batch_fft),
    lower=lower_fft,
    draw=draw_fft,
    # Transforms of numbers of very different size lose the small ones.
    domains=(Domain(-8, 8),),
    sharding=same_places(lambda p, x: range(x.ndim - len(p.fft_lengths))),
    traits=Traits(Work.BLOCK, fft_flops),
)


def fft(x: object, fft_type: object, fft_lengths: Sequence[int]) -> Array:
    """The discrete Fourier transform over the last one to three dimensions.

    The inverse ones divide by the number of elements. Real operands of FFT, IFFT and
    IRFFT become complex first; integers are refused, unlike in `verax.numpy.fft`.

    Args:
        x: an array of floats or complex numbers, for RFFT of floats. Its last
            dimensions are `fft_lengths`, with n // 2 + 1 instead of the last one for
            IRFFT.
        fft_type: "FFT", "IFFT", "RFFT" or "IRFFT", or a `lax.FftType`. RFFT takes real
            signals and gives the first n // 2 + 1 places of the last dimension, IRFFT
            the reverse.
        fft_lengths: the lengths of the signals, one for each of the dimensions to
            transform, which are the last. Nothing is transformed if there are none.

    Returns:
        The spectra, complex and of the shape of `x`; for RFFT with n // 2 + 1 places in
        the last dimension. For IRFFT real signals of `fft_lengths`.

    Raises:
        TypeError: the dtype has no transform.
        ValueError: there is no such kind, or the lengths are not those of `x`.

    Only the length tells a spectrum of 4 places from one of 5:

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.fft(vnp.arange(4.0), "RFFT", (4,))
    Array([ 6.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    >>> lax.fft(vnp.array([20.0, 0.0, 0.0]), "IRFFT", (4,))
    Array([5., 5., 5., 5.], dtype=float32)
    >>> lax.fft(vnp.array([20.0, 0.0, 0.0]), "IRFFT", (5,))
    Array([4., 4., 4., 4., 4.], dtype=float32)
    """
    kind = str(getattr(fft_type, "name", fft_type)).upper()
    if kind not in KINDS:
        raise ValueError(
            f"fft_type must be one of {', '.join(KINDS)}, not {fft_type!r}"
        )
    a = as_operand(x)
    if kind != "RFFT" and a.dtype in REALS:
        a = joined(a, 0.0)
    lengths = as_sizes("fft", "fft_lengths", fft_lengths)
    if not lengths:
        return a
    return fft_p.call(FftParams(kind, lengths), a)


ROWS: Rows = (fft_p,)
