"""Calls of the host in programs over several devices."""

from typing import Any

import numpy as np
import pytest

import verax
from verax.experimental import io_callback
from verax.sharding import NamedSharding, PartitionSpec as P

MESH = verax.make_mesh((4, 2), ("x", "y"))
PLACE = NamedSharding(MESH, P("x", "y"))
VALUES = np.arange(32, dtype=np.float32).reshape(8, 4)


def test_a_function_of_the_host_sees_the_whole_array_once() -> None:
    x = verax.device_put(VALUES, PLACE)
    seen: list[Any] = []

    def look(a: Any) -> np.ndarray:
        seen.append(np.array(a))
        return np.asarray(a) * np.float32(2)

    out = verax.jit(lambda x: io_callback(look, x, x))(x)
    assert np.array_equal(out, VALUES * 2)
    assert len(seen) == 1
    assert np.array_equal(seen[0], VALUES)
    pure = verax.jit(lambda x: verax.pure_callback(lambda a: np.sin(a), x, x))(x)
    np.testing.assert_allclose(pure, np.sin(VALUES), rtol=1e-6)


def test_debug_print(capsys: pytest.CaptureFixture[str]) -> None:
    x = verax.device_put(VALUES, PLACE)

    @verax.jit
    def f(x: Any) -> Any:
        verax.debug.print("sum {}", x.sum())
        return x + 1

    verax.block_until_ready(f(x))
    verax.effects_barrier()
    assert capsys.readouterr().out == "sum 496.0\n"
