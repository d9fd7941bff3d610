"""Guards of transfers between devices, on eight devices."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.errors import JaxRuntimeError
from verax.sharding import Mesh, NamedSharding, PartitionSpec as P

MESH = Mesh(np.array(verax.devices()), ("x",))
SPLIT = NamedSharding(MESH, P("x"))
ONE, OTHER = verax.devices()[:2]


@contextmanager
def refused(direction: str) -> Iterator[None]:
    with pytest.raises(JaxRuntimeError, match=f"Disallowed {direction} transfer"):
        yield


def explicit() -> Any:
    """A transfer between devices that the user asks for."""
    return verax.device_put(verax.device_put(vnp.ones(8), ONE), OTHER)


def implicit() -> Any:
    """One that a compiled program makes of an argument that is not bound to a place."""
    x = verax.jit(lambda x: x + 1)(vnp.ones(8))
    return lambda: verax.jit(lambda x: x * 2, in_shardings=SPLIT)(x)


def test_what_is_explicit_is_allowed_unless_the_guard_says_so() -> None:
    x = verax.device_put(vnp.ones(8), ONE)
    for level in ("allow", "log", "disallow", "log_explicit"):
        with verax.transfer_guard_device_to_device(level):
            assert verax.device_put(x, OTHER).devices() == {OTHER}
            assert verax.device_put(x, SPLIT).sharding == SPLIT
    with verax.transfer_guard_device_to_device("disallow_explicit"):
        with refused("device-to-device"):
            verax.device_put(x, OTHER)
        assert verax.device_put(np.ones(8), OTHER).devices() == {OTHER}
    assert explicit().devices() == {OTHER}


def test_another_layout_on_the_same_devices_is_no_transfer() -> None:
    x = verax.device_put(np.arange(8.0), SPLIT)
    whole = SPLIT.update(spec=verax.P())
    with verax.transfer_guard("disallow_explicit"):
        y = verax.device_put(x, whole)
        with refused("device-to-device"):
            verax.device_put(x, ONE)
    assert y.sharding == whole
    np.testing.assert_array_equal(y, np.arange(8))


@pytest.mark.parametrize("level", ["disallow", "disallow_explicit"])
def test_arguments_on_other_devices(level: str) -> None:
    run: Callable[[], Any] = implicit()
    run()
    with verax.transfer_guard_device_to_device(level), refused("device-to-device"):
        run()
    with verax.transfer_guard(level):
        with refused("device-to-device"):
            run()
        with verax.transfer_guard_device_to_device("allow"):
            run()
    run()


def test_arguments_in_place_are_no_transfer() -> None:
    x = verax.device_put(vnp.ones(8), SPLIT)
    double = verax.jit(lambda x: x * 2, in_shardings=SPLIT)
    with verax.transfer_guard("disallow_explicit"):
        assert double(x).sharding.is_equivalent_to(SPLIT, 1)
        assert verax.device_put(x, SPLIT) is not None


def test_the_other_directions_are_others() -> None:
    run = implicit()
    with verax.transfer_guard_host_to_device("disallow"):
        run()
        with refused("host-to-device"):
            verax.jit(lambda x: x, in_shardings=SPLIT)(np.ones(8))
    with verax.transfer_guard_device_to_device("disallow"):
        verax.jit(lambda x: x, in_shardings=SPLIT)(np.ones(8))


def test_transfers_between_devices_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    run = implicit()
    with verax.transfer_guard_device_to_device("log"):
        run()
    assert "device-to-device transfer: f32[8]" in caplog.text
    caplog.clear()
    with verax.transfer_guard_device_to_device("log"):
        explicit()
    assert "device-to-device" not in caplog.text
    with verax.transfer_guard_device_to_device("log_explicit"):
        explicit()
    assert "device-to-device" in caplog.text
