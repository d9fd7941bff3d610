"""Processes that die, hang or fail: the others get an exception that names them."""

import textwrap
from pathlib import Path

import pytest

from tests.distributed.groups import Ended, free_port, run_group

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


def ended_with(
    deed: str,
    culprit: int,
    folder: Path,
    hanging: int | None = None,
    wait: str = "float",
) -> list[Ended]:
    """A group of which one process does something bad.

    `wait` is what the others do with each of their results.
    """
    count, address = 3, f"127.0.0.1:{free_port()}"
    commands = [
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
    return run_group(commands, folder, 60, hanging=hanging)


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
AGAIN = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.parametrize(
    ("deed", "culprit", "message"),
    [
        pytest.param(KILL, 2, "Process 2 of 3 has not answered", id="killed"),
        pytest.param(
            *(KILL, 0, "Process 0 of 3, the coordinator"),
            id="coordinator killed",
            marks=AGAIN,
        ),
        pytest.param(
            *(TERMINATE, 1, "Process 1 of 3 has not answered"),
            id="terminated",
            marks=AGAIN,
        ),
        pytest.param(RAISE, 1, "process 1 ended with ValueError: a bad", id="raised"),
        pytest.param(
            *(RAISE, 0, "process 0 ended with ValueError: a bad"),
            id="coordinator raised",
            marks=AGAIN,
        ),
        pytest.param(
            *("sys.exit(3)", 2, "Process 2 came to its end after program 1 over"),
            id="left",
            marks=AGAIN,
        ),
        pytest.param(
            *("sys.exit()", 0, "Process 0 came to its end after program 1 over"),
            id="coordinator left",
        ),
    ],
)
def test_others_raise(deed: str, culprit: int, message: str, tmp_path: Path) -> None:
    ended = ended_with(deed, culprit, tmp_path)
    assert ended[culprit].status is not None, "it ends, too"
    for index, process in enumerate(ended):
        if index != culprit:
            seconds, text = reason(process)
            assert message in text
            assert "During handling" not in process.output, "Gloo's message is not news"
            assert seconds < HEARTBEAT + 15  # the machine may be busy


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


@pytest.mark.slow(jaxlib=True)
def test_a_callback_that_fails_in_one_process(tmp_path: Path) -> None:
    """Each process is called with its parts; the others learn why one ended."""
    address = f"127.0.0.1:{free_port()}"
    text = textwrap.dedent(CALLBACKS)
    commands = [["-c", text.format(index=i, address=address)] for i in range(3)]
    for index, process in enumerate(run_group(commands, tmp_path, 60)):
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


@pytest.mark.slow(jaxlib=True)
def test_every_process_that_ends_is_known(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    text = textwrap.dedent(PAIRS)
    commands = [["-c", text.format(index=i, address=address)] for i in range(3)]
    ended = run_group(commands, tmp_path, 60)
    assert [process.status for process in ended] == [1, 0, 4]
    actual = "Process 2 came to its end after program 3 over the processes 0, 2"
    assert actual in ended[0].output


@pytest.mark.slow
@pytest.mark.parametrize("first", [(0,), (1,), (1, 2)], ids=str)
def test_one_that_ends_first_waits_for_the_others(
    first: tuple[int, ...], tmp_path: Path
) -> None:
    """The others may go on by themselves for more than a heartbeat."""
    address = f"127.0.0.1:{free_port()}"
    program = """
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
    commands = [
        [
            "-c",
            textwrap.dedent(program).format(
                address=address,
                index=index,
                heartbeat=HEARTBEAT,
                seconds=0 if index in first else HEARTBEAT + 4,
                end="shutdown()" if index == 2 else "is_initialized()",
            ),
        ]
        for index in range(3)
    ]
    for ended in run_group(commands, tmp_path, 60):
        assert ended.status == 0, ended.output
        assert "Error" not in ended.output
        assert "ProcessFailed" not in ended.output


@pytest.mark.slow(jaxlib=True)
@pytest.mark.parametrize("wait", ["float", "id"], ids=["in step", "ahead"])
def test_one_that_hangs(wait: str, tmp_path: Path) -> None:
    """It is ended with the group; the others have raised long before.

    So have those that start programs without waiting for values.
    """
    ended = ended_with("os.kill(os.getpid(), signal.SIGSTOP)", 1, tmp_path, 1, wait)
    assert ended[1].status is None
    for process in (ended[0], ended[2]):
        assert "Process 1 of 3 has not answered for 4 s" in reason(process)[1]


@pytest.mark.slow(jaxlib=True)
def test_one_that_is_started_twice_later(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    own = [
        textwrap.dedent(PROGRAM).format(
            index=index,
            address=address,
            count=2,
            heartbeat=HEARTBEAT,
            culprit=-1,
            deed="pass",
            wait="float",
        )
        for index in (0, 1)
    ]
    again = "import time; time.sleep(4)\n" + own[1].replace("timeout=60", "timeout=4")
    ended = run_group([["-c", text] for text in [*own, again]], tmp_path, 60)
    assert ended[2].status == 1
    assert "could not join" in ended[2].output
    for process in ended[:2]:
        assert "different incarnation" in reason(process)[1]
