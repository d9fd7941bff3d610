"""Floor 4: what a call of a compiled program does when its arguments are known kinds.

One idea: the kind of an argument says its type and how its values reach the device, so
one look-up by the kinds finds a closure that asks nothing any more::

    call = caller(program, out_tree, kinds)     # once
    call(args)                                  # many times

The kind of an array of ours is its `kind`: its aval, and where it is if the user chose
that. The kind of a NumPy array is its shape and dtype, that of a scalar its class.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from verax.backend import buffers
from verax.backend.array import ConcreteArray, from_buffer
from verax.backend.buffers import Buffer
from verax.backend.client import local_devices
from verax.backend.placed import PlacedArray
from verax.backend.placed_program import donation_to
from verax.backend.program import Program, buffer_of, device_aval
from verax.backend.pytrees import PyTreeDef, flatten
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import COMPLEX, FLOATING, NUMERIC, stored_dtype
from verax.rules.constants import scalar_of

type Call = Callable[[Sequence[Any]], Any]
type Put = Callable[[Any], Buffer]
type Fetch = Callable[[Sequence[Any]], list[Buffer]]

LEAF = flatten(0)[1]
# By letter as well: two C types of one size have a class each.
NUMPY_SCALARS = frozenset(
    [dtype.type for dtype in NUMERIC] + [np.dtype(c).type for c in "bhilqBHILQ"]
)
SCALARS: frozenset[type] = NUMPY_SCALARS | {bool, int, float, complex}
COMPLEX_SCALARS: frozenset[type] = frozenset([d.type for d in COMPLEX]) | {complex}
REAL_SCALARS: frozenset[type] = frozenset([d.type for d in FLOATING]) | {float}


def kind_of(x: Any) -> object:
    """What a call needs to know of an argument; None if that is a longer question."""
    cls: object = type(x)
    if cls is ConcreteArray or cls is PlacedArray:
        kind: object = x.kind
        return kind
    if cls in SCALARS:
        return cls
    return (x.shape, x.dtype) if cls is np.ndarray else None


def caller(program: Program, out_tree: PyTreeDef, kinds: Sequence[object]) -> Call:
    """What a call with leaves of these kinds does, all looked up beforehand."""
    if program.placement is not None or None in kinds:
        return general_caller(program, out_tree)
    fetch, finish = fetcher(program, kinds), finisher(out_tree)
    execute, out_avals = program.executable.execute, program.out_avals
    donated = program.lowered.donated
    if donated and not all([type(kinds[i]) is ShapedArray for i in donated]):
        return general_caller(program, out_tree)
    if donated:
        how = donation_to(program.lowered)
        return lambda args: finish(
            map(
                from_buffer,
                used_up(execute(fetch(args)), args, donated, how),
                out_avals,
            )
        )
    if fetch is buffers_of and out_tree == LEAF:
        return array_caller(program)
    return lambda args: finish(map(from_buffer, execute(fetch(args)), out_avals))


def general_caller(program: Program, out_tree: PyTreeDef) -> Call:
    """A call that looks at each argument, and gives up those that are donated."""
    run, unflatten = program.run, out_tree.unflatten
    return lambda args: unflatten(run(args))


def array_caller(program: Program) -> Call:
    """The most frequent call: arrays of ours to one array."""
    execute, (aval,) = program.executable.execute, program.out_avals

    def call(args: Sequence[Any]) -> ConcreteArray:
        [out] = execute(
            [x.device_buffer() if (held := x.buffer) is None else held for x in args]
        )
        return from_buffer(out, aval)

    return call


def used_up(
    outs: list[Buffer], args: Sequence[Any], donated: Sequence[int], how: str
) -> list[Buffer]:
    """`outs`, once the arguments whose memory they may have taken are forgotten."""
    for i in donated:
        args[i].end(how)
    return outs


def finisher(out_tree: PyTreeDef) -> Callable[[Iterator[Any]], Any]:
    """What makes the result of its leaves: `unflatten`, or something shorter."""
    if out_tree == LEAF:
        return next
    for build in (tuple, list):
        if out_tree == flatten(build(range(out_tree.num_leaves)))[1]:
            return build
    return out_tree.unflatten


def fetcher(program: Program, kinds: Sequence[object]) -> Fetch:
    """How arguments of these kinds become the buffers that the program takes."""
    constants, positions = program.constants, program.positions
    used = kinds if positions is None else [kinds[i] for i in positions]
    if not any([is_host(kind) for kind in used]):
        if not constants and positions is None:
            return buffers_of
        places = range(len(kinds)) if positions is None else positions
        return lambda args: [*constants, *buffers_of([args[i] for i in places])]
    avals = program.lowered.in_avals
    puts = [putter(kind, aval) for kind, aval in zip(used, avals, strict=True)]
    if positions is None:
        return lambda args: [*constants, *map(operator.call, puts, args)]
    return lambda args: [
        *constants,
        *map(operator.call, puts, [args[i] for i in positions]),
    ]


def buffers_of(args: Sequence[Any]) -> list[Buffer]:
    """The device buffers of arrays of ours."""
    return [x.device_buffer() if (held := x.buffer) is None else held for x in args]


def is_host(kind: object) -> bool:
    """Whether arguments of this kind are values of NumPy or Python."""
    return kind in SCALARS or (type(kind) is tuple and type(kind[0]) is tuple)


def putter(kind: object, aval: ShapedArray) -> Put:
    """How the values of an argument of this kind become a buffer of type `aval`."""
    if not is_host(kind):
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
