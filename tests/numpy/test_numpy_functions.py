"""NumPy's own functions on verax arrays: those that call the method of the array.

One idea: `numpy.sum(x)` is `x.sum(axis=None, dtype=None, out=None)`, so every method
takes what NumPy passes; the table has a row for each function that NumPy has.
"""

import gc
import inspect
import weakref
from collections.abc import Callable
from typing import Any, ClassVar, cast

import numpy as np
import pytest
from numpy._core import fromnumeric

import verax
from verax.rules.values.array import Array

jnp: Any = verax.numpy
X = (np.arange(6, dtype=np.float32).reshape(2, 3) - 2) ** 2 / 3
ROWS = np.array([1, 0])

type Call = Callable[[Any], Any]

# By the method: what stays in verax, for arrays with values and for traced ones.
CALLS: dict[str, list[Call]] = {
    "all": [np.all, lambda x: np.all(x, 0, keepdims=True, where=x > 1)],
    "amax": [np.amax, lambda x: np.amax(x, axis=(0, 1), initial=3.0, where=x > 0)],
    "amin": [np.amin, lambda x: np.amin(x, axis=-1, keepdims=True)],
    "any": [np.any, lambda x: np.any(x, axis=1, keepdims=True, where=x > 0)],
    "argmax": [np.argmax, lambda x: np.argmax(x, axis=-1, keepdims=True)],
    "argmin": [np.argmin, lambda x: np.argmin(x, axis=0)],
    "argpartition": [lambda x: np.argpartition(x, 1, axis=0)],
    "argsort": [np.argsort, lambda x: np.argsort(x, axis=0, stable=True)],
    "around": [np.around, lambda x: np.around(x, decimals=1)],
    "clip": [
        lambda x: np.clip(x, 0.5, 2.0),
        lambda x: np.clip(x, None, 1.0),
        lambda x: np.clip(x, min=1.0),
    ],
    "cumprod": [np.cumprod, lambda x: np.cumprod(x, axis=1, dtype=np.float32)],
    "cumsum": [np.cumsum, lambda x: np.cumsum(x, axis=-1, dtype=np.int32)],
    "max": [np.max, lambda x: np.max(x, axis=0, initial=-1.0, where=x > 5)],
    "mean": [np.mean, lambda x: np.mean(x, 0, np.float32, keepdims=True, where=x > 0)],
    "min": [np.min, lambda x: np.min(x, axis=0, keepdims=True)],
    "ndim": [np.ndim],
    "prod": [np.prod, lambda x: np.prod(x, axis=1, initial=2.0, where=x > 0)],
    "repeat": [lambda x: np.repeat(x, 2), lambda x: np.repeat(x, 3, axis=1)],
    "reshape": [
        lambda x: np.reshape(x, (3, 2)),
        lambda x: np.reshape(x, -1, order="F", copy=True),
    ],
    "round": [np.round, lambda x: np.round(x, decimals=1)],
    "searchsorted": [
        lambda x: np.searchsorted(x[1], x[0]),
        lambda x: np.searchsorted(x[1], x[0], side="right"),
    ],
    "shape": [np.shape],
    "size": [np.size, lambda x: np.size(x, axis=1)],
    "squeeze": [lambda x: np.squeeze(x[:1]), lambda x: np.squeeze(x[:1], axis=0)],
    "std": [np.std, lambda x: np.std(x, axis=0, ddof=1, keepdims=True, where=x >= 0)],
    "sum": [
        np.sum,
        lambda x: np.sum(
            x, (0, 1), np.float32, keepdims=True, initial=1.0, where=x > 0
        ),
    ],
    "swapaxes": [lambda x: np.swapaxes(x, 0, -1)],
    "take": [
        lambda x: np.take(x, jnp.asarray(ROWS), axis=0),
        lambda x: np.take(x, jnp.asarray(ROWS + 1), axis=1, mode="clip"),
        lambda x: np.take(x, jnp.asarray(ROWS - 2), axis=-1),
    ],
    "transpose": [np.transpose, lambda x: np.transpose(x, (1, 0))],
    "var": [np.var, lambda x: np.var(x, axis=(0,), correction=1)],
}
# These make a NumPy array of their argument first, so that a tracer is refused.
CONVERTING: dict[str, Call] = {
    "compress": lambda x: np.compress([True, False], x, axis=0),
    "cumulative_prod": lambda x: np.cumulative_prod(x, axis=1),
    "cumulative_sum": lambda x: np.cumulative_sum(x, axis=1, include_initial=True),
    "diagonal": np.diagonal,
    "matrix_transpose": np.matrix_transpose,
    "partition": lambda x: np.partition(x, 1),
    "ptp": lambda x: np.ptp(x, axis=0, keepdims=True),
    "ravel": np.ravel,
    "resize": lambda x: np.resize(x, (2, 2)),
    "sort": lambda x: np.sort(x, axis=0),
    "trace": np.trace,
}
# Tested by themselves: they write, select by values, or have results of such a shape.
OTHERS = {"choose", "nonzero", "put"}
ROWS_OF_CALLS = [
    pytest.param(call, id=f"{name}-{i}")
    for name, calls in CALLS.items()
    for i, call in enumerate(calls)
]


def test_every_function_of_numpy_has_a_row() -> None:
    assert {*CALLS, *CONVERTING, *OTHERS} == set(fromnumeric.__all__)


@pytest.mark.slow
@pytest.mark.parametrize("call", ROWS_OF_CALLS)
def test_numpy_calls_the_method(call: Call) -> None:
    expected = call(X)
    actual = call(jnp.asarray(X))
    if not isinstance(expected, int | tuple):
        assert isinstance(actual, Array)
        assert actual.dtype.kind == np.asarray(expected).dtype.kind
    assert np.shape(actual) == np.shape(expected)
    np.testing.assert_allclose(actual, expected, 1e-6)
    np.testing.assert_allclose(verax.jit(call)(jnp.asarray(X)), expected, 1e-6)


@pytest.mark.parametrize("name", CONVERTING)
def test_numpy_converts_first(name: str) -> None:
    call = CONVERTING[name]
    np.testing.assert_allclose(call(jnp.asarray(X)), call(X), 1e-6)
    with pytest.raises(TypeError, match="needs the value"):
        verax.jit(call)(jnp.asarray(X))


def test_numpy_functions_that_select_and_write() -> None:
    x = jnp.asarray(X)
    for actual, expected in zip(np.nonzero(x), np.nonzero(X), strict=True):
        assert isinstance(actual, Array)
        assert actual.tolist() == expected.tolist()
    assert np.choose(jnp.asarray(ROWS), [[1, 2], [3, 4]]).tolist() == [3, 2]
    with pytest.raises(TypeError, match=r"must be numpy\.ndarray"):
        np.put(x, 0, 1.0)


def test_take_raises_as_numpy_does() -> None:
    x = jnp.asarray(X)
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        np.take(x, jnp.asarray([0, 9]))
    with pytest.raises(IndexError, match="index -3"):
        x.take(jnp.asarray([-3]), axis=0, mode="raise")
    with pytest.raises(NotImplementedError, match="traced"):
        verax.jit(lambda i: np.take(x, i))(jnp.asarray(ROWS))


def test_an_output_array_is_refused() -> None:
    x, out = jnp.asarray(X), np.zeros(3, np.float32)
    calls: list[Call] = [
        lambda x: np.sum(x, axis=0, out=out),
        lambda x: np.mean(x, axis=0, out=out),
        lambda x: np.max(x, axis=0, out=out),
        lambda x: np.all(x, axis=0, out=out),
        lambda x: np.std(x, axis=0, out=out),
        lambda x: np.cumsum(x[0], out=out),
        lambda x: np.round(x[0], out=out),
        lambda x: np.argmax(x, axis=0, out=np.zeros(3, np.int64)),
        lambda x: x.ptp(axis=0, out=out),
        lambda x: x.trace(out=out),
        lambda x: x.compress(jnp.asarray([True]), axis=0, out=out),
        lambda x: jnp.prod(x, axis=0, out=out),
    ]
    for call in calls:
        for run in (call, verax.jit(call)):
            with pytest.raises(NotImplementedError, match="immutable"):
                run(x)
    with pytest.raises(TypeError, match="out"):
        x.clip(0.0, out=out)


def test_methods_have_the_parameters_of_their_functions() -> None:
    """By position too: `x.sum(0, None, None, True)` keeps dimensions, as in NumPy."""
    different = {"reshape", "transpose", "astype", "clip", "argpartition", "copy"}
    methods = {
        name: method
        for name, method in vars(Array).items()
        if callable(method) and not name.startswith("_") and hasattr(jnp, name)
    }
    assert len(methods) > 30
    for name in methods.keys() - different - {"choose", "compress"}:
        ours = list(inspect.signature(methods[name]).parameters.values())[1:]
        of_function = list(inspect.signature(getattr(jnp, name)).parameters.values())[
            1:
        ]
        named = {p.name: p for p in of_function}
        for given in ours:
            if name == "view" and given.name == "type":
                continue
            assert given.kind == named[given.name].kind, (name, given)
            assert given.default == named[given.name].default, (name, given)
        positional = [p.name for p in ours if p.kind is p.POSITIONAL_OR_KEYWORD]
        due = [p.name for p in of_function if p.kind is p.POSITIONAL_OR_KEYWORD]
        assert name == "view" or positional == due, name


class Parameter:
    """What the field's libraries hand over in place of an array."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __jax_array__(self) -> Any:
        return self.value

    def __radd__(self, other: object) -> str:
        return "radd"


class Reflected:
    dtype: ClassVar = ["no dtype"]

    def __radd__(self, other: object) -> str:
        return "radd"

    def __gt__(self, other: object) -> str:
        return "gt"


def test_objects_that_say_how_they_become_arrays() -> None:
    x = jnp.ones((2, 2))
    p = Parameter(2 * x)
    assert (x + p).tolist() == (p.value + x).tolist() == [[3, 3], [3, 3]]
    assert verax.jit(lambda x: x @ p)(x).tolist() == [[4, 4], [4, 4]]
    assert jnp.asarray(p) is p.value
    assert jnp.array([p, p]).shape == (2, 2, 2)
    assert jnp.asarray(p, jnp.int32).dtype == jnp.int32
    assert x + Reflected() == "radd"
    assert (x < Reflected()) == "gt"
    with pytest.raises(ValueError, match=r"numpy\.asarray"):
        verax.lax.sin(p)


MATRIX = np.arange(1.0, 5.0, dtype=np.float32).reshape(2, 2)
TAKING: dict[str, Callable[[Any], Any]] = {
    "sin": jnp.sin,
    "abs": jnp.abs,
    "invert": lambda p: jnp.invert(jnp.astype(p, int)),
    "logical_not": jnp.logical_not,
    "add": lambda p: jnp.add(p, p),
    "add a number": lambda p: jnp.add(2.0, p),
    "maximum": lambda p: jnp.maximum(MATRIX, p),
    "power": lambda p: jnp.power(p, 2),
    "dot": lambda p: jnp.dot(MATRIX, p),
    "matmul": lambda p: jnp.matmul(p, p),
    "einsum": lambda p: jnp.einsum("ij,kj->ik", p, MATRIX),
    "inner": lambda p: jnp.inner(p, p),
    "sum": jnp.sum,
    "std": jnp.std,
    "where": lambda p: jnp.where(MATRIX > 2, p, 0.0),
    "concatenate": lambda p: jnp.concatenate([p, MATRIX]),
    "reshape": lambda p: jnp.reshape(p, 4),
    "full": lambda p: jnp.full((2, 2), p),
    "take": lambda p: jnp.take(p, 0, axis=0),
    "linalg.inv": jnp.linalg.inv,
    "zeros_like": jnp.zeros_like,
}


@pytest.mark.parametrize("name", TAKING)
def test_functions_take_objects_that_say_how_they_become_arrays(name: str) -> None:
    run = TAKING[name]
    due = run(jnp.asarray(MATRIX))
    for value in (jnp.asarray(MATRIX), MATRIX):
        actual = run(Parameter(Parameter(value)))
        np.testing.assert_array_equal(actual, due)
        assert actual.dtype == due.dtype
    compiled = verax.jit(lambda x: run(Parameter(x)))(MATRIX)
    np.testing.assert_allclose(compiled, due, rtol=1e-6)


class Long:
    """An object that prints as a long text."""

    def __repr__(self) -> str:
        return "x" * 9000


def test_messages_cut_the_text_of_what_is_no_array() -> None:
    calls: list[Callable[[], Any]] = [
        lambda: jnp.sin(Long()),
        lambda: verax.lax.sin(Long()),
        lambda: verax.jit(lambda x: x)(Long()),
        lambda: verax.jit(lambda: Long())(),
        lambda: verax.vmap(lambda x: x)(Long()),
        lambda: verax.grad(lambda x: x)(Long()),
        lambda: verax.lax.scan(lambda c, x: (c, Long()), 1.0, None, 2),
        lambda: verax.lax.cond(True, lambda: Long(), lambda: Long()),
        lambda: verax.make_jaxpr(lambda: Long())(),
        lambda: verax.eval_shape(lambda: Long()),
        lambda: verax.device_put(Long()),
        lambda: verax.jvp(lambda x: x, (1.0,), (Long(),)),
        lambda: verax.vjp(lambda x: x, 1.0)[1](Long()),
        lambda: verax.pure_callback(lambda: 1, Long()),
        lambda: verax.vmap(lambda x: x, in_axes=cast(int, Long()))(jnp.ones(2)),
        lambda: verax.jit(lambda x: x, static_argnums=0)([Long()]),
        lambda: jnp.asarray(Long()),
        lambda: jnp.zeros(Long()),
        lambda: verax.tree_util.tree_map(lambda x, y: x, (1, 2), Long()),
    ]
    for i, call in enumerate(calls):
        with pytest.raises((TypeError, ValueError)) as caught:
            call()
        assert len(str(caught.value)) < 500, (i, str(caught.value)[:300])


def test_keys_are_compared_whole() -> None:
    k, other = verax.random.split(verax.random.key(0))
    ways: list[Any] = [lambda f: f, verax.jit]
    for run in ways:
        assert not run(jnp.allclose)(k, other)
        assert run(jnp.allclose)(k, k)
        assert not run(jnp.isclose)(k, other)
        assert run(lambda k: jnp.array_equal(k, k, equal_nan=True))(k)


def test_scalar_types_are_found_by_those_of_numpy() -> None:
    assert np.int32 in {jnp.int32}
    assert jnp.int32 in {np.int32: 1}
    assert {jnp.float32: 1}[np.float32] == {jnp.bfloat16: 1}[jnp.bfloat16.dtype.type]


@pytest.mark.usefixtures("few_objects")
def test_weak_references_to_tracers() -> None:
    held: list[Any] = []

    def f(x: Any) -> Any:
        reference: Any = weakref.ref(x)
        held.append(reference)
        assert reference() is x
        return x + 1

    assert float(verax.jit(f)(1.0)) == 2
    gc.collect()
    assert held[0]() is None
