"""Calls of the host in programs over several devices."""

from typing import Any

import numpy as np
import pytest

import verax
from verax.experimental import io_callback
from verax.sharding import AxisType, NamedSharding, PartitionSpec as P

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


@verax.custom_gradient(with_logs=True)
def logged(x: Any) -> Any:
    return x**2, lambda ct: (2 * x * ct, {"ct": ct, "sum": (x * ct).sum()})


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_each_device_logs_a_row(kind: AxisType) -> None:
    mesh = verax.make_mesh((4,), ("d",), axis_types=(kind,))
    f = verax.shard_map(logged, mesh=mesh, in_specs=P("d"), out_specs=P("d"))
    x, ct = np.arange(8, dtype=np.float32), np.arange(3, 11, dtype=np.float32)
    for around in (lambda g: g, verax.jit):
        pulled = around(lambda x: verax.vjp(f, x)[1].with_logs(ct))
        (out,), logs = pulled(x)
        assert np.array_equal(out, 2 * x * ct)
        assert np.array_equal(logs["ct"], ct.reshape(4, 2))
        assert np.array_equal(logs["sum"], (x * ct).reshape(4, 2).sum(1))


def test_whole_arrays_are_logged_as_they_lie() -> None:
    x = verax.device_put(VALUES, PLACE)
    _, logs = verax.jit(lambda x: verax.vjp(logged, x)[1].with_logs(x))(x)
    assert np.array_equal(logs["ct"], VALUES)
    assert logs["ct"].sharding.is_equivalent_to(PLACE, 2)
    np.testing.assert_allclose(logs["sum"], (VALUES**2).sum())
