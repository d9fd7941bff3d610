"""Processes that die, hang or fail: the others get an exception that names them."""

import textwrap
from pathlib import Path

import pytest

from tests.distributed.groups import Ended, free_port, run_groups

HEARTBEAT = 4
PROGRAM = """
    import os, signal, sys, time
    import numpy as np
    import verax
    from verax.sharding import NamedSharding, PartitionSpec as P

    index = {index}
    verax.distributed.initialize(
        {address!r}, {count}, index, initialization_timeout=60,
        heartbeat_timeout_seconds={heartbeat}, shutdown_timeout_seconds=10,
    )
    mesh = verax.make_mesh((verax.device_count(),), ("x",))
    x = verax.device_put(np.arange(12.0), NamedSharding(mesh, P("x")))
    total = verax.jit(lambda x: x.sum())
    assert float(total(x)) == 66
    if index == {culprit}:
        time.sleep(0.2)
        {deed}
    started = time.monotonic()
    try:
        while True:
            {wait}(total(x))
            time.sleep(0.01)  # other processes of the machine run, too
    except verax.errors.ProcessFailed as error:
        print("RAISED", round(time.monotonic() - started, 1), error, flush=True)
        raise
"""


def group_with(deed: str, culprit: int, wait: str = "float") -> list[list[str]]:
    """The commands of a group of which one process does something bad.

    `wait` is what the others do with each of their results.
    """
    count, address = 3, f"127.0.0.1:{free_port()}"
    return [
        [
            "-c",
            textwrap.dedent(PROGRAM).format(
                index=index,
                address=address,
                count=count,
                heartbeat=HEARTBEAT,
                culprit=culprit,
                deed=deed,
                wait=wait,
            ),
        ]
        for index in range(count)
    ]


def reason(ended: Ended) -> tuple[float, str]:
    """When a process raised, and what."""
    actual = [x for x in ended.output.splitlines() if x.startswith("RAISED")]
    assert ended.status == 1, ended
    assert actual, ended.output
    _, seconds, text = actual[0].split(" ", 2)
    return float(seconds), text


KILL = "os.kill(os.getpid(), signal.SIGKILL)"
TERMINATE = "os.kill(os.getpid(), signal.SIGTERM)"
RAISE = "raise ValueError('a bad batch')"
SILENT = {
    "killed": (KILL, 2, "Process 2 of 3 has not answered"),
    "coordinator killed": (KILL, 0, "Process 0 of 3, the coordinator"),
    "terminated": (TERMINATE, 1, "Process 1 of 3 has not answered"),
}
TOLD = {
    "raised": (RAISE, 1, "process 1 ended with ValueError: a bad"),
    "coordinator raised": (RAISE, 0, "process 0 ended with ValueError: a bad"),
    "left": ("sys.exit(3)", 2, "Process 2 came to its end after program 1 over"),
    "coordinator left": (
        *("sys.exit()", 0, "Process 0 came to its end after program 1 over"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("cases", [SILENT, TOLD], ids=["silent", "told"])
def test_others_raise(cases: dict[str, tuple[str, int, str]], tmp_path: Path) -> None:
    groups = {name: group_with(deed, i) for name, (deed, i, _) in cases.items()}
    for name, ended in run_groups(groups, tmp_path, 60).items():
        _, culprit, message = cases[name]
        assert ended[culprit].status is not None, "it ends, too"
        for index, process in enumerate(ended):
            if index != culprit:
                seconds, text = reason(process)
                assert message in text, name
                assert "During handling" not in process.output, "Gloo's is not news"
                assert seconds < HEARTBEAT + 15, name  # the machine may be busy


CALLBACKS = """
    import numpy as np
    import verax
    from verax.sharding import NamedSharding, PartitionSpec as P

    index, count = {index}, 0
    verax.distributed.initialize(
        {address!r}, 3, index, initialization_timeout=60,
        heartbeat_timeout_seconds=20, shutdown_timeout_seconds=10,
    )
    mesh = verax.make_mesh((verax.device_count(),), ("x",))
    x = verax.device_put(np.arange(12.0), NamedSharding(mesh, P("x")))

    def note(x):
        global count
        count += 1
        if index == 1 and count > 3:
            raise ValueError("a bad part")
        return x

    def total(x):
        return verax.lax.psum(verax.pure_callback(note, x, x), "x")

    f = verax.jit(verax.shard_map(total, mesh=mesh, in_specs=P("x"), out_specs=P()))
    while True:
        f(x).block_until_ready()
"""


def group_of_callbacks() -> list[list[str]]:
    address = f"127.0.0.1:{free_port()}"
    text = textwrap.dedent(CALLBACKS)
    return [["-c", text.format(index=i, address=address)] for i in range(3)]


def check_callbacks(ended: list[Ended]) -> None:
    """Each process is called with its parts; the others learn why one ended."""
    for index, process in enumerate(ended):
        assert process.status == 1
        assert "raised ValueError: a bad part" in process.output
        kind = "CallbackError: " if index == 1 else "process 1 ended with CallbackError"
        assert kind in process.output.splitlines()[-1]


PAIRS = """
    import sys, time
    import numpy as np
    import verax
    from verax.sharding import NamedSharding, PartitionSpec as P

    index = {index}
    verax.distributed.initialize(
        {address!r}, 3, index, initialization_timeout=60,
        heartbeat_timeout_seconds=20, shutdown_timeout_seconds=10,
    )

    def total(processes):
        devices = [d for d in verax.devices() if d.process_index in processes]
        mesh = verax.make_mesh((len(devices),), ("x",), devices=devices)
        x = verax.device_put(np.arange(12.0), NamedSharding(mesh, P("x")))
        return float(verax.jit(lambda x: x.sum())(x))

    assert total([0, 1, 2]) == 66
    if index == 1:
        sys.exit()
    for _ in range(3):
        assert total([0, 2]) == 66
    if index == 2:
        sys.exit(4)
    total([0, 2])
"""


def group_of_pairs() -> list[list[str]]:
    address = f"127.0.0.1:{free_port()}"
    text = textwrap.dedent(PAIRS)
    return [["-c", text.format(index=i, address=address)] for i in range(3)]


def check_pairs(ended: list[Ended]) -> None:
    """Every process that ends is known."""
    assert [process.status for process in ended] == [1, 0, 4]
    actual = "Process 2 came to its end after program 3 over the processes 0, 2"
    assert actual in ended[0].output


def check_hanging(ended: list[Ended]) -> None:
    """It is ended with the group; the others have raised long before.

    So have those that start programs without waiting for values.
    """
    assert ended[1].status is None
    for process in (ended[0], ended[2]):
        assert "Process 1 of 3 has not answered for 4 s" in reason(process)[1]


def group_of_twins(joined: Path) -> list[list[str]]:
    """Process 1 is started once more when the first has written a file."""
    address = f"127.0.0.1:{free_port()}"
    own = [
        textwrap.dedent(PROGRAM).format(
            index=index,
            address=address,
            count=2,
            heartbeat=HEARTBEAT,
            culprit=1,
            deed=f"open({str(joined)!r}, 'w').close()",
            wait="float",
        )
        for index in (0, 1)
    ]
    awaiting = f"""
        import os, time
        while not os.path.exists({str(joined)!r}):
            time.sleep(0.1)
    """
    again = textwrap.dedent(awaiting) + own[1].replace("timeout=60", "timeout=4")
    return [["-c", text] for text in [*own, again]]


def check_twins(ended: list[Ended]) -> None:
    assert ended[2].status == 1
    assert "could not join" in ended[2].output
    for process in ended[:2]:
        assert "different incarnation" in reason(process)[1]


WAITING = """
    import time, verax
    verax.distributed.initialize(
        {address!r}, 3, {index}, initialization_timeout=60,
        heartbeat_timeout_seconds={heartbeat}, shutdown_timeout_seconds=60,
    )
    verax.devices()
    time.sleep({seconds})
    assert float(verax.jit(lambda x: x + 1)(1.0)) == 2.0
    verax.distributed.{end}
"""


def group_of_waiting(first: tuple[int, ...]) -> list[list[str]]:
    """The processes `first` have nothing to do."""
    address = f"127.0.0.1:{free_port()}"
    return [
        [
            "-c",
            textwrap.dedent(WAITING).format(
                address=address,
                index=index,
                heartbeat=HEARTBEAT,
                seconds=0 if index in first else HEARTBEAT + 4,
                end="shutdown()" if index == 2 else "is_initialized()",
            ),
        ]
        for index in range(3)
    ]


def check_waiting(ended: list[Ended]) -> None:
    """The others may go on by themselves for more than a heartbeat."""
    for process in ended:
        assert process.status == 0, process.output
        assert "Error" not in process.output
        assert "ProcessFailed" not in process.output


@pytest.mark.slow(jaxlib=True)
def test_each_learns_what_happened(tmp_path: Path) -> None:
    """Where one is there twice, hangs, calls back to what raises, or just ends."""
    stop = "os.kill(os.getpid(), signal.SIGSTOP)"
    first = {f"{i} first": group_of_waiting(i) for i in [(0,), (1,), (1, 2)]}
    groups = {
        "twins": group_of_twins(tmp_path / "joined"),
        **first,
        "in step": group_with(stop, 1),
        "ahead": group_with(stop, 1, "id"),
        "callbacks": group_of_callbacks(),
        "pairs": group_of_pairs(),
    }
    ended = run_groups(groups, tmp_path, 60, [("in step", 1), ("ahead", 1)])
    check_twins(ended["twins"])
    for name in first:
        check_waiting(ended[name])
    check_hanging(ended["in step"])
    check_hanging(ended["ahead"])
    check_callbacks(ended["callbacks"])
    check_pairs(ended["pairs"])
