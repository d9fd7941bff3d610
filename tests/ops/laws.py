"""The laws of a row, checked on generated calls with the engine alone.

One idea: a row says from where its calls may be drawn, so one function tests any row::

    check_row(sin_p, seed=0, count=20)
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

from verax.backend.lowering.lower import lower
from verax.backend.programs.program import compiled
from verax.backend.xla.executable import CompileOptions
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import (
    complex128,
    float64,
    is_bool,
    is_complex,
    is_float,
    is_inexact,
    numpy_dtype,
    stored_dtype,
)
from verax.ir.jaxpr import Jaxpr
from verax.ops.core import CORE
from verax.rules.rows.builder import Builder
from verax.rules.rows.row import Domain, Row, RuleTable, Sample
from verax.rules.values.constants import aval_of
from verax.rules.values.state import interpreting, widths_of
from verax.transforms.engine.engine import StandardEngine

ENGINE = StandardEngine(RuleTable(), CORE)
STEP = 1e-6
TOLERANCES = {2: 2e-2, 4: 2e-5, 8: 1e-11}

type NDArray = np.ndarray


def program(row: Row[Any], sample: Sample[Any], avals: Sequence[ShapedArray]) -> Jaxpr:
    """The jaxpr of one call."""
    builder = Builder("a test")
    inputs = [builder.input(aval) for aval in avals]
    with interpreting(builder):
        outs = row.bind(sample.params, *inputs)
    return builder.finish(outs)[0]


def as_array(x: object) -> NDArray:
    """`x` as NumPy holds an array of its type."""
    return np.asarray(x, numpy_dtype(aval_of(x).dtype))


def trace(function: Callable[..., object], *xs: object) -> Jaxpr:
    """The jaxpr of `function` on arrays of the types of `xs`."""
    builder = Builder("a test")
    inputs = [builder.input(aval_of(x)) for x in xs]
    with interpreting(builder):
        out = function(*inputs)
    return builder.finish([out])[0]


def value(function: Callable[..., object], *xs: object) -> NDArray:
    """The value of `function`, evaluated and compiled, which must agree exactly."""
    arrays = [as_array(x) for x in xs]
    jaxpr = trace(function, *arrays)
    (expected,) = ENGINE.evaluate(jaxpr, arrays)
    (actual,) = compiled(ENGINE, jaxpr, "f", CompileOptions()).run(arrays)
    assert_close(np.asarray(actual), expected, f"{jaxpr.eqns} on {xs}")
    return expected


def slopes(function: Callable[..., object], *xs: object) -> list[float]:
    """The derivative in each operand, by reverse mode, for a cotangent of one."""
    arrays = [as_array(x) for x in xs]
    jaxpr = trace(function, *arrays)
    nonzero = tuple(is_inexact(x.dtype) for x in arrays)
    forward, tangent, mask = ENGINE.linearize(jaxpr, nonzero)
    saved = ENGINE.evaluate(forward, arrays)[1:]
    if not any(mask):
        return [0.0] * sum(nonzero)
    linear = (False,) * len(saved) + (True,) * sum(nonzero)
    back, flags = ENGINE.transpose(tangent, linear, (True,))
    one = np.ones(tangent.out_avals[0].shape, numpy_dtype(tangent.out_avals[0].dtype))
    pulled = iter(ENGINE.evaluate(back, [*saved, one]))
    return [float(next(pulled)) if flag else 0.0 for flag in flags]


def emitted(function: Callable[..., object], *xs: object) -> int:
    """How many operations the lowered module has, constants left out."""
    arrays = [as_array(x) for x in xs]
    text = lower(ENGINE, trace(function, *arrays), "f", platforms=("cpu",)).text
    return text.count(' = "')


def draw_value(
    random: Random, aval: ShapedArray, domain: Domain, special: bool
) -> NDArray:
    """An array of the type with values of the domain."""
    low, high = max(domain.low, -8.0), min(domain.high, 8.0)
    low, high = (domain.low, domain.high) if low > high else (low, high)

    def element() -> float:
        if special and domain.special and random.random() < 0.3:
            return random.choice(domain.special)
        return low + (high - low) * random.random()

    dtype = stored_dtype(aval.dtype)
    flat = [element() for _ in range(aval.size)]
    if is_complex(dtype):
        values = np.array(
            [complex(x, low + (high - low) * random.random()) for x in flat]
        )
    elif is_float(dtype):
        values = np.array(flat, np.float64)
    elif is_bool(dtype):
        values = np.array([random.random() < 0.5 for _ in flat], bool)
    else:
        values = np.array([round(x) if np.isfinite(x) else 0 for x in flat], np.int64)
        if random.random() < 0.3 and domain.high == np.inf:
            values = np.array([random.getrandbits(62) for _ in flat], np.int64)
    return values.reshape(aval.shape).astype(dtype)


def draw_values(
    random: Random,
    row: Row[Any],
    sample: Sample[Any],
    avals: Sequence[ShapedArray],
    special: bool,
) -> list[NDArray]:
    domains = sample.domains or row.domains
    if len(domains) < len(avals):
        domains = (*domains, *[domains[-1]] * (len(avals) - len(domains)))
    return [
        draw_value(random, aval, domain, special)
        for aval, domain in zip(avals, domains, strict=False)
    ]


def assert_close(
    actual: NDArray, expected: NDArray, what: str, loose: float = 1
) -> None:
    assert actual.dtype == expected.dtype, (what, actual.dtype, expected.dtype)
    assert actual.shape == expected.shape, (what, actual.shape, expected.shape)
    if not is_inexact(actual.dtype):
        np.testing.assert_array_equal(actual, expected, what)
        return
    size = actual.dtype.itemsize // (2 if is_complex(actual.dtype) else 1)
    tolerance = TOLERANCES.get(size, 0.3) * loose
    widest = np.complex128 if is_complex(actual.dtype) else np.float64
    np.testing.assert_allclose(
        actual.astype(widest),
        expected.astype(widest),
        tolerance,
        tolerance,
        err_msg=what,
    )


def check_evaluate(random: Random, row: Row[Any], sample: Sample[Any]) -> None:
    """The compiled program and the evaluated one agree in value and type."""
    jaxpr = program(row, sample, sample.avals)
    args = draw_values(random, row, sample, sample.avals, special=True)
    expected = ENGINE.evaluate(jaxpr, args)
    for x, aval in zip(expected, jaxpr.out_avals, strict=True):
        assert x.dtype == stored_dtype(aval.dtype), (row, aval, x)
        assert x.shape == aval.shape, (row, aval, x)
    actual = compiled(ENGINE, jaxpr, row.name, CompileOptions()).run(args)
    for out, y in zip(actual, expected, strict=True):
        assert_close(np.asarray(out), y, f"{row} {sample} on {args}")


def check_batch(random: Random, row: Row[Any], sample: Sample[Any]) -> None:
    """The batched program is the stack of the program on each element."""
    jaxpr = program(row, sample, sample.avals)
    size = random.choice((0, 1, 2, 3))
    axes = [random.choice((None, *range(aval.ndim + 1))) for aval in sample.avals]
    if all(axis is None for axis in axes):
        axes[0] = 0
    batched, out_axes = ENGINE.batch(jaxpr, size, tuple(axes))
    args = draw_values(random, row, sample, batched.in_avals, special=True)
    actual = ENGINE.evaluate(batched, args)
    for y, aval, axis in zip(actual, jaxpr.out_avals, out_axes, strict=True):
        shape = list(aval.shape)
        if axis is not None:
            shape.insert(axis, size)
        assert (y.dtype, y.shape) == (aval.dtype, tuple(shape)), (row, axes)
    for i in range(size):
        alone = ENGINE.evaluate(
            jaxpr,
            [x if a is None else x.take(i, a) for x, a in zip(args, axes, strict=True)],
        )
        for y, one, axis in zip(actual, alone, out_axes, strict=True):
            part = y if axis is None else y.take(i, axis)
            assert_close(part, one, f"vmap of {row} {sample} {axes}")


def widen(aval: ShapedArray) -> ShapedArray:
    """The same type with 64 bits, for differences."""
    if is_complex(aval.dtype):
        return ShapedArray(aval.shape, complex128)
    return ShapedArray(aval.shape, float64) if is_float(aval.dtype) else aval


def check_derivative(random: Random, row: Row[Any], sample: Sample[Any]) -> None:
    """Tangents are central differences, and cotangents their transposes."""
    with widths_of((), x64=True):
        check_wide_derivative(random, row, sample)


def check_wide_derivative(random: Random, row: Row[Any], sample: Sample[Any]) -> None:
    avals = [widen(aval) for aval in sample.avals]
    jaxpr = program(row, sample, avals)
    nonzero = tuple(is_inexact(aval.dtype) for aval in avals)
    if not any(nonzero) or not all(is_inexact(a.dtype) for a in jaxpr.out_avals):
        return
    if not all(domain.smooth for domain in sample.domains or row.domains):
        return
    args = draw_values(random, row, sample, avals, special=False)
    pushed, mask = ENGINE.jvp(jaxpr, nonzero)
    directions = [
        draw_value(random, aval, Domain(-1, 1), special=False) if flag else None
        for aval, flag in zip(avals, nonzero, strict=True)
    ]
    live = [t for t in directions if t is not None]
    outs = ENGINE.evaluate(pushed, [*args, *live])
    tangents = outs[len(mask) :]
    high, low = (
        ENGINE.evaluate(
            jaxpr,
            [
                x if t is None else (x + sign * STEP * t).astype(x.dtype)
                for x, t in zip(args, directions, strict=True)
            ],
        )
        for sign in (1, -1)
    )
    moving = iter(tangents)
    for up, down, flag in zip(high, low, mask, strict=True):
        t = next(moving) if flag else np.zeros_like(up)
        assert (t.dtype, t.shape) == (up.dtype, up.shape), row
        change = np.where(up == down, 0, up.astype(complex) - down.astype(complex))
        slope = change / (2 * STEP)
        np.testing.assert_allclose(
            t.astype(complex),
            slope,
            1e-4,
            1e-4,
            err_msg=f"jvp of {row} {sample} {args}",
        )
    check_transpose(random, jaxpr, nonzero, args, live, tangents)


def check_transpose(
    random: Random,
    jaxpr: Jaxpr,
    nonzero: tuple[bool, ...],
    args: Sequence[NDArray],
    live: Sequence[NDArray],
    tangents: Sequence[NDArray],
) -> None:
    """<ct, J v> = <J' ct, v>, without conjugation."""
    forward, tangent, mask = ENGINE.linearize(jaxpr, nonzero)
    if not any(mask):
        return
    saved = ENGINE.evaluate(forward, args)[len(mask) :]
    pushed = ENGINE.evaluate(tangent, [*saved, *live])
    for x, y in zip(pushed, tangents, strict=True):
        np.testing.assert_allclose(x, y, 1e-10, 1e-10)
    linear = (False,) * len(saved) + (True,) * len(live)
    back, flags = ENGINE.transpose(tangent, linear, (True,) * len(pushed))
    cts = [draw_value(random, a, Domain(-1, 1), False) for a in tangent.out_avals]
    pulled = iter(ENGINE.evaluate(back, [*saved, *cts]))
    actual = [
        next(pulled) if flag else np.zeros_like(v)
        for flag, v in zip(flags, live, strict=True)
    ]
    for ct, v in zip(actual, live, strict=True):
        assert (ct.dtype, ct.shape) == (v.dtype, v.shape), jaxpr.eqns
    left = sum(pairing(c, t) for c, t in zip(cts, pushed, strict=True))
    right = sum(pairing(c, v) for c, v in zip(actual, live, strict=True))
    np.testing.assert_allclose(left, right, 1e-9, 1e-9, err_msg=f"{jaxpr.eqns}")


def pairing(x: NDArray, y: NDArray) -> float:
    """The real part of the sum of products."""
    return float(np.real(np.sum(x.astype(complex) * y.astype(complex))))


def check_row(row: Row[Any], seed: int, count: int, *, smooth: bool = True) -> None:
    """All laws on `count` draws; `smooth=False` leaves out derivatives."""
    assert row.draw is not None
    for i in range(count):
        random = Random(f"{row.name} {seed} {i}")
        sample = row.draw(random)
        check_evaluate(random, row, sample)
        check_batch(random, row, sample)
        if smooth:
            check_derivative(random, row, sample)
