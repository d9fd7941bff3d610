"""Devices and processes, the environment, and copies to the host."""

import pytest

import verax
import verax.numpy as vnp


def test_processes_and_devices() -> None:
    assert verax.process_index() in verax.process_indices()
    assert verax.process_count() == 1
    assert verax.local_devices(0) == verax.local_devices(backend="cpu")
    with pytest.raises(ValueError, match="no process 5"):
        verax.local_devices(5)
    with pytest.raises(RuntimeError, match="Unknown backend"):
        verax.live_arrays("bogus")


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
