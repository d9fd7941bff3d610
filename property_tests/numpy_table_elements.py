"""The subjects that work element by element: NumPy's ufuncs and what is made of them.

One idea: functions of one kind share a way to draw, which names the domain::

    SUBJECTS = [*unary("sin cos", "biufc"), *binary("add", "biufc")]
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from property_tests.numpy_draws import BFLOAT16, Call, Draw, kind_of
from property_tests.numpy_law import Subject


def unary(
    names: str,
    kinds: str = "biufc",
    low: float = -4,
    high: float = 4,
    special: bool = True,
    **options: Any,
) -> Iterator[Subject]:
    """Functions of one array with values in a domain."""

    def draw(d: Draw) -> Call:
        return d.call(d.array(kinds, low=low, high=high, special=special))

    for name in names.split():
        yield Subject(name, draw, **options)


def binary(
    names: str,
    kinds: str = "biufc",
    low: float = -4,
    high: float = 4,
    special: bool = True,
    **options: Any,
) -> Iterator[Subject]:
    """Functions of two arrays that broadcast, or of an array and a scalar."""

    def draw(d: Draw) -> Call:
        return d.call(*d.operands(2, kinds, low=low, high=high, special=special))

    for name in names.split():
        yield Subject(name, draw, **options)


def clip_args(d: Draw) -> Call:
    x, low, high = d.operands(3, "iuf")
    x = np.asarray(x)
    return d.call(x, **d.some(min=low, max=high))


def limits_in_turn(call: Call) -> str:
    x, low = call[0], call["min"]
    if kind_of(x.dtype) == "u" and isinstance(low, int) and low < 0:
        return "the limits promote one after the other, so that this one does not fit"
    return ""


def around_args(d: Draw) -> Call:
    x = d.array("iufc", special=True, low=-100, high=100)
    return d.call(x, **d.some(decimals=d.whole(-2, 2)))


def rounding_up(call: Call) -> str:
    """Integers rounded to tens, and halves whose scaled value is not exact."""
    x = call[0]
    if call["decimals"] and kind_of(x.dtype) in "iu":
        return "JAX rounds integers in their own dtype"
    return ""


def neighbours(d: Draw) -> Call:
    x = d.array("f", special=True)
    return d.call(x, d.pick(d.like(x), 1.5))


def lacking(call: Call) -> str:
    if any(np.asarray(x).dtype == BFLOAT16 for x in call.args):
        return "NumPy has no bfloat16"
    return ""


def extremes(call: Call) -> str:
    """Infinities become the largest number of the dtype, of which this has several."""
    x = call[0]
    if np.isinf(x.astype(complex)).any() and None in (call["posinf"], call["neginf"]):
        return "the largest number is one of the dtype"
    return ""


def numbered(d: Draw) -> Call:
    x = d.array("fc", special=True)
    numbers = {"nan": d.pick(7.0, -1), "posinf": d.pick(9.0, 3), "neginf": -5.0}
    return d.call(x, **d.some(copy=d.flag(), **numbers))


def close_args(d: Draw) -> Call:
    x, y = d.operands(2, "iufc", special=True)
    rtol, atol = d.pick(0.0, 0.125, 1.0), d.pick(0.0, 0.125, 1.0)
    return d.call(x, y, **d.some(rtol=rtol, atol=atol, equal_nan=d.flag()))


def shift_args(d: Draw) -> Call:
    shape = d.shape()
    x = d.values(shape, d.dtype("iu"), -100, 100)
    return d.call(x, d.values(shape, d.dtype("iu"), 0, 6))


def powers(d: Draw) -> Call:
    x, y = d.operands(2, "iufc", low=-2, high=3)
    return d.call(x, y)


def negative_power(call: Call) -> str:
    x, y = (np.asarray(part) for part in call.args)
    if kind_of(x.dtype) in "iu" and kind_of(y.dtype) in "iu" and (y < 0).any():
        return "NumPy refuses negative powers of integers, JAX gives what XLA gives"
    if "c" in kind_of(x.dtype) + kind_of(y.dtype) and (x == 0).any():
        return "complex powers of 0 are NaN in XLA where the exponent is complex"
    return ""


def by_zero(call: Call) -> str:
    kinds = [kind_of(np.asarray(x).dtype) for x in call.args]
    if all(k in "biu" for k in kinds) and not np.all(call.args[1]):
        return "integers divided by 0 are -1 in XLA, 0 in NumPy"
    return ""


def by_false(call: Call) -> str:
    x, y = (np.asarray(part) for part in call.args)
    flags, others = (x, y) if x.dtype == bool else (y, x)
    if flags.dtype == bool and not np.isfinite(others.astype(complex)).all():
        return "times False is 0, as in XLA, even of infinities and NaN"
    return ""


def complex_by_zero(call: Call) -> str:
    y = np.asarray(call.args[1])
    if "c" in [kind_of(np.asarray(part).dtype) for part in call.args] and not y.all():
        return "the signs of infinities in complex quotients by 0 are XLA's"
    return ""


def ldexp_args(d: Draw) -> Call:
    shape = d.shape()
    return d.call(d.values(shape, d.dtype("f")), d.values(shape, d.dtype("i"), -3, 3))


def frexp_infinite(call: Call) -> str:
    x = np.asarray(call[0])
    if not np.isfinite(x.astype(float)).all():
        return "the exponent of infinities and NaN is not defined"
    return ""


def sinc_infinite(call: Call) -> str:
    if np.isinf(np.asarray(call[0]).astype(complex)).any():
        return "sinc of an infinity is its limit, 0, and NaN in NumPy"
    return ""


def deg_args(d: Draw) -> Call:
    return d.call(d.array("iufc"), **d.some(deg=d.flag()))


def unwrap_args(d: Draw) -> Call:
    # Half precision decides about other jumps than NumPy.
    dtype = np.dtype(d.pick("f4", "i4"))
    x = d.values(d.shape(1), dtype, low=-20, high=20)
    options = {"discont": 4.0, "axis": d.axis(x.ndim), "period": 5.0}
    return d.call(x, **d.some(**options))


SUBJECTS = [
    *unary("sin cos tan arctan sinh cosh tanh arcsinh exp exp2 expm1 atan asinh"),
    *unary("sinc", differs=sinc_infinite),
    *unary("arcsin arccos asin acos", low=-1, high=1),
    *unary("arctanh atanh", low=-0.875, high=0.875, special=False),
    *unary("arccosh acosh", "biufc", low=1, special=False),
    *unary("log log2 log10 sqrt", low=0, special=False),
    *unary("log1p", low=-0.875, special=False),
    *unary("cbrt fabs deg2rad rad2deg degrees radians i0", "biuf"),
    *unary("spacing", "f", special=False, narrow=True, differs=lacking),
    *unary("abs absolute negative square positive real imag", "iufc"),
    *unary("abs absolute real imag", "b"),
    *unary("conj conjugate", "iufc"),
    *unary("sign isfinite isinf isnan iscomplex isreal logical_not angle"),
    *unary("reciprocal", "fc"),
    *unary("ceil floor trunc rint fix signbit", "biuf"),
    *unary("isneginf isposinf modf", "biuf"),
    *unary("frexp", "f", differs=frexp_infinite),
    *unary("iscomplexobj isrealobj"),
    *unary("invert bitwise_not bitwise_invert bitwise_count", "biu"),
    *binary("add subtract equal not_equal"),
    *binary("multiply", differs=by_false),
    *binary("true_divide divide", differs=complex_by_zero),
    *binary("logical_and logical_or logical_xor maximum minimum fmax fmin"),
    *binary("greater greater_equal less less_equal", "biufc"),
    *binary("arctan2 atan2 hypot copysign logaddexp logaddexp2 heaviside", "biuf"),
    Subject("nextafter", neighbours, narrow=True, differs=lacking),
    *binary("bitwise_and bitwise_or bitwise_xor", "biu"),
    *binary("gcd lcm", "iu", low=-11, high=11),
    *binary(
        "floor_divide mod remainder fmod divmod", "iuf", special=False, differs=by_zero
    ),
    Subject("left_shift", shift_args),
    Subject("right_shift", shift_args),
    Subject("bitwise_left_shift", shift_args),
    Subject("bitwise_right_shift", shift_args),
    Subject("power", powers, differs=negative_power),
    Subject("pow", powers, differs=negative_power),
    # In NumPy it is of 64 bits at least.
    Subject("float_power", powers, differs=negative_power, typed=False),
    Subject("ldexp", ldexp_args),
    Subject("clip", clip_args, differs=limits_in_turn),
    Subject("around", around_args, differs=rounding_up),
    Subject("round", around_args, differs=rounding_up),
    Subject("nan_to_num", numbered, differs=extremes),
    Subject("isclose", close_args),
    Subject("allclose", close_args),
    Subject("angle", deg_args),
    Subject("unwrap", unwrap_args),
]
