"""What is remembered of a function is what it gives, whatever came before."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.backend.recipes import recipe

FUNCTIONS = (
    vnp.sum, vnp.prod, vnp.max, vnp.min, vnp.ptp, vnp.all, vnp.any, vnp.count_nonzero,
    vnp.mean, vnp.var, vnp.std, vnp.argmax, vnp.argmin, vnp.cumsum, vnp.cumprod,
    vnp.sort, vnp.argsort, vnp.linalg.norm, verax.nn.softmax, verax.nn.log_softmax,
)  # fmt: skip
ARRAYS = (
    np.array([[1.5, -0.0, 0.0], [np.nan, -2.0, np.inf]], np.float32),
    np.arange(6, dtype=np.int32).reshape(2, 3),
    np.array([[True, False, True], [False, False, True]]),
    np.array([[1, 2, -3], [3, 3, 0]], np.float16),
    np.array([[1 + 2j, 0, -1j], [3, 3, 0]], np.complex64),
)


def outcome(function: Any, *args: Any, **kwargs: Any) -> tuple[object, object]:
    """The result as type and bytes, or the error."""
    try:
        found = function(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)
    return found.aval, np.asarray(found).tobytes()


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("array", ARRAYS, ids=lambda x: x.dtype.name)
@pytest.mark.parametrize("axis", [None, 0, -1, 2, 1.0, True])
def test_the_remembered_call_is_the_call(
    function: Any, array: np.ndarray, axis: Any
) -> None:
    x = vnp.asarray(array)
    plain = outcome(function.__wrapped__, x, axis=axis)
    for _ in range(2):
        assert outcome(function, x, axis=axis) == plain
        assert outcome(function, x, axis) == outcome(function.__wrapped__, x, axis)


def test_what_is_written_down_is_used_again() -> None:
    x = vnp.arange(5.0)
    before = recipe.cache_info()
    first, second = vnp.mean(x), vnp.mean(x + 1)
    after = recipe.cache_info()
    assert (first.item(), second.item()) == (2.0, 3.0)
    assert after.hits > before.hits


def test_equal_arguments_of_other_classes_are_other_calls() -> None:
    x = vnp.ones((2, 3))
    assert vnp.sum(x, axis=1).shape == (2,)
    with pytest.raises(TypeError):
        vnp.sum(x, axis=1.0)  # type: ignore[arg-type]  # that is the point
    assert vnp.sum(x, axis=(0, 1)).shape == ()
    with pytest.raises(TypeError):
        vnp.sum(x, axis=(0, 1.0))  # type: ignore[arg-type]  # the same


def test_the_configuration_is_part_of_the_call() -> None:
    x = vnp.arange(3, dtype=vnp.uint8)
    assert vnp.sum(x).dtype == vnp.uint32
    with verax.enable_x64(True):
        assert vnp.sum(x).dtype == vnp.uint64
    assert vnp.sum(x).dtype == vnp.uint32


def test_arrays_among_the_arguments_and_transformations() -> None:
    x = vnp.arange(4.0)
    mask = x > 1
    assert vnp.mean(x, where=mask).item() == 2.5
    assert vnp.mean(x, where=~mask).item() == 0.5
    assert verax.grad(vnp.mean)(x).tolist() == [0.25] * 4
    assert verax.vmap(vnp.sum)(vnp.ones((3, 2))).tolist() == [2.0] * 3
    assert verax.jit(vnp.std)(x).item() == pytest.approx(vnp.std(x).item())


def test_a_sum_of_negative_zeros_is_zero() -> None:
    x = vnp.array([-0.0, -0.0])
    assert not np.signbit(np.asarray(vnp.sum(x)))
    assert not np.signbit(np.asarray(vnp.sum(vnp.stack([x, x]), axis=0))).any()


def test_small_and_large_arrays_agree() -> None:
    x = vnp.ones(1 << 16, vnp.int32)
    assert vnp.sum(x).item() == 2 * vnp.sum(x[: 1 << 15]).item() == 1 << 16


def test_defaults_given_as_keywords_of_the_array() -> None:
    x = vnp.arange(3.0)
    assert vnp.sum(a=x).item() == vnp.sum(x).item()
