"""Floor 4: calls of compiled programs that happen again and again.

One idea: the kind of an argument says its type and how its values reach the device, so
one look-up by the kinds finds a closure that decides nothing any more::

    call = caller(program, out_tree, kinds)     # once
    call(args)                                  # many times

The kind of an array of ours is its aval, or where it is too if the user chose that. The
kind of a NumPy array is its shape and dtype, that of a scalar its class.
"""

import operator
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from types import NoneType
from typing import Any, Final, NamedTuple

import numpy as np
from jaxlib import _jax

from verax.backend.arrays.concrete import ConcreteArray
from verax.backend.arrays.places import Placed, stored_aval
from verax.backend.placement.sharding import Sharding
from verax.backend.programs.prepared import (
    After,
    Fetch,
    Finish,
    PreparedCall,
    buffers_of,
    ending,
    operand_buffer,
    prepared,
)
from verax.backend.programs.program import Build as Build, Program
from verax.backend.pytrees import PyTreeDef, flatten, result_tree
from verax.backend.runtime import buffers
from verax.backend.runtime.buffers import AvalLike, Buffer
from verax.backend.runtime.client import Device, local_devices
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import COMPLEX, FLOATING, NUMERIC, stored_dtype
from verax.rules.values.constants import scalar_of

# -----------------------------------------------------------------------------
# Host memory that CPU programs read in place.
#
# On the processor a buffer may be a view of NumPy's memory, so that a scalar or a NumPy
# array gets to a program by one assignment, instead of a transfer that costs as much as
# the call. Memory is written to again only when a program that reads it is known to
# have finished::
#
#     ins = pool.filled(args)             # buffers, those of host values filled in
#     outs = run(ins)
#     pool.put_back(args, ins, outs)


ALIGNMENT = 64
# Larger arrays are copied by the runtime: this memory is kept with the program.
LARGEST = 1 << 20
# How many calls that are still running may have their memory kept for later ones.
MOST = 4


class Transfer(NamedTuple):
    """The way of an argument of a call to the program.

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
        self, args: Sequence[object], ins: Sequence[Buffer], outs: Sequence[Buffer]
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

        def done(args: Sequence[object], ins: list[Buffer], outs: list[Buffer]) -> None:
            self.put_back(args, ins, outs)
            after(args, ins, outs)

        return done


def aligned(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> np.ndarray:
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


type Call = Callable[[Sequence[Any]], Any]
type Put = Callable[[Any], Buffer]

type Places = Sequence[int] | None

LEAF = flatten(0)[1]
# What makes the result of a program with one leaf.
FIRST: Final = operator.itemgetter(0)
# By letter as well: two C types of one size have a class each.
NUMPY_SCALARS = frozenset(
    [dtype.type for dtype in NUMERIC] + [np.dtype(c).type for c in "bhilqBHILQ"]
)
SCALARS: frozenset[type] = NUMPY_SCALARS | {bool, int, float, complex}
COMPLEX_SCALARS: frozenset[type] = frozenset([d.type for d in COMPLEX]) | {complex}
REAL_SCALARS: frozenset[type] = frozenset([d.type for d in FLOATING]) | {float}


def kind_of(x: Any) -> object:
    """The kind of an argument, for a call; None if that takes longer to find out.

    Of None it needs to know nothing else: it has no values.
    """
    cls: object = type(x)
    if cls in SCALARS:
        return cls
    if cls is ConcreteArray:
        kind: object = x.kind
        return kind
    if cls is np.ndarray:
        return x.shape, x.dtype
    return NoneType if x is None else None


def caller(
    program: Program,
    out_tree: PyTreeDef,
    kinds: Sequence[object],
    places: Places = None,
) -> PreparedCall:
    """Returns the call for leaves of these kinds, with everything looked up beforehand.

    The leaf number i is the argument at `places[i]` of those that the call is given;
    without `places` the arguments are the leaves.
    """
    lowered = program.lowered
    if None in kinds or not program.plain:
        return program.prepared(places, partial(result_tree, out_tree))
    if program.placement is not None:
        return placed_caller(program, out_tree, kinds, places)
    if not all([type(kinds[i]) is ShapedArray for i in lowered.donated]):
        return program.prepared(places, partial(result_tree, out_tree))
    transfers = transfers_of(program, kinds, places)
    fetch, after = fetcher(program, transfers), ending(lowered, places)
    if shares(program, transfers):
        device, constants = local_devices()[0], program.constants
        pool = Pool(device, transfers, constants, program.out_avals)
        fetch, after = pool.filled, pool.followed(after)
    whole = places is None and program.positions is None
    taken = None if whole else [t.number for t in transfers]
    make = partial(prepared, program.executable, fetch, after, places=taken)
    if out_tree == LEAF:
        return make(aval=program.out_avals[0])
    return make(finishing(out_tree, program.out_kinds))


def placed_caller(
    program: Program, out_tree: PyTreeDef, kinds: Sequence[object], places: Places
) -> PreparedCall:
    """As `caller`, for a program whose arguments have places of their own.

    Arrays that lie where the program wants them are taken as they are; what else there
    is goes there in each call.
    """
    constants = program.constants
    after = ending(program.lowered, places)
    finish = finishing(out_tree, program.out_kinds)
    numbers = [i if places is None else places[i] for i, _, _ in program.operands]
    there = [lies_at(kinds[i], place) for i, _, place in program.operands]
    if all(there) and not constants:
        whole = numbers == [*range(len(kinds))] and places is None
        taken = None if whole else numbers
        return prepared(program.executable, None, after, finish, places=taken)
    puts: list[Put] = [
        ConcreteArray.device_buffer
        if flag
        else partial(operand_buffer, aval=aval, place=place)
        for flag, (_, aval, place) in zip(there, program.operands, strict=True)
    ]

    def fetch(args: Sequence[object]) -> list[Buffer]:
        taken = [args[i] for i in numbers]
        return [*constants, *map(operator.call, puts, taken)]

    return prepared(program.executable, fetch, after, finish)


def lies_at(kind: object, place: Sharding | None) -> bool:
    """Whether arguments of this kind are arrays that lie as `place` says."""
    if type(kind) is not Placed or place is None:
        return False
    return kind.place.is_equivalent_to(place, kind.aval.ndim)


def transfers_of(
    program: Program, kinds: Sequence[object], places: Places
) -> tuple[Transfer, ...]:
    """The transfers that make the program's arguments of those of the call."""
    kept = range(len(kinds)) if program.positions is None else program.positions
    return tuple(
        [
            Transfer(
                i if places is None else places[i],
                kinds[i],
                aval,
                stored_aval(aval) if is_host(kinds[i]) else None,
            )
            for i, aval in zip(kept, program.lowered.in_avals, strict=True)
        ]
    )


def shares(program: Program, transfers: Sequence[Transfer]) -> bool:
    """Whether host values reach the program by being written to memory."""
    device = local_devices()[0]
    stored = [t.stored for t in transfers if t.stored is not None]
    # Functions of the host may keep what they are given.
    calls = program.executable.calls.functions
    return (
        bool(stored)
        and bool(program.out_avals)
        and not calls
        and all([may_share(device, aval) for aval in stored])
    )


def finishing(out_tree: PyTreeDef, kinds: Sequence[ShapedArray | Placed]) -> Finish:
    """The function that makes a program's result from its outputs, in one frame."""
    build = builder_of(out_tree)
    avals = [kind.aval if isinstance(kind, Placed) else kind for kind in kinds]

    def finish(outs: list[Buffer]) -> object:
        made: list[ConcreteArray] = []
        for buffer, aval, kind in zip(outs, avals, kinds, strict=True):
            x = ConcreteArray()  # as `arrays_of`
            x.buffer, x.host = buffer, None
            x.aval, x.kind = aval, kind
            made.append(x)
        return build(made)

    return finish


def builder_of(out_tree: PyTreeDef) -> Build:
    """The function that makes a result of its leaves: `unflatten`, or less."""
    if out_tree == LEAF:
        return FIRST
    for build in (tuple, list):
        if out_tree == flatten(build(range(out_tree.num_leaves)))[1]:
            return build
    return out_tree.unflatten


def fetcher(program: Program, transfers: Sequence[Transfer]) -> Fetch | None:
    """Returns a function that makes the program's buffers of arguments of known kinds.

    None if they are arrays, taken as they are, and the program takes nothing else.
    """
    constants, indices = program.constants, tuple([t.number for t in transfers])
    if all([t.stored is None for t in transfers]):
        if not constants:
            return None
        return lambda args: [*constants, *buffers_of([args[i] for i in indices])]
    puts = [putter(t) for t in transfers]
    return lambda args: [
        *constants,
        *map(operator.call, puts, [args[i] for i in indices]),
    ]


def is_host(kind: object) -> bool:
    """Whether arguments of this kind are values of NumPy or Python."""
    return kind in SCALARS or (type(kind) is tuple and type(kind[0]) is tuple)


def putter(transfer: Transfer) -> Put:
    """Returns a function that makes the values of an argument a buffer."""
    kind, aval = transfer.kind, transfer.aval
    if transfer.stored is None:
        return ConcreteArray.device_buffer
    if kind in SCALARS:
        return scalar_putter(kind, aval)
    assert isinstance(kind, tuple)
    if kind[1] is stored_dtype(aval.dtype):
        return direct_putter(aval)
    return lambda x: operand_buffer(x, aval, None)


def direct_putter(aval: ShapedArray) -> Put:
    """Copies an array that has the stored dtype: its owner may write to it later.

    The runtime copies within the call, which is quicker than a copy by NumPy before it.
    """
    device = local_devices()[0]
    put, devices = buffers.put_on_devices, [device]
    sharding, stored = buffers.single_device(device), stored_aval(aval)
    mode = buffers.COPIED
    return lambda x: put(stored, sharding, [x], devices, True, False, mode, True)


def scalar_putter(cls: object, aval: ShapedArray) -> Put:
    """Transfers a scalar, unless it is the one of the call before.

    No program uses up its argument here, so calls may share a buffer. Zeros of two
    signs are equal and yet two values: they are not kept.
    """
    device, stored = local_devices()[0], stored_aval(aval)
    last: tuple[object, Buffer | None] = (None, None)

    def transfer(x: object) -> Buffer:
        return buffers.put(stored, scalar_of(x, aval), device, False)

    def put(x: object) -> Buffer:
        nonlocal last
        value, out = last  # one read: other threads may call too
        if out is None or value != x:
            out = transfer(x)
            last = (x, out)
        return out

    if cls in COMPLEX_SCALARS:
        return transfer
    if cls in REAL_SCALARS:
        return lambda x: put(x) if x else transfer(x)
    return put
