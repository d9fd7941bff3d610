"""Helpers of these tests: a function of arrays, computed now and when traced."""

from collections.abc import Callable
from typing import Any

import numpy as np

import verax
from verax.api.tracing.apply import ENGINE
from verax.rules.rows.builder import Builder
from verax.rules.values.state import interpreting

TOLERANCE = 1e-4


def computed_both_ways(function: Callable[..., Any], *args: Any) -> list[Any]:
    """The result on arrays with values, and the traced program's in the interpreter."""
    arrays = [verax.numpy.asarray(a) for a in args]
    eager = function(*arrays)
    builder = Builder("test")
    inputs = [builder.input(x.aval) for x in arrays]
    with interpreting(builder):
        outputs = function(*inputs)
    jaxpr, captured = builder.finish(flat(outputs))
    assert not captured
    traced = ENGINE.evaluate(jaxpr, [np.asarray(x) for x in arrays])
    return [eager, traced if isinstance(eager, list | tuple) else traced[0]]


def flat(x: Any) -> list[Any]:
    return list(x) if isinstance(x, list | tuple) else [x]


def same(result: Any, expected: Any) -> None:
    """Equal shapes and nearly equal values, for one array or several."""
    assert len(flat(result)) == len(flat(expected))
    for a, b in zip(flat(result), flat(expected), strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(np.asarray(a), b, TOLERANCE, TOLERANCE)


def typed(x: Any) -> tuple[str, Any]:
    """The dtype and the values."""
    return str(x.dtype), x.tolist()


def agree(
    function: Callable[..., Any], reference: Callable[..., Any], *args: Any
) -> None:
    """`function` gives what NumPy's `reference` gives, eager and traced."""
    expected = reference(*args)
    for actual in computed_both_ways(function, *args):
        same(actual, expected)


def equations(function: Callable[..., Any], *args: Any) -> list[str]:
    """The primitives of the traced function, in order."""
    jaxpr = verax.make_jaxpr(function)(*args).jaxpr
    return [eqn.primitive.name for eqn in jaxpr.eqns]


def error_of(function: Callable[[], Any], kind: type[Exception]) -> str:
    """The message of the error that `function` raises."""
    try:
        function()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")
