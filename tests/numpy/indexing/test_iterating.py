"""Rows of arrays one after the other."""

import numpy as np
import pytest

import verax
import verax.numpy as jnp


@pytest.mark.parametrize("shape", [(3,), (0,), (4, 2), (2, 0), (2, 3, 1)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int4", "bool"])
def test_rows_are_arrays(shape: tuple[int, ...], dtype: str) -> None:
    x = jnp.arange(np.prod(shape)).reshape(shape).astype(dtype)
    rows = list(x)
    assert len(rows) == shape[0]
    for i, row in enumerate(rows):
        assert isinstance(row, verax.Array)
        assert (row.dtype, row.shape, row.weak_type) == (x.dtype, shape[1:], False)
        np.testing.assert_array_equal(row, x[i])


def test_rows_keep_the_weak_type() -> None:
    (row,) = jnp.broadcast_to(jnp.asarray(1.0), (1,)) * 1.0
    assert row.weak_type == (jnp.asarray(1.0)[None] * 1.0).weak_type


def test_rows_are_made_when_they_are_asked_for() -> None:
    # All two million would take seconds, and hundreds of megabytes.
    rows = iter(jnp.ones(2_000_000))
    assert float(next(rows)) == 1.0


def test_a_scalar_has_no_rows() -> None:
    with pytest.raises(TypeError, match="0-d"):
        iter(jnp.float32(1.0))


def test_rows_of_keys_and_of_tracers() -> None:
    keys = verax.random.split(verax.random.key(0))
    expected = verax.random.key_data(keys)
    actual = jnp.stack([verax.random.key_data(key) for key in keys])
    np.testing.assert_array_equal(actual, expected)
    held = jnp.arange(3)
    program = verax.make_jaxpr(lambda x: [a * b for a, b in zip(x, held, strict=True)])
    assert len(program(jnp.arange(3)).out_avals) == 3
    assert verax.jit(lambda: sum(held))() == 3


def test_rows_of_placed_arrays_stay_there() -> None:
    device = verax.devices()[0]
    for row in verax.device_put(jnp.arange(2), device):
        assert row.devices() == {device}
        assert row.committed
