"""Floor 2: what many rows share: XLA's meaning of operations, and asked-for accuracy.

One idea: an accuracy chooses among implementations, and on CPUs and GPUs XLA has one
for each function; so it is checked and then changes nothing, as in JAX there::

    exp(x, accuracy=AccuracyMode.HIGHEST)
    exp(x, accuracy=Tolerance(rtol=1e-5))
"""

from collections.abc import Callable
from enum import Enum

import numpy as np
from attrs import frozen

from verax.ir.avals import bit_width
from verax.ir.dtypes import is_complex, is_float, is_integer, is_signed, is_unsigned
from verax.ir.jaxpr import NO_PARAMS, NoParams
from verax.ir.records import ReprMixin
from verax.rules.rows.row import NDArray, Row
from verax.rules.values.array import Array
from verax.rules.values.state import STATE


class AccuracyMode(Enum):
    """Implementations of a function: where there is one, both modes mean it."""

    __module__ = "verax.lax"

    HIGHEST = 1
    DEFAULT = 2


@frozen(repr=False)
class Tolerance(ReprMixin):
    """An error that is allowed: absolute, relative, or in units of the last place.

    It lets XLA choose a faster implementation; it does not check the result, and where
    there is only one implementation (CPUs and GPUs) it changes nothing.

    Raises:
        ValueError: none of the three is above 0, or one is below.
    """

    __module__ = "verax.lax"

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __attrs_post_init__(self) -> None:
        """Raise ValueError if no result could meet the tolerance."""
        for name in ("atol", "rtol", "ulps"):
            error = getattr(self, name)
            if not error >= 0:
                raise ValueError(f"Tolerance: {name} must be at least 0, not {error!r}")
        if self.atol == self.rtol == self.ulps == 0:
            raise ValueError("Tolerance: set atol, rtol or ulps to more than 0")


type Accuracy = AccuracyMode | Tolerance | None


def rounded(row: Row[NoParams], x: object, accuracy: Accuracy) -> Array:
    """The function `row` of x by the one implementation that there is.

    Raises:
        TypeError: see `check_accuracy`.
    """
    if accuracy is not None:
        check_accuracy(row.name, accuracy)
    return STATE.interpreter.bind(row, NO_PARAMS, (x,))[0]


def check_accuracy(name: str, accuracy: Accuracy) -> None:
    """Raise TypeError unless accuracy is None, a mode or a tolerance."""
    if accuracy is not None and not isinstance(accuracy, AccuracyMode | Tolerance):
        raise TypeError(
            f"{name}: accuracy must be None, an AccuracyMode or a Tolerance, "
            f"not {accuracy!r}"
        )


# -----------------------------------------------------------------------------
# NumPy functions with the semantics of XLA, for `evaluate` columns.
#
# Where NumPy and XLA differ (division by zero, wide shifts, small floats),
# the reference says what XLA does::
#
#     divide(np.int32(5), np.int32(0))      # -1


PLAIN = frozenset(np.dtype(d) for d in ("f4", "f8", "c8", "c16"))


def wide(x: NDArray) -> NDArray:
    """Floats of less than 32 bits as float32; other arrays as they are."""
    if x.dtype in PLAIN or not is_float(x.dtype):
        return x
    return x.astype(np.float32)


def in_wide(function: Callable[..., NDArray]) -> Callable[..., NDArray]:
    """`function` computed in float32 where an operand is a smaller float."""
    return lambda *xs: function(*[wide(x) for x in xs])


def as_bits(x: NDArray) -> NDArray:
    """The bit patterns of integers as uint64."""
    mask = np.uint64((1 << bit_width(x.dtype)) - 1)
    # Conversions between integers repeat the sign, or keep all 64 bits.
    return x.astype(np.int64).view(np.uint64) & mask


def from_bits(bits: NDArray, dtype: np.dtype[np.generic]) -> NDArray:
    """Integers of `dtype` from their bit patterns, above which other bits may stand."""
    gap = 64 - bit_width(dtype)
    top = bits << np.uint64(gap)
    whole = top if is_unsigned(dtype) else top.view(np.int64)
    return (whole >> whole.dtype.type(gap)).astype(dtype)


def divide(x: NDArray, y: NDArray) -> NDArray:
    """x / y; for integers towards zero, and -1 (all bits) where y is zero."""
    if x.dtype.kind == "f":
        quick: NDArray = x / y
        return quick
    if x.dtype.kind == "c":
        return complex_quotient(x, y)
    if not is_integer(x.dtype):
        ratio: NDArray = wide(x) / wide(y)
        return ratio
    if divides_plainly(x, y):
        whole: NDArray = np.asarray((x - np.fmod(x, y)) // y)
        return whole
    a, b, zero = dividends(x, y)
    quotient = np.where(zero, ~np.zeros_like(a), (a - np.fmod(a, b)) // b)
    return np.asarray(quotient.astype(x.dtype))


def complex_quotient(x: NDArray, y: NDArray) -> NDArray:
    """x / y of complex numbers, infinite and zero where C (annex G) and XLA say so."""
    out = np.asarray(x / y)
    lost = (np.isnan(out.real) & np.isnan(out.imag)) | np.equal(y, 0)
    if lost.any():
        x, y = (np.broadcast_to(z, out.shape)[lost] for z in (x, y))
        out[lost] = quotient_at_edges(x, y)
    return out


def quotient_at_edges(x: NDArray, y: NDArray) -> NDArray:
    """x / y where the divisor is zero or one of them is infinite; NaN elsewhere."""
    zero = np.equal(y, 0)
    large, small = np.isinf(x) & np.isfinite(y), np.isfinite(x) & np.isinf(y)
    size = np.where(large, np.inf, np.where(small, 0.0, np.nan))
    size = np.where(zero, np.copysign(np.inf, y.real), size)
    a, b = (np.where(large, direction(part), part) for part in (x.real, x.imag))
    c, d = (np.where(small, direction(part), part) for part in (y.real, y.imag))
    out = np.empty_like(x)
    out.real = size * np.where(zero, x.real, a * c + b * d)
    out.imag = size * np.where(zero, x.imag, b * c - a * d)
    return out


def direction(x: NDArray) -> NDArray:
    """1 or -1 for infinities, else zeros, with the signs of x."""
    return np.asarray(np.copysign(np.isinf(x).astype(x.dtype), x))


def remainder(x: NDArray, y: NDArray) -> NDArray:
    """The remainder of x after division towards zero; x itself where y is zero."""
    if not is_integer(x.dtype):
        rest: NDArray = np.fmod(wide(x), wide(y))
        return rest
    if divides_plainly(x, y):
        return np.asarray(np.fmod(x, y))
    a, b, zero = dividends(x, y)
    return np.asarray(np.where(zero, a, np.fmod(a, b)).astype(x.dtype))


def divides_plainly(x: NDArray, y: NDArray) -> bool:
    """Whether integers of NumPy's own are divided by one that is not zero."""
    return y.ndim == 0 and x.dtype.kind in "iu" and bool(y)


def dividends(x: NDArray, y: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Integers in a dtype of NumPy's own, 1 for zero divisors, and where those are."""
    if bit_width(x.dtype) < 8:
        kind = np.uint8 if is_unsigned(x.dtype) else np.int8
        x, y = x.astype(kind), y.astype(kind)
    zero = np.equal(y, 0)
    return x, np.where(zero, np.ones_like(y), y), zero


def multiply_high(x: NDArray, y: NDArray) -> NDArray:
    """The upper half of the product, with the sign of it for signed integers."""
    width = bit_width(x.dtype)
    wide = np.int64 if is_signed(x.dtype) else np.uint64
    if width < 64:
        product = x.astype(wide) * y.astype(wide)
        return (product >> wide(width)).astype(x.dtype)
    a, b = x.astype(np.uint64), y.astype(np.uint64)
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    with np.errstate(over="ignore"):
        middle = (a >> half) * (b & mask) + ((a & mask) * (b & mask) >> half)
        cross = (a & mask) * (b >> half) + (middle & mask)
        out = (a >> half) * (b >> half) + (middle >> half) + (cross >> half)
        if wide is np.uint64:
            return np.asarray(out)
        out = out - np.where(x < 0, b, 0) - np.where(y < 0, a, 0)
    return np.asarray(out.astype(np.int64))


def moves_in_numpy(x: NDArray, y: NDArray) -> bool:
    """Whether NumPy's own shift will do, which reads the amount without sign, too."""
    return x.dtype is y.dtype and x.dtype.kind in "iu"


def shift_left(x: NDArray, y: NDArray) -> NDArray:
    """x 2^y; 0 where y, read without sign, is the width or more."""
    if moves_in_numpy(x, y):
        return np.asarray(np.left_shift(x, y))
    width, amount = bit_width(x.dtype), as_bits(y)
    moved = np.where(amount < width, as_bits(x) << np.minimum(amount, 63), 0)
    return from_bits(moved.astype(np.uint64), x.dtype)


def shift_right_logical(x: NDArray, y: NDArray) -> NDArray:
    """The bits of x moved down, zeros moved in; 0 for the width or more."""
    if moves_in_numpy(x, y):
        bits = f"u{x.dtype.itemsize}"
        return np.asarray(np.right_shift(x.view(bits), y.view(bits))).view(x.dtype)
    width, amount = bit_width(x.dtype), as_bits(y)
    moved = np.where(amount < width, as_bits(x) >> np.minimum(amount, 63), 0)
    return from_bits(moved.astype(np.uint64), x.dtype)


def shift_right_arithmetic(x: NDArray, y: NDArray) -> NDArray:
    """The bits of x moved down, copies of the top bit moved in."""
    if moves_in_numpy(x, y):
        bits = f"i{x.dtype.itemsize}"
        return np.asarray(np.right_shift(x.view(bits), y.view(bits))).view(x.dtype)
    gap = 64 - bit_width(x.dtype)
    signed = (as_bits(x) << np.uint64(gap)).view(np.int64) >> np.int64(gap)
    moved = signed >> np.minimum(as_bits(y), 63).astype(np.int64)
    return from_bits(moved.view(np.uint64), x.dtype)


def count_leading_zeros(x: NDArray) -> NDArray:
    """The number of zeros that stand above the highest bit of x; the width for 0."""
    bits = as_bits(x)
    for shift in (1, 2, 4, 8, 16, 32):
        bits = bits | (bits >> np.uint64(shift))
    return (bit_width(x.dtype) - np.bitwise_count(bits).astype(np.int64)).astype(
        x.dtype
    )


def population_count(x: NDArray) -> NDArray:
    """The number of bits of x that are set."""
    return np.bitwise_count(as_bits(x)).astype(x.dtype)


def sign(x: NDArray) -> NDArray:
    """-1, 0 or 1; zeros keep their sign, NaN stays, complex numbers have length 1."""
    if is_complex(x.dtype):
        scale = np.abs(x)
        return np.where(scale == 0, x, join_parts(x.real / scale, x.imag / scale))
    if is_integer(x.dtype):
        return np.where(x > 0, 1, np.where(x < 0, -1, 0))
    signs: NDArray = np.copysign(np.sign(wide(x)), wide(x))
    return signs


def expm1(x: NDArray) -> NDArray:
    """exp(x) - 1; complex infinities as the lowering has them.

    NumPy makes NaN of an infinity times an imaginary part of zero.
    """
    y: NDArray = np.expm1(x)
    if not is_complex(x.dtype):
        return y
    odd = np.isinf(x.real) & ~np.isfinite(x.imag)
    imag = np.where(x.imag == 0, x.imag, np.where(odd & (x.real < 0), 0, y.imag))
    # Adding 0 makes 0 of a -0, as cos(0) - 1 is.
    return join_parts(np.where(odd, np.maximum(x.real, -1), y.real) + 0, imag)


def log1p(x: NDArray) -> NDArray:
    """log(1 + x); NumPy adds the one to complex numbers, and small ones are lost.

    With x = a + ib the real part is log1p(a (2 + a) + b²) / 2.
    """
    if not is_complex(x.dtype):
        return np.log1p(x)
    whole = np.asarray(np.log1p(x))
    a, b = x.real.astype(np.longdouble), x.imag.astype(np.longdouble)
    near = (abs(a) < 4) & (abs(b) < 4)
    a, b = np.where(near, a, 0), np.where(near, b, 0)
    with np.errstate(divide="ignore"):  # at -1, of which NumPy has warned
        real = np.log1p(a * (2 + a) + b * b) / 2
    out = whole.copy()
    out.real = np.where(near, real, whole.real)
    return out


def maximum(x: NDArray, y: NDArray) -> NDArray:
    """The larger, NaN if one is; complex numbers by real, then imaginary part."""
    larger: NDArray = np.maximum(x, y)
    return np.where(x == y, y, larger) if is_complex(x.dtype) else larger


def minimum(x: NDArray, y: NDArray) -> NDArray:
    """The smaller, NaN if one is; complex numbers by real, then imaginary part."""
    smaller: NDArray = np.minimum(x, y)
    return np.where(x == y, y, smaller) if is_complex(x.dtype) else smaller


def join_parts(x: NDArray, y: NDArray) -> NDArray:
    """x + iy, without the products that would make NaN of infinities."""
    joined = np.empty(np.broadcast_shapes(x.shape, y.shape), np.result_type(x, 1j))
    joined.real, joined.imag = x, y
    return joined


def nextafter(x: NDArray, y: NDArray) -> NDArray:
    """The neighbour of x on the side of y; y where they are equal."""
    return np.where(x == y, y, np.nextafter(x, y))


def integer_power(x: NDArray, exponent: int) -> NDArray:
    """x to a power by repeated multiplication, exact (modulo 2^width) for integers."""
    square, left = wide(x), abs(exponent)
    if not left:
        return np.ones_like(square)
    # Not from one on: complex infinities times one are not themselves.
    while not left & 1:
        square, left = square * square, left >> 1
    power = square
    while left := left >> 1:
        square = square * square
        if left & 1:
            power = power * square
    return divide(np.ones_like(power), power) if exponent < 0 else power


def logistic(x: NDArray) -> NDArray:
    """1 / (1 + exp(-x))."""
    x = wide(x)
    left = np.real(x) < 0
    small = np.exp(np.where(left, x, -x))
    result: NDArray = np.where(left, small, 1) / (1 + small)
    return result


def round_away(x: NDArray) -> NDArray:
    """The nearest integer, halves away from zero."""
    x = wide(x)
    down = np.trunc(x)
    # What is added has the sign of x, so that no -0.0 is lost.
    rounded: NDArray = down + np.copysign(np.abs(x - down) >= 0.5, x)
    return rounded


def arctan2(x: NDArray, y: NDArray) -> NDArray:
    """The angle of the point (y, x); its analytic continuation for complex numbers."""
    if not is_complex(x.dtype):
        angle: NDArray = np.arctan2(wide(x), wide(y))
        return angle
    turned: NDArray = -1j * np.log((y + 1j * x) / np.sqrt(x * x + y * y))
    return turned


def total_order_key(x: NDArray) -> NDArray:
    """Integers that compare as IEEE's total order: -NaN < -inf < -0 < 0 < inf < NaN."""
    if not is_float(x.dtype):
        return x
    signed = np.dtype(f"i{x.dtype.itemsize}")
    bits = np.ascontiguousarray(x).view(signed).reshape(x.shape)
    return np.where(bits < 0, np.iinfo(signed).max ^ bits, bits)


def narrow(x: NDArray, exponent_bits: int, mantissa_bits: int) -> NDArray:
    """x rounded to a float of that many bits, half to even, subnormals to zero."""
    wider = wide(x)
    width = 8 * wider.dtype.itemsize
    unsigned = np.dtype(f"u{width // 8}")
    own = np.finfo(wider.dtype)
    bits = np.ascontiguousarray(wider).view(unsigned).reshape(x.shape)
    lost = int(own.nmant) - mantissa_bits
    if lost > 0:
        last = (bits >> unsigned.type(lost)) & unsigned.type(1)
        half = unsigned.type((1 << (lost - 1)) - 1)
        keep = unsigned.type(((1 << width) - 1) ^ ((1 << lost) - 1))
        bits = (bits + last + half) & keep
    rounded = bits.view(wider.dtype)
    if exponent_bits < int(own.nexp):
        largest = 2.0 ** (2 ** (exponent_bits - 1))
        smallest = 2.0 ** (2 - 2 ** (exponent_bits - 1))
        size = np.abs(rounded)
        rounded = np.where(size >= largest, np.inf, np.where(size < smallest, 0, size))
    rounded = np.where(np.isnan(wider), wider, np.abs(rounded))
    result: NDArray = np.copysign(rounded, wider)
    return result


def exp2(x: NDArray) -> NDArray:
    """2 to the power x."""
    power: NDArray = np.exp(x * np.log(2)) if is_complex(x.dtype) else np.exp2(x)
    return power


def odd(function: Callable[[NDArray], NDArray]) -> Callable[[NDArray], NDArray]:
    """A function with the sign of its argument, also at -0.0, where SciPy loses it."""
    return lambda x: np.copysign(function(x), x)


def rsqrt(x: NDArray) -> NDArray:
    """1 / sqrt(x), zero at every infinity."""
    root = np.sqrt(wide(x))
    # NumPy divides by an infinite complex number to NaN.
    result: NDArray = np.where(np.isinf(root), 0, 1 / root)
    return result


def one_minus_square(x: NDArray) -> NDArray:
    """1 - x^2, as a product."""
    one = np.ones((), wide(x).dtype)
    product: NDArray = (one - wide(x)) * (one + wide(x))
    return product


def lgamma(x: NDArray) -> NDArray:
    """log |Γ(x)|, infinite at both ends."""
    from scipy.special import gammaln

    return np.where(x == -np.inf, np.inf, gammaln(x))


def digamma(x: NDArray) -> NDArray:
    """The derivative of log Γ(x), -inf at both zeros."""
    from scipy import special

    return np.where(x == 0, -np.inf, special.digamma(x))
