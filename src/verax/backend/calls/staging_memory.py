"""Floor 4: host memory that CPU programs read in place.

One idea: on the processor a buffer may be a view of NumPy's memory, so that a scalar or
a NumPy array gets to a program by one assignment, instead of a transfer that costs as
much as the call. Memory is written to again only when a program that reads it is known
to have finished::

    ins = pool.filled(args)             # buffers, those of host values filled in
    outs = run(ins)
    pool.put_back(args, ins, outs)
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib import _jax

from verax.backend.programs.prepared import After
from verax.backend.runtime import buffers
from verax.backend.runtime.buffers import AvalLike, Buffer
from verax.backend.runtime.client import Device
from verax.ir.avals import ShapedArray
from verax.rules.values.constants import scalar_of

ALIGNMENT = 64
# Larger arrays are copied by the runtime: this memory is kept with the program.
LARGEST = 1 << 20
# How many calls that are still running may have their memory kept for later ones.
MOST = 4


class Transfer(NamedTuple):
    """How an argument of a call gets to the program.

    `number` says which argument of the call it is, `kind` what it is looked up by.
    `stored` is the type on the device of a value of the host, and None of an array of
    ours, whose buffer is taken as it is.
    """

    number: int
    kind: object
    aval: ShapedArray
    stored: AvalLike | None


class Fill(NamedTuple):
    """The memory behind a buffer, and which argument of the call goes there."""

    memory: np.ndarray
    number: int
    aval: ShapedArray


class HostSlots(list[Any]):
    """The buffers that one call at a time passes on, host values in memory of its own.

    The list itself is what the program is given. `output` is one of the last program
    that read the memory, unless it has finished.
    """

    __slots__ = ("arrays", "fills", "output")
    __eq__ = object.__eq__
    __hash__ = object.__hash__  # type: ignore[assignment]  # lists have none

    def __init__(
        self,
        device: Device,
        transfers: Sequence[Transfer],
        constants: Sequence[Buffer],
    ) -> None:
        super().__init__(constants)
        fills, arrays = [], []
        for index, _, aval, stored in transfers:
            if stored is None:
                arrays.append((len(self), index))
                self.append(None)
            else:
                memory, buffer = shared(stored, device)
                fills.append(Fill(memory, index, aval))
                self.append(buffer)
        self.fills, self.arrays = tuple(fills), tuple(arrays)
        self.output: Buffer | None = None

    def are_free(self) -> bool | None:
        """Whether the memory is no longer read.

        None where that will never be known: the output was donated.
        """
        try:
            return self.output is None or self.output.is_ready()
        except _jax.JaxRuntimeError:
            return None


class Pool:
    """The slots of one kind of call; several threads may call at once.

    Outputs are kept to be asked, but no large ones: those may be worth more to others.
    """

    __slots__ = ("constants", "device", "kept", "spare", "transfers", "witness")

    def __init__(
        self,
        device: Device,
        transfers: Sequence[Transfer],
        constants: Sequence[Buffer],
        out_avals: Sequence[ShapedArray],
    ) -> None:
        sizes = [aval.size * aval.dtype.itemsize for aval in out_avals]
        self.device, self.transfers, self.constants = device, transfers, constants
        self.witness = sizes.index(min(sizes))
        self.kept = min(sizes) <= LARGEST
        self.spare: deque[HostSlots] = deque()

    def take(self) -> HostSlots:
        """Slots that are not in use.

        Those whose use will never be known are left to the program that may read them:
        kept, they would take the places of others forever.
        """
        free: bool | None = None
        while free is None:
            try:
                slots = self.spare.popleft()
            except IndexError:
                break
            if free := slots.are_free():
                return slots
            if free is False:
                self.spare.append(slots)
        return HostSlots(self.device, self.transfers, self.constants)

    def filled(self, args: Sequence[Any]) -> list[Buffer]:
        """The buffers that the program takes for the arguments of a call.

        Raises:
            OverflowError: a Python integer does not fit its type.
            RuntimeError: an array was deleted or donated.
        """
        slots = self.take()
        for memory, index, aval in slots.fills:
            try:
                memory[...] = args[index]
            except OverflowError:
                memory[...] = scalar_of(args[index], aval)  # says what to do
        for place, index in slots.arrays:
            x = args[index]
            slots[place] = x.device_buffer() if (held := x.buffer) is None else held
        return slots

    def put_back(
        self, args: Sequence[Any], ins: Sequence[Buffer], outs: Sequence[Buffer]
    ) -> None:
        """Keep the slots of a call for later ones, once they are no longer in use."""
        assert type(ins) is HostSlots
        for place, _ in ins.arrays:  # the arrays of the call may die before the next
            ins[place] = None
        output = outs[self.witness]
        done = output.is_ready()
        if (done or self.kept) and len(self.spare) < MOST:
            ins.output = None if done else output
            self.spare.append(ins)

    def followed(self, after: After | None) -> After:
        """The work after a run: keeping the slots, and what else there is to do."""
        if after is None:
            return self.put_back

        def done(args: Sequence[Any], ins: list[Buffer], outs: list[Buffer]) -> None:
            self.put_back(args, ins, outs)
            after(args, ins, outs)

        return done


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Memory that a buffer may view: new, and aligned as the runtime asks."""
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.empty(count + ALIGNMENT, np.uint8)
    start = -raw.__array_interface__["data"][0] % ALIGNMENT
    return raw[start : start + count].view(dtype).reshape(shape)


def shared(stored: AvalLike, device: Device) -> tuple[np.ndarray, Buffer]:
    """New memory and a buffer that is a view of it.

    Raises:
        NotShared: the runtime made a copy.
    """
    memory = aligned(stored.shape, stored.dtype)
    buffer = buffers.put(stored, memory, device, copy=False)
    # Asking the buffer itself for its pointer would import jax where it is installed.
    if not np.may_share_memory(np.asarray(memoryview(buffer)), memory):
        raise NotShared
    return memory, buffer


class NotShared(Exception):
    """A buffer is not a view of the memory it was made of."""


def may_share(device: Device, stored: AvalLike) -> bool:
    """Whether values of this type can be in memory that a program reads directly.

    Only dtypes of NumPy's own: the kind of some small floats is that of floats, but no
    buffer of them shows its memory.
    """
    size = int(np.prod(stored.shape, dtype=np.int64)) * stored.dtype.itemsize
    return (
        device.platform == "cpu"
        and stored.dtype.kind in "biufc"
        and stored.dtype.isbuiltin == 1
        and 0 < size <= LARGEST
    )
