"""Kills processes at random times, and looks at what the others and the files say.

python -m tests.distributed.kills --processes 10 --saves 50 --seed 0

The suite does a few of these; this command is for figures. One of four processes is
killed at some time of its life: all others must end with an exception, in time. Two
processes that save are stopped or killed at some time: what lies on the disk must be
one whole checkpoint.
"""

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.distributed.groups import ended_by, environment, free_port
from verax.experimental import checkpoint

COUNT = 4
HEARTBEAT = 4
LATE = 5.0
"""What may pass after a heartbeat."""
LIFE = 5.0
"""A process is killed at some time of so many seconds, once it has joined."""

WORKER = """
    import numpy as np
    import verax
    from verax.sharding import NamedSharding, PartitionSpec as P

    verax.distributed.initialize(
        {address!r}, {count}, {index}, initialization_timeout=60,
        heartbeat_timeout_seconds={heartbeat}, shutdown_timeout_seconds=10,
    )
    print("joined", flush=True)
    mesh = verax.make_mesh((verax.device_count(),), ("x",))
    x = verax.device_put(np.arange(48.0), NamedSharding(mesh, P("x")))
    step = verax.jit(lambda x: x + x.mean())
    while True:
        x = step(x) / 2
        x.block_until_ready()
"""
SAVER = """
    import sys
    import numpy as np
    import verax
    from verax.experimental import checkpoint
    from verax.sharding import NamedSharding, PartitionSpec as P

    verax.distributed.initialize(
        {address!r}, {count}, {index}, initialization_timeout=60,
        heartbeat_timeout_seconds={heartbeat}, shutdown_timeout_seconds=10,
    )
    mesh = verax.make_mesh((verax.device_count(),), ("x",))
    place = NamedSharding(mesh, P("x"))
    for step in range(100_000):
        values = np.full(100_000, step, np.float32)
        tree = dict(
            a=verax.device_put(values, place),
            b=[verax.device_put(values[:8], place) for _ in range(5)],
        )
        checkpoint.save({path!r}, tree, overwrite=True)
        print(step, flush=True)
"""


@contextmanager
def started(
    program: str, count: int, folder: Path, **fields: object
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """A group of processes, of which none is left behind."""
    address = f"127.0.0.1:{free_port()}"
    text = textwrap.dedent(program)
    made: list[subprocess.Popen[bytes]] = []
    try:
        for i in range(count):
            own = text.format(
                address=address, count=count, index=i, heartbeat=HEARTBEAT, **fields
            )
            with (folder / f"output{i}").open("wb") as out:
                made.append(
                    subprocess.Popen(
                        [sys.executable, "-c", own],
                        stdout=out,
                        stderr=subprocess.STDOUT,
                        env=environment(),
                    )
                )
        yield made
    finally:
        for process in made:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()


def kill_one(draw: random.Random, folder: Path) -> list[str]:
    """Kill one of the processes; what is wrong with how the others end."""
    culprit, seconds = draw.randrange(COUNT), draw.random() * LIFE
    wrong, said = [], ""
    with started(WORKER, COUNT, folder) as group:
        while "joined" not in (folder / f"output{culprit}").read_text():
            time.sleep(0.02)
        time.sleep(seconds)
        group[culprit].send_signal(signal.SIGKILL)
        killed = time.monotonic()
        latest = 0.0
        for i, process in enumerate(group):
            if i == culprit:
                continue
            status = ended_by(process, killed + HEARTBEAT + LATE)
            latest = time.monotonic() - killed
            text = (folder / f"output{i}").read_text(errors="replace")
            last = text.strip().splitlines()[-1][:120] if text.strip() else ""
            if status != 1 or "ProcessFailed: " not in last:
                wrong.append(f"process {i}: status {status}, {text[-2000:]}")
            said = last.partition(": ")[2]
    print(f"{culprit} after {seconds:.1f} s, all ended {latest:.1f} s later: {said}")
    return wrong


def look(path: Path) -> int:
    """The step of the checkpoint on the disk, which is whole."""
    actual = checkpoint.restore(path)
    steps = {
        float(x) for leaf in (actual["a"], *actual["b"]) for x in (leaf[0], leaf[-1])
    }
    assert len(steps) == 1, steps
    assert (actual["a"] == actual["a"][0]).all()
    return int(steps.pop())


def stop_saves(draw: random.Random, times: int, folder: Path) -> None:
    """Look at what is on the disk at some times of saves, the last time after a kill.

    A process that is stopped has written what one that is killed there has.
    """
    path = folder / "saved"
    with started(SAVER, 2, folder, path=str(path)) as group:
        while not (path / "manifest.json").exists():
            assert [p.poll() for p in group] == [None, None], "both are running"
            time.sleep(0.05)
        for i in range(times):
            time.sleep(draw.random() * 0.1)
            for process in group if draw.random() < 0.5 else draw.sample(group, 1):
                process.send_signal(signal.SIGSTOP)
            last = i == times - 1
            if last:
                group[draw.randrange(2)].send_signal(signal.SIGKILL)
            look(path)
            for process in group:
                process.send_signal(signal.SIGCONT)
        for process in group:
            assert ended_by(process, time.monotonic() + HEARTBEAT + 30) is not None
        print(f"{times} times, the last at step {look(path)}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is the number of rounds that went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.distributed.kills")
    parser.add_argument("--processes", type=int, default=10, help="to kill (10)")
    parser.add_argument("--saves", type=int, default=50, help="to cut short (50)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    draw = random.Random(options.seed)
    failed = 0
    for _ in range(options.processes):
        with tempfile.TemporaryDirectory() as folder:
            wrong = kill_one(draw, Path(folder))
        failed += bool(wrong)
        print(*wrong, sep="\n", end="" if not wrong else "\n", flush=True)
    left = options.saves
    while left > 0:
        times = min(left, 5)
        with tempfile.TemporaryDirectory() as folder:
            stop_saves(draw, times, Path(folder))
        left -= times
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
