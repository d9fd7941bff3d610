"""A function of arrays by evaluation and as a compiled program, which must agree.

Arrays keep their own dtypes, 64 bits included, whatever the configuration says::

    (y,) = both(sort.sort, x)
"""

from collections.abc import Callable

import numpy as np

from tests.ops.laws import ENGINE
from verax.backend.programs.program import compiled
from verax.backend.xla.executable import CompileOptions
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Jaxpr
from verax.rules.rows.builder import Builder
from verax.rules.values.state import interpreting


def trace(f: Callable[..., object], *xs: np.ndarray) -> Jaxpr:
    builder = Builder("a test")
    inputs = [builder.input(ShapedArray(x.shape, x.dtype)) for x in xs]
    with interpreting(builder):
        outs = f(*inputs)
    return builder.finish(outs if isinstance(outs, tuple) else (outs,))[0]


def both(f: Callable[..., object], *xs: np.ndarray) -> list[np.ndarray]:
    """The results by evaluation, after a comparison with those of the program."""
    jaxpr = trace(f, *xs)
    expected = ENGINE.evaluate(jaxpr, xs)
    actual = compiled(ENGINE, jaxpr, "f", CompileOptions()).run(xs)
    for x, y in zip(actual, expected, strict=True):
        assert np.asarray(x).dtype == y.dtype
        np.testing.assert_array_equal(plain(np.asarray(x)), plain(y))
    return expected


def plain(x: np.ndarray) -> np.ndarray:
    """Floats that NumPy knows, for it takes NaNs of others for different."""
    return x.astype(np.float32) if x.dtype.kind in "Vf" else x
