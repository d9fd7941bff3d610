"""Floor 4: what a call of a compiled program does when its arguments are known kinds.

One idea: the kind of an argument says its type and how its values reach the device, so
one look-up by the kinds finds a closure that decides nothing any more::

    call = caller(program, out_tree, kinds)     # once
    call(args)                                  # many times

The kind of an array of ours is its aval, or where it is too if the user chose that. The
kind of a NumPy array is its shape and dtype, that of a scalar its class.
"""

import operator
from collections.abc import Callable, Sequence
from functools import partial
from types import NoneType
from typing import Any, Final

import numpy as np

from verax.backend.arrays.concrete import ConcreteArray
from verax.backend.arrays.places import Placed, stored_aval
from verax.backend.calls.staging_memory import Pool, Transfer, may_share
from verax.backend.placement.sharding import Sharding
from verax.backend.programs.prepared import (
    Fetch,
    Finish,
    PreparedCall,
    buffers_of,
    ending,
    operand_buffer,
    prepared,
)
from verax.backend.programs.program import Program
from verax.backend.pytrees import PyTreeDef, flatten
from verax.backend.results import result_tree
from verax.backend.runtime import buffers
from verax.backend.runtime.buffers import Buffer
from verax.backend.runtime.client import local_devices
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import COMPLEX, FLOATING, NUMERIC, stored_dtype
from verax.rules.values.constants import scalar_of

type Call = Callable[[Sequence[Any]], Any]
type Put = Callable[[Any], Buffer]
type Build = Callable[[list[Any]], Any]
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

    def fetch(args: Sequence[Any]) -> list[Buffer]:
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
    """How each argument that the program takes is made of those of the call."""
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

    def finish(outs: list[Buffer]) -> Any:
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
    """How arguments of known kinds become the buffers that the program takes.

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
    """How the values of an argument become a buffer."""
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
        value, found = last  # one read: other threads may call too
        if found is None or value != x:
            found = transfer(x)
            last = (x, found)
        return found

    if cls in COMPLEX_SCALARS:
        return transfer
    if cls in REAL_SCALARS:
        return lambda x: put(x) if x else transfer(x)
    return put
