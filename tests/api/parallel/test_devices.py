"""Devices and processes, the environment, and copies to the host."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding


def test_processes_and_devices() -> None:
    assert verax.process_index() in verax.process_indices()
    assert verax.process_count() == 1
    assert verax.local_devices(0) == verax.local_devices(backend="cpu")
    with pytest.raises(ValueError, match="no process 5"):
        verax.local_devices(5)
    with pytest.raises(RuntimeError, match="Unknown backend"):
        verax.live_arrays("bogus")


def test_a_sharding_says_its_devices() -> None:
    place = verax.device_put(1.0, verax.devices()[0]).sharding
    assert place._addressable_device_assignment == (verax.devices()[0],)
    assert place.addressable_devices == {verax.devices()[0]}


def test_the_environment_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    text = verax.print_environment_info(return_string=True)
    assert text is not None
    for word in ("verax", "jaxlib", "numpy", "python", "cpu"):
        assert word in text
    assert verax.print_environment_info() is None
    assert capsys.readouterr().out.strip() == text


def test_copies_to_the_host_may_start_early() -> None:
    tree = {"x": verax.jit(lambda: vnp.ones(2))(), "n": 3}
    assert verax.copy_to_host_async(tree) is tree


EMPTY = NamedSharding(Mesh(np.array([], object), ("x",)), PartitionSpec())
PUTS: dict[str, Callable[[Sharding], Any]] = {
    "device_put": lambda place: verax.device_put(1.0, place),
    "in_shardings": lambda place: verax.jit(abs, in_shardings=place)(1.0),
    "out_shardings": lambda place: verax.jit(abs, out_shardings=place)(1.0),
    "zeros": lambda place: vnp.zeros(3, device=place),
    "constraint": lambda place: verax.lax.with_sharding_constraint(vnp.ones(3), place),
}


@pytest.mark.parametrize("name", PUTS)
def test_an_array_cannot_lie_on_a_mesh_without_devices(name: str) -> None:
    with pytest.raises(ValueError, match="a mesh without devices"):
        PUTS[name](EMPTY)
