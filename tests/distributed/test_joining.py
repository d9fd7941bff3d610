"""Processes that join, and those that cannot: in time, with a reason."""

import textwrap
from pathlib import Path

import pytest

import verax
from tests.distributed.groups import failures, free_port, run_group
from verax.api.distributed.initialize import initialize


@pytest.mark.slow
@pytest.mark.parametrize("count", [2])
def test_processes_know_each_other(count: int, tmp_path: Path) -> None:
    assert failures("tests.distributed.checks_joining", count, tmp_path) == {}


def test_joining_comes_first() -> None:
    verax.devices()
    with pytest.raises(RuntimeError, match="before any verax computations"):
        initialize("127.0.0.1:9", 2, 1)


@pytest.mark.slow
def test_a_coordinator_that_cannot_be_reached(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    program = f"""
        import verax
        verax.distributed.initialize({address!r}, 2, 1, initialization_timeout=2)
    """
    [ended] = run_group([["-c", textwrap.dedent(program)]], tmp_path)
    assert ended.status == 1
    assert f"found no coordinator at {address} within 2 s" in ended.output
    assert "refused" in ended.output


@pytest.mark.slow(jaxlib=True)
def test_processes_that_do_not_all_come_and_one_that_is_there_twice(
    tmp_path: Path,
) -> None:
    address = f"127.0.0.1:{free_port()}"
    program = """
        import verax
        verax.distributed.initialize({!r}, 3, {}, initialization_timeout=6)
    """
    commands = [
        ["-c", textwrap.dedent(program.format(address, index))] for index in (0, 1, 1)
    ]
    ended = run_group(commands, tmp_path)
    assert [process.status for process in ended] == [1, 1, 1]
    texts = [process.output for process in ended]
    assert "not all 3 processes came" in texts[0]
    assert "bad_cast" not in "".join(texts)
    # That of the number that is refused ends at once, the other when process 0 does.
    assert any("is the process_id unique" in text for text in texts[1:])


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    program = """
        import socket, verax
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            verax.distributed.initialize(address, 1, 0)
    """
    [ended] = run_group([["-c", textwrap.dedent(program)]], tmp_path)
    assert ended.status == 1
    assert "Is process 0 started twice?" in ended.output


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({}, ValueError, "needs coordinator_address"),
        ({"num_processes": None}, ValueError, "needs num_processes"),
        ({"process_id": None}, ValueError, "needs process_id"),
        ({"process_id": 2}, ValueError, "process_id < num_processes"),
        ({"process_id": "1"}, TypeError, "nonnegative int"),
        ({"num_processes": 2.0}, TypeError, "positive int"),
        ({"coordinator_address": "nowhere"}, ValueError, "host:port"),
        ({"initialization_timeout": 0}, ValueError, "at least 1 second"),
        ({"heartbeat_timeout_seconds": 1.5}, TypeError, "integer of seconds"),
        ({"mtls_cert_file": "a"}, ValueError, "mtls_key_file and mtls_ca_file"),
        ({"local_device_ids": "01"}, TypeError, "int or a sequence of ints"),
        ({"local_device_ids": [0, 1.0]}, TypeError, "int or a sequence of ints"),
        ({"cluster_detection_method": "x"}, ValueError, "'slurm', 'ompi', 'k8s'"),
        ({"cluster_detection_method": "slurm"}, ValueError, "SLURM_JOB_ID"),
    ],
)
def test_arguments_that_cannot_be(
    arguments: dict[str, object], kind: type[Exception], message: str
) -> None:
    usual: dict[str, object] = {
        "coordinator_address": "127.0.0.1:9",
        "num_processes": 2,
        "process_id": 0,
    }
    if not arguments:
        usual["coordinator_address"] = None
    with pytest.raises(kind, match=message):
        initialize(**{**usual, **arguments})  # type: ignore[arg-type]  # on purpose


def test_variables_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERAX_LOCAL_DEVICE_IDS", "0,b")
    with pytest.raises(ValueError, match="LOCAL_DEVICE_IDS must be integers with com"):
        initialize("127.0.0.1:9", 2, 0)
    monkeypatch.setenv("VERAX_PROCESS_ID", "first")
    with pytest.raises(ValueError, match="PROCESS_ID must be an integer, not 'first'"):
        initialize("127.0.0.1:9", 2)


def test_variables_of_which_some_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a script of `sbatch` that is not started by `srun`."""
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_NTASKS", "2")
    actual = "SLURM_JOB_ID is set, but not SLURM_STEP_NODELIST, .*: .* by srun"
    with pytest.raises(ValueError, match=actual):
        initialize()


@pytest.mark.slow
def test_an_address_of_another_machine(tmp_path: Path) -> None:
    """It is one of those that exist in documentation only."""
    program = """
        import verax
        verax.distributed.initialize("192.0.2.1:7777", 2, 0)
    """
    [ended] = run_group([["-c", textwrap.dedent(program)]], tmp_path)
    assert ended.status == 1
    assert "choose an address of that machine" in ended.output


def test_alone() -> None:
    assert not verax.distributed.is_initialized()
    verax.distributed.shutdown()  # does nothing
