"""Floor 2: exponentials, logarithms, roots and powers.

Derivatives use the result where that saves a transcendental function::

    exp_p: y = exp x,  dy = t y
"""

from collections.abc import Sequence
from random import Random
from typing import Final

import numpy as np

from verax.ir.avals import ShapedArray, bit_width, iinfo
from verax.ir.dtypes import (
    float16,
    float32,
    float64,
    int32,
    is_complex,
    is_inexact,
    is_integer,
    is_signed,
    real_dtype,
)
from verax.ir.jaxpr import NO_PARAMS, NoParams
from verax.ops import base
from verax.ops.base import Accuracy, rounded
from verax.ops.elementwise.arith import (
    abs as magnitude,
    add,
    complex as make_complex,
    div,
    imag,
    integer_pow,
    max as larger,
    mul,
    neg,
    real,
    sub,
)
from verax.ops.elementwise.bits import bitwise_and, bitwise_not
from verax.ops.elementwise.compare import eq, gt, lt, ne
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.kernels import logarithms, powers
from verax.ops.elementwise.rounding import is_finite
from verax.ops.elementwise.select import select
from verax.rules.families.elementwise import (
    SHAPES,
    amended,
    composed,
    elementwise,
    joint_shape,
    parametric,
    stablehlo,
)
from verax.rules.programs.derived import lowered
from verax.rules.rows.eager_costs import SMALL, huge, large, of
from verax.rules.rows.emitter import Emitter, Operand, converted
from verax.rules.rows.kernels import Kernel
from verax.rules.rows.row import Domain, NDArray, Rows, Sample, Traits, Work
from verax.rules.values.array import Array
from verax.rules.values.constants import ANY_FLOAT, FLOAT, INTEGER, NUMBER, aval_of
from verax.rules.values.operands import alike

LN2 = float(np.log(2.0))
POSITIVE = Domain(1e-3, 1e3, special=(0.0, 1.0, np.inf))
EXPONENTS = Domain(-20, 20, special=(0.0, -np.inf, np.inf))
BASES = Domain(0, 5, special=(0.0, 1.0))
WHOLE = Domain(-3, 3, special=(0.0, 1.0, -8.0, -128.0))
# Scaling by a complex constant makes NaN of infinities, as it does in JAX.
FINITE = Domain(-20, 20, special=(0.0,))

type Lowered = Sequence[Operand]


def lower_exp2(
    e: Emitter, p: NoParams, xs: Lowered, outs: Sequence[ShapedArray]
) -> Lowered:
    """exp(x log 2), but a power of 2 for small floats, in which log 2 is inexact."""
    if outs[0].dtype not in base.PLAIN:
        return e.op("stablehlo.power", (e.constant(2, outs[0]), *xs), outs)
    scaled = e.op("stablehlo.multiply", (*xs, e.constant(LN2, outs[0])), outs)
    return e.op("stablehlo.exponential", scaled, outs)


def lower_log2(
    e: Emitter, p: NoParams, xs: Lowered, outs: Sequence[ShapedArray]
) -> Lowered:
    """log x / log 2, for complex numbers part by part, which keeps infinities."""
    natural = e.op("stablehlo.log", xs, outs)
    if not is_complex(outs[0].dtype):
        return e.op("stablehlo.divide", (*natural, e.constant(LN2, outs[0])), outs)
    part = outs[0].with_dtype(real_dtype(outs[0].dtype))
    unit = e.constant(LN2, part)
    x, y = (e.op(f"stablehlo.{of}", natural, (part,))[0] for of in ("real", "imag"))
    x, y = (e.op("stablehlo.divide", (z, unit), (part,))[0] for z in (x, y))
    return e.op("stablehlo.complex", (x, y), outs)


def lower_one_minus_square(
    e: Emitter, p: NoParams, xs: Lowered, outs: Sequence[ShapedArray]
) -> Lowered:
    one = e.constant(1, outs[0])
    less = e.op("stablehlo.subtract", (one, *xs), outs)
    more = e.op("stablehlo.add", (one, *xs), outs)
    return e.op("stablehlo.multiply", (*less, *more), outs)


def lower_logistic(
    e: Emitter, p: NoParams, xs: Lowered, outs: Sequence[ShapedArray]
) -> Lowered:
    """XLA divides by 1 + exp(-x), which in float16 overflows long before the end."""
    (x,), (out,) = xs, outs
    wide = float32 if out.dtype == float16 else out.dtype
    result = e.op(
        "stablehlo.logistic", (converted(e, x, wide),), (out.with_dtype(wide),)
    )
    return (converted(e, result[0], out.dtype),)


def complex_expm1(x: Array, y: Array) -> Array:
    """exp(x) - 1 = y, as the array API has it where only its length is known.

    exp(inf + i inf) - 1 is inf + i NaN, and exp(-inf + i inf) - 1 is -1.
    """
    length = real(x)
    unknown = bitwise_and(
        eq(magnitude(length), np.inf), bitwise_not(is_finite(imag(x)))
    )
    nothing = bitwise_and(unknown, lt(length, 0.0))
    return make_complex(
        select(unknown, larger(length, -1.0), real(y)), select(nothing, 0.0, imag(y))
    )


exp_p = elementwise(
    "exp",
    np.exp,
    jvp=lambda x, y, t: mul(t, y),
    lower=stablehlo("exponential"),
    domains=EXPONENTS,
    costly=large,
    traits=Traits(Work.SLOW, keeps_zero=False, summed=True),
)
exp2_p = elementwise(
    "exp2",
    base.exp2,
    jvp=lambda x, y, t: mul(t, mul(y, LN2)),
    lower=lower_exp2,
    kernel=Kernel.of(powers.exp2, float32, float64),
    domains=FINITE,
    costly=large,
    traits=Traits(Work.SLOW, keeps_zero=False),
)
expm1_p = elementwise(
    "expm1",
    base.expm1,
    jvp=lambda x, y, t: mul(t, exp(x)),
    lower=amended(stablehlo("exponential_minus_one"), complex_expm1),
    domains=EXPONENTS,
    costly=large,
    traits=Traits(Work.SLOW, keeps_zero=True),
)
log_p = elementwise(
    "log",
    np.log,
    jvp=lambda x, y, t: div(t, x),
    lower=stablehlo("log"),
    kernel=Kernel.of(logarithms.log, float64),
    domains=POSITIVE,
    costly=large,
    traits=Traits(Work.SLOW, keeps_zero=False, summed=True),
)
log2_p = elementwise(
    "log2",
    np.log2,
    jvp=lambda x, y, t: div(t, mul(x, LN2)),
    lower=lower_log2,
    kernel=Kernel.of(logarithms.log2, float64),
    domains=Domain(1e-3, 1e3, special=(1.0,)),
    costly=large,
    traits=Traits(keeps_zero=False),
)
log1p_p = elementwise(
    "log1p",
    base.log1p,
    jvp=lambda x, y, t: div(t, add(x, 1.0)),
    lower=stablehlo("log_plus_one"),
    kernel=Kernel(
        {
            float32: logarithms.log_plus_one_short,
            float64: logarithms.log_plus_one,
        },
        reduced=True,
    ),
    domains=Domain(-0.99, 1e3, special=(0.0, -1.0, np.inf)),
    costly=large,
    traits=Traits(Work.SLOW, keeps_zero=True, summed=True),
)
sqrt_p = elementwise(
    "sqrt",
    np.sqrt,
    jvp=lambda x, y, t: mul(t, div(0.5, y)),
    lower=stablehlo("sqrt"),
    domains=POSITIVE,
    traits=Traits(Work.ROOT, keeps_zero=True, summed=True),
)
rsqrt_p = elementwise(
    "rsqrt",
    base.rsqrt,
    jvp=lambda x, y, t: mul(t, mul(div(y, x), -0.5)),
    lower=stablehlo("rsqrt"),
    domains=POSITIVE,
    costly=huge,
    traits=Traits(Work.ROOT, keeps_zero=False),
)
cbrt_p = elementwise(
    "cbrt",
    base.in_wide(np.cbrt),
    jvp=lambda x, y, t: mul(t, mul(integer_pow(y, -2), 1 / 3)),
    lower=stablehlo("cbrt"),
    kernel=Kernel.of(powers.cbrt, float32, float64),
    accepts=FLOAT,
    domains=Domain(kinks=(0.0,)),
    traits=Traits(Work.SLOW, keeps_zero=True),
)
square_p = elementwise(
    "square",
    lambda x: x * x,
    jvp=lambda x, y, t: mul(t, mul(x, 2.0)),
    lower=lambda e, p, xs, outs: e.op("stablehlo.multiply", (*xs, *xs), outs),
    accepts=NUMBER,
    traits=Traits(Work.CHEAP, fma=True, keeps_zero=True, summed=True),
)
# Its own row, for the product of 1 - x and 1 + x is accurate where x is near 1, but the
# derivative of that product is not where x is near 0.
one_minus_square_p = elementwise(
    "one_minus_square",
    base.one_minus_square,
    jvp=lambda x, y, t: mul(t, mul(x, -2.0)),
    lower=lower_one_minus_square,
    accepts=NUMBER,
    traits=Traits(Work.CHEAP, fma=True),
)
logistic_p = elementwise(
    "logistic",
    base.logistic,
    jvp=lambda x, y, t: mul(t, mul(y, sub(1.0, y))),
    lower=lower_logistic,
    domains=Domain(-30, 30, special=(-np.inf, np.inf)),
    costly=large,
    traits=Traits(Work.SLOW, keeps_zero=False),
)


def pow_typing(p: NoParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    x, y = avals
    if not is_inexact(x.dtype) or not (y.dtype == x.dtype or is_integer(y.dtype)):
        raise TypeError(
            "pow takes a float or complex base, and an exponent of its dtype or of an "
            f"integer one, not {x.dtype} and {y.dtype}; convert them "
            "(verax.lax.convert_element_type) or use verax.numpy.power"
        )
    weak = x.weak_type and y.weak_type
    return (ShapedArray(joint_shape("pow", avals), x.dtype, weak),)


def evaluate_pow(p: NoParams, x: NDArray, y: NDArray) -> NDArray:
    x = base.wide(x)
    return np.asarray(np.power(x, y.astype(x.dtype)))


def pow_base_jvp(p: NoParams, x: Array, y: Array, z: Array, t: Array) -> Array:
    """y x^(y - 1) t, and zero where y is zero, at x = 0 too.

    Where x and y are both zero the base is replaced by 1, so that no derivative of any
    order meets an infinity times zero.
    """
    flat = eq(y, 0)
    if is_inexact(y.dtype):
        flat = bitwise_and(flat, eq(x, 0.0))
    power = pow(select(flat, 1.0, x), one_less(y))
    return mul(t, mul(convert(y, x.dtype, y.aval.weak_type), power))


def one_less(y: Array) -> Array:
    """y - 1 for an exponent, wide enough that it does not wrap round.

    Where the least of wide integers is its own predecessor, powers are 0, 1 or inf.
    """
    if is_inexact(y.dtype):
        return sub(y, 1)
    if bit_width(y.dtype) < 32:
        return sub(convert(y, int32), 1)
    if is_signed(y.dtype):
        y = larger(y, -int(iinfo(y.dtype).max))
    return sub(y, 1)


def pow_exponent_jvp(p: NoParams, x: Array, y: Array, z: Array, t: Array) -> Array:
    """x^y log(x) t, where 0^y log(0) is 0 for y > 0."""
    return mul(t, mul(log(select(eq(x, 0.0), 1.0, x)), z))


def lower_pow(
    e: Emitter, p: NoParams, xs: Lowered, outs: Sequence[ShapedArray]
) -> Lowered:
    x, y = xs
    if y.aval.dtype != x.aval.dtype:
        (y,) = e.op("stablehlo.convert", (y,), (y.aval.with_dtype(x.aval.dtype),))
    out = e.op("stablehlo.power", (x, y), outs)
    if not is_complex(outs[0].dtype):
        return out
    return lowered(e, (x, y, *out), without_nan)


def without_nan(x: Array, y: Array, z: Array) -> tuple[Array]:
    """z = x^y with 0^y = 0 for all complex y on the right, of which XLA makes NaN."""
    return (select(bitwise_and(eq(x, 0.0), gt(real(y), 0.0)), 0.0, z),)


def draw_pow(random: Random) -> Sample[NoParams]:
    dtype = random.choice(ANY_FLOAT.samples())
    shape = random.choice(SHAPES)
    whole = random.choice(INTEGER.samples())
    kind, domains = random.choice(((dtype, ()), (whole, (BASES, WHOLE)), (int32, ())))
    x, y = (
        ShapedArray(random.choice((shape, shape, shape, ())), d) for d in (dtype, kind)
    )
    return Sample(NO_PARAMS, (x, y), domains)


SIMPLE_POWERS: Final = frozenset((-1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0))
"""Exponents of which XLA makes roots and products."""
pow_p = parametric(
    "pow",
    NoParams,
    evaluate_pow,
    typing=pow_typing,
    jvp=(pow_base_jvp, pow_exponent_jvp),
    lower=lower_pow,
    kernel=Kernel(dict.fromkeys((float32, float64), powers.pow), simple=SIMPLE_POWERS),
    params_of=lambda random, dtype: NO_PARAMS,
    draw=draw_pow,
    domains=(BASES, Domain(-3, 3, special=(0.0, 1.0, 2.0))),
    costly=large,
    traits=Traits(Work.SLOW),
)


def exp(x: object, *, accuracy: Accuracy = None) -> Array:
    """e to the power x.

    Args:
        x: a float or complex array or scalar.
        accuracy: the tolerance asked of the compiler, a `lax.Tolerance` or
            `lax.AccuracyMode`; None for its own. On CPUs and GPUs there is one
            implementation, so it changes nothing.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds integers or booleans, or `accuracy` is something else.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.exp(vnp.array([-vnp.inf, 0.0, 100.0]))
    Array([ 0.,  1., inf], dtype=float32)
    >>> lax.exp(1j * vnp.pi).real
    Array(-1., dtype=float32, weak_type=True)
    """
    return rounded(exp_p, x, accuracy)


def exp2(x: object, *, accuracy: Accuracy = None) -> Array:
    """2 to the power x.

    Args:
        x: a float or complex array or scalar.
        accuracy: the tolerance asked of the compiler, a `lax.Tolerance` or
            `lax.AccuracyMode`; None for its own. On CPUs and GPUs there is one
            implementation, so it changes nothing.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds integers or booleans, or `accuracy` is something else.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.exp2(vnp.array([-1.0, 0.0, 3.0]))
    Array([0.5, 1. , 8. ], dtype=float32)
    """
    return rounded(exp2_p, x, accuracy)


def expm1(x: object, *, accuracy: Accuracy = None) -> Array:
    """exp(x) - 1, accurate for small x.

    Args:
        x: a float or complex array or scalar.
        accuracy: the tolerance asked of the compiler, a `lax.Tolerance` or
            `lax.AccuracyMode`; None for its own. On CPUs and GPUs there is one
            implementation, so it changes nothing.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds integers or booleans, or `accuracy` is something else.

    >>> import numpy as np
    >>> from verax import lax
    >>> x = np.float32(1e-8)
    >>> lax.expm1(x), lax.exp(x) - 1
    (Array(1.e-08, dtype=float32), Array(0., dtype=float32))
    """
    return rounded(expm1_p, x, accuracy)


def log(x: object, *, accuracy: Accuracy = None) -> Array:
    """The natural logarithm of x; NaN where a real x is negative.

    Args:
        x: a float or complex array or scalar.
        accuracy: the tolerance asked of the compiler, a `lax.Tolerance` or
            `lax.AccuracyMode`; None for its own. On CPUs and GPUs there is one
            implementation, so it changes nothing.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds integers or booleans, or `accuracy` is something else.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.log(vnp.array([-1.0, 0.0, 1.0]))
    Array([ nan, -inf,   0.], dtype=float32)
    >>> lax.log(vnp.array([-1 + 0j])).imag.round(3)
    Array([3.142], dtype=float32)
    """
    return rounded(log_p, x, accuracy)


def log2(x: object, *, accuracy: Accuracy = None) -> Array:
    """The logarithm of x to base 2; NaN where a real x is negative.

    Args:
        x: a float or complex array or scalar.
        accuracy: the tolerance asked of the compiler, a `lax.Tolerance` or
            `lax.AccuracyMode`; None for its own. On CPUs and GPUs there is one
            implementation, so it changes nothing.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds integers or booleans, or `accuracy` is something else.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.log2(vnp.array([0.0, 0.125, 8.0]))
    Array([-inf,  -3.,   3.], dtype=float32)
    """
    return rounded(log2_p, x, accuracy)


def log1p(x: object, *, accuracy: Accuracy = None) -> Array:
    """log(1 + x), accurate for small x.

    Args:
        x: a float or complex array or scalar.
        accuracy: the tolerance asked of the compiler, a `lax.Tolerance` or
            `lax.AccuracyMode`; None for its own. On CPUs and GPUs there is one
            implementation, so it changes nothing.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds integers or booleans, or `accuracy` is something else.

    >>> import numpy as np
    >>> from verax import lax
    >>> x = np.float32(1e-8)
    >>> lax.log1p(x), lax.log(1 + x)
    (Array(1.e-08, dtype=float32), Array(0., dtype=float32))
    """
    return rounded(log1p_p, x, accuracy)


def sqrt(x: object, *, accuracy: Accuracy = None) -> Array:
    """The square root of x; the derivative at 0 is infinite.

    NaN where a real x is negative; the root of a complex one has a real part of 0 or
    more.

    Args:
        x: a float or complex array or scalar.
        accuracy: the tolerance asked of the compiler, a `lax.Tolerance` or
            `lax.AccuracyMode`; None for its own. On CPUs and GPUs there is one
            implementation, so it changes nothing.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds integers or booleans, or `accuracy` is something else.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.sqrt(vnp.array([9.0, -0.0, -1.0]))
    Array([ 3., -0., nan], dtype=float32)
    >>> lax.sqrt(vnp.array([-1 + 0j]))
    Array([0.+1.j], dtype=complex64)
    """
    return rounded(sqrt_p, x, accuracy)


def rsqrt(x: object, *, accuracy: Accuracy = None) -> Array:
    """1 / sqrt(x).

    Args:
        x: a float or complex array or scalar.
        accuracy: the tolerance asked of the compiler, a `lax.Tolerance` or
            `lax.AccuracyMode`; None for its own. On CPUs and GPUs there is one
            implementation, so it changes nothing.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds integers or booleans, or `accuracy` is something else.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.rsqrt(vnp.array([4.0, 0.0, vnp.inf, -1.0]))
    Array([0.5, inf, 0. , nan], dtype=float32)
    """
    return rounded(rsqrt_p, x, accuracy)


def cbrt(x: object, *, accuracy: Accuracy = None) -> Array:
    """The real cube root of x.

    Args:
        x: a float array or scalar.
        accuracy: the tolerance asked of the compiler, a `lax.Tolerance` or
            `lax.AccuracyMode`; None for its own. On CPUs and GPUs there is one
            implementation, so it changes nothing.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` does not hold real floats, or `accuracy` is something else.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.cbrt(vnp.array([-8.0, 0.0, 27.0])).round(3)
    Array([-2.,  0.,  3.], dtype=float32)
    """
    return rounded(cbrt_p, x, accuracy)


def square(x: object) -> Array:
    """x x.

    Args:
        x: an array or scalar of numbers, not of booleans.

    Returns:
        An array of the shape and dtype of `x`; integers wrap round. It is not |x|²
        where `x` is complex.

    Raises:
        TypeError: `x` holds booleans.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.square(vnp.array([-3, 4]))
    Array([ 9, 16], dtype=int32)
    >>> lax.square(vnp.array([1 + 1j]))
    Array([0.+2.j], dtype=complex64)
    """
    return square_p.call(NO_PARAMS, x)


def one_minus_square(x: object) -> Array:
    """1 - x^2, accurate where x is near 1 or -1.

    Args:
        x: an array or scalar of numbers, not of booleans.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds booleans.

    >>> import numpy as np
    >>> from verax import lax
    >>> x = np.float32(1 - 2**-13)
    >>> float(lax.one_minus_square(x)) == 2**-12 - 2**-26
    True
    >>> float(1 - lax.square(x)) == 2**-12 - 2**-26
    False
    """
    return one_minus_square_p.call(NO_PARAMS, x)


def logistic(x: object, *, accuracy: Accuracy = None) -> Array:
    """1 / (1 + exp(-x)).

    Args:
        x: a float or complex array or scalar.
        accuracy: the tolerance asked of the compiler, a `lax.Tolerance` or
            `lax.AccuracyMode`; None for its own. On CPUs and GPUs there is one
            implementation, so it changes nothing.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` holds integers or booleans, or `accuracy` is something else.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.logistic(vnp.array([-vnp.inf, 0.0, 100.0]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    return rounded(logistic_p, x, accuracy)


def pow(x: object, y: object) -> Array:
    """x to the power y.

    0 to the power 0 is 1. A negative real x has a power only where y is whole; else it
    is NaN.

    Args:
        x: the base, a float or complex array or scalar.
        y: the exponent, an array or scalar of the dtype of `x` or of integers, of the
            shape of `x`, where a size of 1 goes with any other. A Python integer stays
            one.

    Returns:
        An array of the dtype of `x`, in the shape to which sizes of 1 grow.

    Raises:
        TypeError: x holds integers, or the dtypes differ.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.pow(vnp.array([2.0, -2.0, 0.0]), vnp.array([-1, 3, 0]))
    Array([ 0.5, -8. ,  1. ], dtype=float32)
    >>> lax.pow(vnp.array([4.0, -4.0]), 0.5)
    Array([ 2., nan], dtype=float32)
    """
    operands = alike(x, y) if is_inexact(aval_of(y).dtype) else (x, y)
    return pow_p.call(NO_PARAMS, *operands)


def log_of_sum(x: Array, y: Array) -> Array:
    """larger + log1p(exp(-|x - y|)); equal infinities have no difference."""
    difference = sub(x, y)
    array = add(larger(x, y), log1p(exp(neg(magnitude(difference)))))
    return select(ne(difference, difference), add(x, y), array)


def log_of_sum_on_cpu(x: Array, y: Array) -> Array:
    """The same, with the logarithm of a number from 1 to 2."""
    difference = sub(x, y)
    more = logarithms.log_of_more(exp(neg(magnitude(difference))))
    return select(ne(difference, difference), add(x, y), add(larger(x, y), more))


def share(x: Array, y: Array) -> Array:
    """exp(x) / (exp(x) + exp(y)): a half where both are the same infinity."""
    same = bitwise_and(eq(x, y), ne(sub(x, y), 0.0))
    return logistic(select(same, 0.0, sub(x, y)))


logaddexp_p = elementwise(
    "logaddexp",
    base.in_wide(np.logaddexp),
    operands=2,
    jvp=(
        lambda x, y, z, t: mul(t, share(x, y)),
        lambda x, y, z, t: mul(t, share(y, x)),
    ),
    lower=composed(log_of_sum),
    kernel=Kernel.of(log_of_sum_on_cpu, float32, float64),
    accepts=FLOAT,
    domains=Domain(-30, 30, special=(0.0, -np.inf, np.inf)),
    costly=of(FLOAT, SMALL),
)

ROWS: Rows = (
    exp_p,
    exp2_p,
    expm1_p,
    log_p,
    log2_p,
    log1p_p,
    sqrt_p,
    rsqrt_p,
    cbrt_p,
    square_p,
    one_minus_square_p,
    logistic_p,
    logaddexp_p,
    pow_p,
)
