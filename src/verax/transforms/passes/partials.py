"""Floor 3: what is computed only to be reduced is reduced in parts, side by side.

XLA gives a sum of floats, with the function of elements before it, to a library that
runs one operation after the other; what that lacks is stored before it is reduced, and
what it does not reduce is so one element at a time, but for columns of integers. A
loop over parts of a dimension computes and joins several elements at a time, up to
sixteen, and the reduction reads a sixteenth; in four parts::

    { lambda ; a:f32[8000,100]. let b = abs a; c = reduce_sum[axes=(0,)] b in (c,) }
    { lambda ; a:f32[8000,100]. let b = abs a; p q r s = split[axis=0] b;
        t = add p q; u = add r s; v = add t u; w = optimization_barrier v;
        c = reduce_sum[axes=(0,)] w in (c,) }

Sums are rounded in another order, in which fewer numbers follow each other.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import bfloat16, float16, float32, float64, is_float
from verax.ir.jaxpr import NO_PARAMS, Atom, Eqn, Jaxpr, Primitive, Var
from verax.ops.calls.checkpoint import BARRIER, optimization_barrier_p
from verax.ops.elementwise.arith import IntegerPowParams, mul_p
from verax.ops.elementwise.convert import convert_element_type_p
from verax.ops.structure.joining import split
from verax.ops.structure.shape import BroadcastInDimParams, TransposeParams
from verax.rules.families.reducer import ReduceParams
from verax.rules.rows.builder import program
from verax.rules.rows.row import Row, SomeRow, Work, traits_of
from verax.rules.values.array import Array
from verax.rules.values.memo import asked, pure, recall
from verax.transforms.engine.partial_eval import variables
from verax.transforms.passes.kernels import write_body
from verax.transforms.passes.outline import with_eqns, with_subjaxprs
from verax.transforms.passes.pieces import computes
from verax.transforms.passes.transposes import Readers, readers_of

LARGE: Final = 1 << 17
"""Elements from which hundreds of runs gain what the loop takes to compile."""
PARTS: Final = 8
"""So many parts at most: the loop has the operations before it as often."""
BARE: Final = 16
"""So many where there are none, and the loop joins what lies in memory."""
RUN: Final = 128
"""So many elements that follow each other are worth a loop over parts of them."""
MOST: Final = 64
"""So many operations make a loop at most, for each is written for every part."""
LIBRARY: Final = frozenset((float32, float64, bfloat16))
"""What XLA's library for reductions knows of the types of numbers."""
SLOW: Final = 4
"""An operation like `exp` counts as so many."""
SQUARE: Final = 2
MOVES: Final = (BroadcastInDimParams, TransposeParams)


def with_partial_reductions(jaxpr: Jaxpr) -> Jaxpr:
    """The program with reductions in parts, nested jaxprs included.

    Contract: inputs, output types and effects are kept, and values but for the order in
    which sums are rounded.
    """
    return recall(parted_once, jaxpr, jaxpr)


@pure(1 << 10)
def parted_once(jaxpr: Jaxpr) -> Jaxpr:
    """`with_partial_reductions`, without its memo."""
    return with_eqns(jaxpr, parted(jaxpr.eqns, jaxpr.outvars, variables(jaxpr))[0])


def parted(
    eqns: Sequence[Eqn], outvars: Sequence[Atom], size: int
) -> tuple[Sequence[Eqn], int]:
    """The equations with reductions in parts, and how many variables there are.

    There were `size`, which keep their numbers.
    """
    eqns = with_subjaxprs(eqns, with_partial_reductions)
    if not any([traits_of(eqn.primitive).joined_by for eqn in eqns]):
        return eqns, size
    readers = readers_of(eqns, outvars)
    functions: dict[int, Eqn] = {}
    out: list[Eqn] = []
    for eqn in eqns:
        body = parts_of(eqn, functions, readers)
        if body is not None:
            size = write_body(body, eqn, size, out)
            continue
        if computes(eqn) or isinstance(eqn.params, MOVES):
            functions[eqn.outvars[0].index] = eqn
        out.append(eqn)
    return out, size


def parts_of(eqn: Eqn, functions: Mapping[int, Eqn], readers: Readers) -> Jaxpr | None:
    """A reduction in parts, if they are worth it.

    `functions` are the equations before it that compute elements, repeat or transpose
    them, by what they return. XLA reduces what is transposed as it lies.
    """
    row, p = eqn.primitive, eqn.params
    join = traits_of(row).joined_by
    if join is None or not isinstance(p, ReduceParams):
        return None
    (a,) = eqn.invars
    if type(a) is not Var or a.aval.symbolic or a.aval.size < LARGE:
        return None
    chain: Sequence[Eqn] = ()
    if a.index in functions:
        function = functions[a.index]
        if len(readers[a.index]) > 1 or isinstance(function.params, TransposeParams):
            return None
        chain = chain_of(function, functions)
    loop = [one for one in chain if computes_all(one, a.aval)]
    axis = axis_of_parts(p, a.aval)
    if axis is None or is_fast(join, p, loop, a.aval):
        return None
    if computes_for_rows(chain, a.aval):
        return None
    most = min(PARTS, MOST // effort(loop)) if loop else BARE
    count = parts_without_rest(min(most, a.aval.shape[axis]), a.aval.shape[axis])
    assert isinstance(row, Row)
    return asked(in_parts, p, row, p, a.aval, count) if count > 1 else None


def parts_without_rest(most: int, size: int) -> int:
    """So many equal parts, unless there would be half of `most` or fewer.

    What is left over takes a loop of its own.

    >>> parts_without_rest(8, 300), parts_without_rest(8, 523)
    (6, 8)
    """
    counts = range(most, most // 2, -1)
    return next((count for count in counts if size % count == 0), most)


def axis_of_parts(p: ReduceParams, aval: ShapedArray) -> int | None:
    """The first dimension that is reduced and has enough elements, if there is one.

    What lies behind it in memory is one run, and a loop reads each part of the run from
    its beginning to its end.
    """
    shape = aval.shape
    axes = [i for i in p.axes if shape[i] > 1 and prod(shape[i:]) >= RUN]
    return min([i for i in axes if shape[i] >= PARTS] or axes, default=None)


def chain_of(eqn: Eqn, functions: Mapping[int, Eqn]) -> Sequence[Eqn]:
    """The operations of a loop over what an equation returns, `MOST` at most."""
    chain, seen = [eqn], {eqn.outvars[0].index}
    for one in chain:
        inner = () if isinstance(one.params, TransposeParams) else one.invars
        for a in inner:
            if type(a) is Var and a.index in functions and a.index not in seen:
                seen.add(a.index)
                chain.append(functions[a.index])
        if len(chain) >= MOST:
            break
    return chain[:MOST]


def computes_all(eqn: Eqn, aval: ShapedArray) -> bool:
    """Whether the equation computes as many elements as `aval` has."""
    whole = eqn.outvars[0].aval.size == aval.size
    return whole and computes(eqn) and not traits_of(eqn.primitive).view


def computes_for_rows(chain: Sequence[Eqn], aval: ShapedArray) -> bool:
    """Whether something is computed for each row of `aval` and repeated along it.

    XLA computes it again for each element of a loop over parts.
    """
    sizes = [one.outvars[0].aval.size for one in chain if computes(one)]
    return any([1 < n < aval.size for n in sizes]) and any(map(is_row_repeated, chain))


def is_row_repeated(eqn: Eqn) -> bool:
    """Whether several elements are each repeated along the last dimension."""
    p = eqn.params
    if not isinstance(p, BroadcastInDimParams) or eqn.invars[0].aval.size == 1:
        return False
    last, dims = len(p.shape) - 1, p.broadcast_dimensions
    return last not in dims or eqn.invars[0].aval.shape[dims.index(last)] == 1


def effort(loop: Sequence[Eqn]) -> int:
    """How many operations there are, of which some count as several."""
    return sum([SLOW if is_slow(eqn.primitive) else 1 for eqn in loop])


def is_slow(row: Primitive) -> bool:
    """Whether the operation is one like `exp`."""
    return traits_of(row).work is Work.SLOW


def is_left_to_it(row: Primitive) -> bool:
    """Whether a kernel was not written out, for XLA's library has the function."""
    return isinstance(row, Row) and row.kernel is not None and row.kernel.reduced


def is_fast(
    join: Primitive, p: ReduceParams, loop: Sequence[Eqn], aval: ShapedArray
) -> bool:
    """Whether XLA reduces what a loop computes as fast as it is.

    Its library adds floats, and has extremes that lose NaN. Without it, columns of
    integers are reduced with vectors, and all else is not.
    """
    floats = is_float(aval.dtype)
    if floats and aval.dtype not in (float16, float32, float64):
        return True
    if any([is_left_to_it(e.primitive) for e in loop]):
        return True
    dims = [i for i, n in enumerate(aval.shape) if n > 1]
    dtypes = {aval.dtype, *[a.aval.dtype for e in loop for a in e.invars]}
    if dtypes <= LIBRARY and (traits_of(join).summed or p.loses_nan):
        by_rows = dims[0] not in p.axes and dims[-1] in p.axes
        return is_in_library(loop, by_rows)
    return not loop and not floats and dims[-1] not in p.axes


def is_in_library(loop: Sequence[Eqn], by_rows: bool) -> bool:
    """Whether XLA's library for sums is as fast with what is computed before one.

    It converts and squares as it reads, and it has vectors for some functions, of which
    those with kernels were left to it, and which are fast where each row is summed.
    """
    rows = [eqn.primitive for eqn in loop]
    if by_rows or any(map(is_slow, rows)):
        return all([traits_of(row).summed for row in rows]) or converts(loop)
    if len(loop) != 1:
        return not loop
    (eqn,) = loop
    if isinstance(eqn.params, IntegerPowParams):
        return eqn.params.y == SQUARE
    same = len(eqn.invars) == SQUARE and eqn.invars[0] is eqn.invars[1]
    return converts(loop) or (eqn.primitive is mul_p and same)


def converts(loop: Sequence[Eqn]) -> bool:
    """Whether numbers are only converted."""
    return len(loop) == 1 and loop[0].primitive is convert_element_type_p


@pure(1 << 10)
def in_parts(row: SomeRow, p: ReduceParams, aval: ShapedArray, count: int) -> Jaxpr:
    """The reduction of one operand, in parts."""
    axis = axis_of_parts(p, aval)
    join = row.traits.joined_by
    assert axis is not None
    assert isinstance(join, Row)
    part, rest = divmod(aval.shape[axis], count)

    def body(x: Array) -> Sequence[object]:
        pieces = split(x, [part] * count + [rest] * bool(rest), axis)
        (stored,) = optimization_barrier_p.bind(BARRIER, joined(join, pieces[:count]))
        y = row.call(p, stored)
        return (join.call(NO_PARAMS, y, row.call(p, pieces[-1])) if rest else y,)

    return program((aval,), body, "a reduction")


def joined(join: SomeRow, parts: Sequence[Array]) -> Array:
    """What `join` makes of parts, two and two."""
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        odd = parts[-1:] if len(parts) % 2 else []
        parts = [*[join.call(NO_PARAMS, x, y) for x, y in pairs], *odd]
    return parts[0]
