"""Floor 4: what a call of a compiled program does when its arguments are known kinds.

One idea: the kind of an argument says its type and how its values reach the device, so
one look-up by the kinds finds a closure that asks nothing any more::

    call = caller(program, out_tree, kinds)     # once
    call(args)                                  # many times

The kind of an array of ours is its aval, or where it is too if the user chose that. The
kind of a NumPy array is its shape and dtype, that of a scalar its class.
"""

import operator
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any, Final, NoReturn

import numpy as np
from attrs import frozen

from verax.backend.arrays.concrete import ConcreteArray, from_buffer
from verax.backend.arrays.placed import PlacedArray
from verax.backend.calls.staging_memory import Pool, Transfer, may_share
from verax.backend.programs.placed_program import donation_to
from verax.backend.programs.program import Program, buffer_of, device_aval
from verax.backend.pytrees import PyTreeDef, flatten
from verax.backend.results import result_tree
from verax.backend.runtime import buffers
from verax.backend.runtime.buffers import Buffer
from verax.backend.runtime.client import local_devices
from verax.backend.xla.executable import FAILED, ResultHandler, Run, fail
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import COMPLEX, FLOATING, NUMERIC, stored_dtype
from verax.rules.values.constants import scalar_of

type Call = Callable[[Sequence[Any]], Any]
type Put = Callable[[Any], Buffer]
type Fetch = Callable[[Sequence[Any]], list[Buffer]]
type Finish = Callable[[list[ConcreteArray]], Any]
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
    """What a call needs to know of an argument; None if that is a longer question.

    Of None it needs to know nothing else: it has no values.
    """
    cls: object = type(x)
    if cls in SCALARS:
        return cls
    if cls is ConcreteArray:
        aval: ShapedArray = x.aval
        return aval
    if cls is np.ndarray:
        return x.shape, x.dtype
    if cls is PlacedArray:
        kind: object = x.kind
        return kind
    return NoneType if x is None else None


@frozen(eq=False)
class CachedCall:
    """What a call does, in pieces, for whoever calls to do in a frame of its own.

    The runtime notes the stack for each array that it makes, which takes it 0.1 us for
    every frame: so `JitFunction` writes down what `__call__` says here.

    `fetch` makes the buffers that the program takes of the arguments of a call, unless
    these are arrays, taken as they are. `mark_donated` forgets the arguments whose
    memory the program may have taken, if there are any. `finish` makes the result of
    the arrays of types `avals`, unless the result is one array. With `call_all`, which
    does everything, the other pieces are not used.
    """

    run: Run
    handlers: list[ResultHandler]
    avals: tuple[ShapedArray, ...]
    fetch: Fetch | None = None
    mark_donated: Callable[[Sequence[Any]], None] | None = None
    finish: Finish | None = None
    call_all: Call | None = None

    def __call__(self, args: Sequence[Any]) -> Any:
        """The result for leaves of the kinds for which this was made.

        Raises:
            ExecutionError: an array was deleted or donated, or the program failed.
        """
        if self.call_all is not None:
            return self.call_all(args)
        ins = buffers_of(args) if self.fetch is None else self.fetch(args)
        try:
            outs = self.run(ins).consume_with_handlers(self.handlers)
        except FAILED as error:
            fail(error, ins)
        if self.mark_donated is not None:
            self.mark_donated(args)
        arrays = arrays_of(outs, self.avals)
        return (self.finish or FIRST)(arrays)


def cached(call: Call) -> CachedCall:
    """A call of any kind as one in pieces."""
    if isinstance(call, CachedCall):
        return call
    return CachedCall(no_run, [], (), call_all=call)


def no_run(buffers: Sequence[Buffer]) -> NoReturn:
    """Stands where a call is not made of pieces."""
    raise AssertionError("this call does everything by itself")


def caller(
    program: Program,
    out_tree: PyTreeDef,
    kinds: Sequence[object],
    places: Places = None,
) -> CachedCall:
    """What a call with leaves of these kinds does, all looked up beforehand.

    The leaf number i is the argument at `places[i]` of those that the call is given;
    without `places` the arguments are the leaves.
    """
    donated = program.lowered.donated
    if (
        program.placement is not None
        or None in kinds
        or not program.plain
        or not all([type(kinds[i]) is ShapedArray for i in donated])
    ):
        return cached(general_caller(program, out_tree, places))
    transfers = transfers_of(program, kinds, places)
    fetch = fetcher(program, transfers, places)
    found = CachedCall(
        program.executable.run,
        program.executable.handlers,
        program.out_avals,
        None if fetch is buffers_of else fetch,
        giver_up(program, places) if donated else None,
        None if out_tree == LEAF else finisher(out_tree),
    )
    if shares(program, transfers):
        return cached(sharing_caller(program, transfers, found))
    return found


def general_caller(program: Program, out_tree: PyTreeDef, places: Places) -> Call:
    """A call that looks at each argument, and gives up those that are donated."""
    run = program.run
    if places is None:
        return lambda args: result_tree(out_tree, run(args))
    return lambda args: result_tree(out_tree, run([args[i] for i in places]))


def sharing_caller(
    program: Program, transfers: tuple[Transfer, ...], pieces: CachedCall
) -> Call:
    """The call of a program that reads values of the host where they are written."""
    run, handlers, avals = pieces.run, pieces.handlers, pieces.avals
    mark_donated, finish = pieces.mark_donated, pieces.finish
    pool = Pool(local_devices()[0], transfers, program.constants, avals)

    def call(args: Sequence[Any]) -> Any:
        slots = pool.take()
        ins = slots.filled(args)
        try:
            outs = run(ins).consume_with_handlers(handlers)
        except FAILED as error:
            fail(error, ins)
        pool.put_back(slots, outs)
        if mark_donated is not None:
            mark_donated(args)
        if finish is None:
            return from_buffer(outs[0], avals[0])
        return finish(arrays_of(outs, avals))

    return call


def arrays_of(
    outs: Sequence[Buffer], avals: Sequence[ShapedArray]
) -> list[ConcreteArray]:
    """What a program returned, as `from_buffer` makes arrays of it."""
    made: list[ConcreteArray] = []
    for buffer, aval in zip(outs, avals, strict=True):
        x = ConcreteArray()
        x.buffer, x.aval, x.host = buffer, aval, None
        made.append(x)
    return made


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
                device_aval(aval) if is_host(kinds[i]) else None,
            )
            for i, aval in zip(kept, program.lowered.in_avals, strict=True)
        ]
    )


def shares(program: Program, transfers: Sequence[Transfer]) -> bool:
    """Whether values of the host get to the program by being written down."""
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


def giver_up(program: Program, places: Places) -> Callable[[Sequence[Any]], None]:
    """What forgets the arguments whose memory the program may have taken."""
    how, donated = donation_to(program.lowered), program.lowered.donated
    wanted = donated if places is None else [places[i] for i in donated]

    def mark_donated(args: Sequence[Any]) -> None:
        for i in wanted:
            x: ConcreteArray = args[i]
            if (buffer := x.buffer) is not None and buffer.is_deleted():
                # As x.end(how), when the runtime has taken the memory, as it does.
                x.ended = how
                x.host = x.buffer = None
            else:
                x.end(how)

    return mark_donated


def finisher(out_tree: PyTreeDef) -> Finish:
    """What makes the result of its leaves: `unflatten`, or something shorter."""
    if out_tree == LEAF:
        return FIRST
    for build in (tuple, list):
        if out_tree == flatten(build(range(out_tree.num_leaves)))[1]:
            return build
    return out_tree.unflatten


def fetcher(program: Program, transfers: Sequence[Transfer], places: Places) -> Fetch:
    """How the arguments of a call become the buffers that the program takes."""
    constants, indices = program.constants, tuple([t.number for t in transfers])
    if all([t.stored is None for t in transfers]):
        if places is None and program.positions is None:
            if constants:
                return lambda args: [*constants, *buffers_of(args)]
            return buffers_of
        if constants:
            return lambda args: [*constants, *buffers_of([args[i] for i in indices])]
        return lambda args: [
            x.device_buffer() if (held := (x := args[i]).buffer) is None else held
            for i in indices
        ]
    puts = [putter(t) for t in transfers]
    return lambda args: [
        *constants,
        *map(operator.call, puts, [args[i] for i in indices]),
    ]


def buffers_of(args: Sequence[Any]) -> list[Buffer]:
    """The device buffers of arrays of ours."""
    return [x.device_buffer() if (held := x.buffer) is None else held for x in args]


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
    return lambda x: buffer_of(x, aval)


def direct_putter(aval: ShapedArray) -> Put:
    """Copies an array that has the stored dtype: its owner may write to it later.

    The runtime copies within the call, which is quicker than a copy by NumPy before it.
    """
    device = local_devices()[0]
    put, devices = buffers.put_on_devices, [device]
    sharding, stored = buffers.single_device(device), device_aval(aval)
    mode = buffers.COPIED
    return lambda x: put(stored, sharding, [x], devices, True, False, mode, True)


def scalar_putter(cls: object, aval: ShapedArray) -> Put:
    """Transfers a scalar, unless it is the one of the call before.

    No program uses up its argument here, so calls may share a buffer. Zeros of two
    signs are equal and yet two values: they are not kept.
    """
    device, stored = local_devices()[0], device_aval(aval)
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
