"""The methods of ufuncs, held to NumPy's."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp

X = np.arange(12, dtype=np.int32).reshape(3, 4)
NAMES = (
    *("add", "multiply", "maximum", "minimum", "subtract", "logaddexp"),
    *("bitwise_and", "bitwise_or", "bitwise_xor"),
    *("logical_and", "logical_or", "logical_xor"),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_methods(name: str) -> None:
    own, numpy = getattr(vnp, name), getattr(np, name)
    x: Any = X.astype(np.float32) if name == "logaddexp" else X
    assert isinstance(own, vnp.ufunc)
    calls: list[tuple[Any, Any]] = [
        (own.reduce(x), numpy.reduce(x)),
        (own.reduce(x, axis=-1, keepdims=True), numpy.reduce(x, -1, keepdims=True)),
        (own.accumulate(x, axis=1), numpy.accumulate(x, axis=1)),
        (own.outer(x[0], x[:, 0]), numpy.outer(x[0], x[:, 0])),
        (own.reduceat(x, [0, 2, 1], axis=1), numpy.reduceat(x, [0, 2, 1], axis=1)),
    ]
    if not name.startswith("logical"):
        expected = x.ravel().copy()
        numpy.at(expected, [1, 1, 5], x[2, :3])
        places = np.array([1, 1, 5])
        actual = own.at(x.ravel(), places, x[2, :3], inplace=False)
        calls.append((actual, expected))
    for actual, expected in calls:
        np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_a_function_of_ones_own() -> None:
    f = vnp.frompyfunc(lambda x, y: x + 2 * y, 2, 1, identity=0)
    x = np.array([1.0, 2.0, 3.0], np.float32)
    assert f.reduce(x).item() == 12
    assert f.reduce(x, where=x > 1.5).item() == 10
    assert f.reduce(x, axis=None, keepdims=True).shape == (1,)
    assert f.accumulate(x).tolist() == [1, 5, 11]
    assert f.at(x, np.array([0, 0]), 1.0, inplace=False).tolist() == [5, 2, 3]
    assert verax.grad(f.reduce)(x).tolist() == [2, 2, 2]
    assert verax.jit(f.reduce)(x).item() == 12
    assert verax.vmap(f)(x, x).tolist() == [3, 6, 9]
    assert f.reduce(np.zeros((0, 2), np.float32)).tolist() == [0, 0]


def test_initial_dtype_and_empty() -> None:
    assert vnp.add.reduce(X, initial=5).tolist() == [17, 20, 23, 26]
    assert vnp.add.reduce(X, dtype=np.float32).dtype == np.float32
    assert vnp.maximum.reduce(X, initial=9).tolist() == [9, 9, 10, 11]
    assert vnp.bitwise_and.reduce(np.zeros((0,), np.int32)).item() == -1
    assert (vnp.add.nin, vnp.add.nout, vnp.add.nargs, vnp.add.identity) == (2, 1, 2, 0)


def test_errors_say_what_to_do() -> None:
    with pytest.raises(NotImplementedError, match="inplace=False"):
        vnp.add.at(X, 0, 1)
    with pytest.raises(ValueError, match="two arguments"):
        vnp.negative.reduce(X)
    with pytest.raises(ValueError, match="pass initial"):
        vnp.subtract.reduce(np.zeros(0, np.float32))
    with pytest.raises(TypeError, match="takes a function"):
        vnp.frompyfunc(3, 1, 1)  # type: ignore[arg-type]  # the error is the test
