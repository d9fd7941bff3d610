"""Small messages between processes, through the coordination service (floor 4).

One idea: a call of jaxlib's client may wait without end once another process has
failed, so each runs in a thread of its own, and the caller waits for that or for the
failure, whichever comes first::

    wait_for_all("checkpoint 3", seconds=60)
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

from jaxlib import _jax

from verax.backend.runtime.client import Device
from verax.backend.runtime.cluster import (
    CLUSTER,
    Connection,
    Departure,
    ProcessFailed,
)
from verax.backend.runtime.errors import trimmed
from verax.ir.locks import new_lock

type Request[T] = Callable[[_jax.DistributedRuntimeClient], T]

FAILURE_KEY: Final = "verax/failure"
# What the service says of a key that has a value.
TAKEN: Final = "ALREADY_EXISTS"
# How long a process that ends waits for its last message to be taken.
ANNOUNCEMENT_SECONDS: Final = 2.0


def connection() -> Connection:
    """The connection with the other processes.

    Raises:
        RuntimeError: there is none.
    """
    out = CLUSTER.connection
    if out is None:
        raise RuntimeError(
            "this process is not connected with others: call "
            "verax.distributed.initialize first"
        )
    return out


def ask[T](
    request: Request[T], seconds: float | None = None, awaited: Iterable[int] = ()
) -> T:
    """The answer of the coordination service; None for the time means no limit.

    It answers only after something that the processes `awaited` do.

    Raises:
        ProcessFailed: another process failed meanwhile, or one of `awaited` ended.
        TimeoutError: nothing came within the time.
        RuntimeError: the service refused, or there is no connection.
    """
    client = connection().client
    try:
        return CLUSTER.watched(lambda: request(client), seconds, awaited)
    except ProcessFailed:
        raise
    except RuntimeError as error:
        raise RuntimeError(trimmed(str(error))) from error


def wait_for_all(name: str, seconds: float) -> None:
    """Wait until every process has come to the barrier of this name.

    Raises:
        ProcessFailed: another process failed meanwhile.
        RuntimeError: they do not come in time.
    """
    everyone = range(connection().settings.count)
    ask(
        lambda client: client.wait_at_barrier(name, int(seconds * 1000)),
        awaited=everyone,
    )


def publish(key: str, value: bytes) -> None:
    """Let every process read a value under a key, once."""
    ask(lambda client: client.key_value_set_bytes(key, value))


def published(key: str, seconds: float, awaited: Iterable[int] = ()) -> bytes:
    """The value that a process publishes under a key, now or within the time."""
    return ask(
        lambda client: client.blocking_key_value_get_bytes(key, int(seconds * 1000)),
        awaited=awaited,
    )


def withdraw(key: str) -> None:
    """Forget a value, or all whose keys start with `key/`."""
    ask(lambda client: client.key_value_delete(key))


def announce_departure() -> None:
    """Tell the other processes that this one ends, in the first place that is free.

    One that waits for it in a program that this one never started gives up.
    """
    settings = connection().settings
    value = json.dumps([settings.index, [*CLUSTER.runs.items()]])

    def announce(client: _jax.DistributedRuntimeClient) -> None:
        for number in range(settings.count):
            try:
                client.key_value_set(departure_key(number), value, False)
            except RuntimeError as error:
                if TAKEN not in str(error):
                    raise
            else:
                return

    with suppress(RuntimeError, TimeoutError):
        ask(announce, ANNOUNCEMENT_SECONDS)


def departure_key(number: int) -> str:
    """The key under which process `number` of those that end says so, from 0 on."""
    return f"verax/departure/{number}"


def departed(text: str) -> Departure:
    """The message that `announce_departure` wrote.

    >>> departed("[1, [[[0, 1], 7]]]").runs
    {(0, 1): 7}
    """
    index, runs = json.loads(text)
    return Departure(index, {tuple(members): count for members, count in runs})


def announce(reason: str) -> None:
    """Tell the other processes why this one ends."""
    with suppress(RuntimeError, TimeoutError):
        ask(
            lambda client: client.key_value_set(FAILURE_KEY, reason, True),
            ANNOUNCEMENT_SECONDS,
        )


# -----------------------------------------------------------------------------
# Finds programs that differ between processes before they run, and hang.
#
# Processes compile the programs that span them in the same order, so each
# publishes the checksum of its first, second, third, and reads those of the others::
#
#     compare_programs("step", text, devices)     # raises in all of them


SECONDS: Final = 120.0


class Order:
    """The number of compiled programs, by the processes that share them."""

    __slots__ = ("counts", "lock")

    def __init__(self) -> None:
        """None yet."""
        self.lock = new_lock()
        self.counts: Counter[tuple[int, ...]] = Counter()

    def following(self, members: tuple[int, ...]) -> int:
        """The number of the next program over these processes."""
        with self.lock:
            self.counts[members] += 1
            return self.counts[members]


ORDER: Final = Order()


def compare_programs(name: str, text: str, devices: Sequence[Device]) -> None:
    """Wait until all processes of these devices compile a program, and compare it.

    Raises:
        ProcessFailed: another process failed meanwhile.
        RuntimeError: their programs differ, or one compiles none in time.
    """
    members = tuple(sorted({device.process_index for device in devices}))
    own = connection().settings.index
    if len(members) == 1 or own not in members:
        return
    number = ORDER.following(members)
    key = f"verax/programs/{'-'.join(map(str, members))}/{number}"
    mark = f"{name} {hashlib.sha256(text.encode()).hexdigest()[:16]}"
    publish(f"{key}/{own}", mark.encode())
    for other in members:
        try:
            result = published(f"{key}/{other}", SECONDS, [other]).decode()
        except RuntimeError as error:
            if "DEADLINE" not in str(error.__cause__):
                raise
            raise RuntimeError(
                f"process {own} compiles {name}, program {number} of processes "
                f"{members}, but process {other} has compiled none in {SECONDS:g} s: "
                "all processes must run the same programs in the same order"
            ) from error
        if result != mark:
            raise RuntimeError(
                f"program {number} of processes {members} differs: process {own} "
                f"compiles {mark}, but process {other} {result} (name and checksum of "
                "the module): all processes must run the same programs in the same "
                "order"
            )
