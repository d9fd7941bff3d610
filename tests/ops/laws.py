"""Values and slopes of single operations, by the engine alone.

One idea: a function of `bind` is traced, evaluated and compiled, and both must agree::

    value(sin_p.bind, 0.5)
"""

from collections.abc import Callable

import numpy as np

from verax.backend.lowering.lower import lower
from verax.backend.programs.program import compiled
from verax.backend.xla.executable import CompileOptions
from verax.ir.dtypes import (
    is_complex,
    is_inexact,
    numpy_dtype,
)
from verax.ir.jaxpr import Jaxpr
from verax.ops.core import CORE
from verax.rules.rows.builder import Builder
from verax.rules.rows.row import RuleTable
from verax.rules.values.constants import aval_of
from verax.rules.values.state import interpreting
from verax.transforms.engine.engine import StandardEngine

ENGINE = StandardEngine(RuleTable(), CORE)
TOLERANCES = {2: 2e-2, 4: 2e-5, 8: 1e-11}

type NDArray = np.ndarray


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
