"""What operations of StableHLO and HLO cost, read off their text (floor 6).

Both forms are alike: a name, operands and results with their types, and attributes.
The estimates are those of equations, so that stages can be compared: two operations
for each multiplication of a product, one for each element elsewhere, and bytes alone
for what moves data. What the text does not say, as of a library's function, is that
of the rows it came from::

    fill_costs(rows, operations, rows_before)
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import log2, prod
from types import MappingProxyType
from typing import Final

from attrs import frozen

from verax.explorer.rows.row import EQUATION, HEAD, Row
from verax.ir.records import ReprMixin

ARRAY: Final = re.compile(
    r"tensor<(?P<sizes>(?:[\d?]+x)*)(?P<pair>complex<)?(?P<kind>[a-z]+\d\w*)"
    r"|\b(?P<name>[a-z]+\d*\w*)\[(?P<shape>[\d,<=]*)\]"
)
BITS: Final = re.compile(r"[a-z](\d+)")
CONTRACTED: Final = re.compile(r"lhs_contracting_dim\w* ?= ?[\[{]([\d, ]*)[\]}]")
KERNEL: Final = re.compile(r"x\[([^\]]*)\]->|_(\w+)->")
WINDOW: Final = re.compile(r"window_dimensions = array<i64: ([\d, ]+)>|size=([\dx]+)")
SORTED: Final = re.compile(r"dimensions? ?= ?\{?(\d+)")
LENGTHS: Final = re.compile(r"fft_length ?= ?(?:array<i64: |\{)([\d, ]+)")
DIGITS: Final = re.compile(r"\d+")
ONE_TRIP: Final = "costs are of one trip"


@frozen(repr=False)
class Array(ReprMixin):
    """The type of an array; None for sizes that are not known."""

    shape: tuple[int, ...] | None
    width: int

    @property
    def size(self) -> int:
        """The number of elements."""
        return 0 if self.shape is None else prod(self.shape)

    @property
    def bytes(self) -> int:
        """The bytes that it takes in memory."""
        return self.size * self.width


@frozen(eq=False, repr=False)
class Operation(ReprMixin):
    """An operation as its text says it.

    Attributes:
        name: without its dialect, words joined by `_`.
        operands: names, which may occur more than once.
        ins: the types of the operands.
        outs: the types of the results.
        attributes: the rest of the text.
        trips: how often what is inside runs each time; None if the text does not say.
        callee: the function that runs, if its rows stand elsewhere.
        moved: the bytes moved, where they do not follow from the types.
    """

    name: str
    operands: tuple[str, ...] = ()
    ins: tuple[Array, ...] = ()
    outs: tuple[Array, ...] = ()
    attributes: str = ""
    trips: float | None = 1.0
    callee: str = ""
    moved: float | None = None


type Count = Callable[[Operation], float]


def arrays(text: str) -> tuple[Array, ...]:
    """The types of arrays in a text, in order."""
    return tuple([array(match) for match in ARRAY.finditer(text)])


class Types:
    """Types in texts, each text read once: a program has few."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[Array, ...]] = {}

    def of(self, text: str) -> tuple[Array, ...]:
        """The types of arrays in a text, in order."""
        entry = self.known.get(text)
        if entry is None:
            entry = self.known[text] = arrays(text)
        return entry


def array(match: re.Match[str]) -> Array:
    """A type of StableHLO or HLO."""
    kind = match["kind"] or match["name"]
    sizes = (match["sizes"] or match["shape"] or "").replace("x", ",")
    bits = BITS.search(kind)
    width = max(1, int(bits[1]) // 8) if bits is not None else 1
    width *= 2 if match["pair"] else 1
    if "?" in sizes or "<" in sizes:
        return Array(None, width)
    return Array(tuple(map(int, filter(None, sizes.split(",")))), width)


def numbers(pattern: re.Pattern[str], text: str) -> list[int]:
    """The numbers in an attribute; none if it is not there."""
    match = pattern.search(text)
    listed = "" if match is None else next(filter(None, match.groups()), "")
    return [int(word) for word in DIGITS.findall(listed)]


def named[T](count: T, names: str) -> dict[str, T]:
    """One rule for several operations."""
    return dict.fromkeys(names.split(), count)


def nothing(op: Operation) -> float:
    """No operation: data is moved, or only seen in another way."""
    return 0.0


def each_result(op: Operation) -> float:
    """One operation for each element of the result."""
    return float(op.outs[0].size)


def each_operand(op: Operation) -> float:
    """One operation for each element of the first operand."""
    return float(op.ins[0].size)


def each_update(op: Operation) -> float:
    """One operation for each element that is scattered."""
    return float(op.ins[-1].size)


def product(op: Operation) -> float:
    """Two operations for each multiplication of a product of matrices."""
    shape = op.ins[0].shape or ()
    contracted = numbers(CONTRACTED, op.attributes)
    return 2.0 * op.outs[0].size * prod([shape[axis] for axis in contracted])


def convolution(op: Operation) -> float:
    """Two operations for each multiplication, those with padding included."""
    kernel, result = op.ins[1], KERNEL.search(op.attributes)
    labels = "" if result is None else (result[1] or result[2]).replace(", ", "")
    place = labels.find("o")
    count = (kernel.shape or (1,))[place] if place >= 0 else 1
    return 2.0 * op.outs[0].size * kernel.size / max(1, count)


def windows(op: Operation) -> float:
    """One operation for each element of each window."""
    return float(op.outs[0].size * prod(numbers(WINDOW, op.attributes)))


def spread_windows(op: Operation) -> float:
    """One operation for each element of the window of each element that is spread."""
    return float(op.ins[1].size * prod(numbers(WINDOW, op.attributes)))


def sorting(op: Operation) -> float:
    """The comparisons of a sort, `n log2 n` for each row."""
    shape = op.ins[0].shape or (1,)
    axis = next(iter(numbers(SORTED, op.attributes)), len(shape) - 1)
    return op.ins[0].size * log2(max(2, shape[axis]))


def fourier(op: Operation) -> float:
    """`5 n log2 n` operations for each transform of size n."""
    size = max(op.ins[0].size, op.outs[0].size)
    return 5.0 * size * log2(max(2, prod(numbers(LENGTHS, op.attributes))))


def factorisation(op: Operation) -> float:
    """A Cholesky factorisation of n x n matrices: `n^3 / 3` operations."""
    return op.ins[0].size * (op.ins[0].shape or (0,))[-1] / 3


def substitution(op: Operation) -> float:
    """A multiplication and a sum for each element of the triangle and each column."""
    return float((op.ins[0].shape or (0,))[-1] * op.ins[1].size)


ELEMENTWISE: Final = (
    "abs add and atan2 cbrt ceil clamp compare complex convert cosine "
    "count_leading_zeros divide erf exponential exponential_minus_one floor is_finite "
    "log log_plus_one logistic maximum minimum multiply negate not or popcnt power "
    "reduce_precision remainder round_nearest_afz round_nearest_even rsqrt select "
    "shift_left shift_right_arithmetic shift_right_logical sign sine sqrt subtract tan "
    "tanh xor acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf_inv "
    "erfc is_inf is_neg_inf is_pos_inf lgamma next_after polygamma sinh square zeta"
)
VIEWS: Final = frozenset(
    [
        "add_dependency",
        "after_all",
        "bitcast",
        "constant",
        "custom_sharding",
        "get_tuple_element",
        "manual_computation",
        "optimization_barrier",
        "parameter",
        "partition_id",
        "replica_id",
        "reshape",
        "return",
        "sharding_constraint",
        "tuple",
    ]
)
"""Operations that move no byte."""
MOVES: Final = (
    "all_gather all_to_all bitcast_convert broadcast broadcast_in_dim "
    "collective_permute concatenate copy copy_done copy_start dynamic_broadcast_in_dim "
    "dynamic_gather dynamic_iota dynamic_pad dynamic_reshape dynamic_slice "
    "dynamic_update_slice gather get_dimension_size imag iota pad real "
    "real_dynamic_slice reverse slice transpose"
)
RULES: Final[Mapping[str, Count]] = MappingProxyType(
    {
        **named(each_result, ELEMENTWISE),
        **dict.fromkeys(VIEWS, nothing),
        **named(nothing, MOVES),
        **named(each_operand, "reduce map all_reduce reduce_scatter"),
        **named(each_update, "scatter"),
        **named(windows, "reduce_window"),
        **named(spread_windows, "select_and_scatter"),
        **named(sorting, "sort top_k topk"),
        **named(product, "dot dot_general"),
        "convolution": convolution,
        "fft": fourier,
        "cholesky": factorisation,
        "triangular_solve": substitution,
    }
)
APPLIED: Final = frozenset(
    [
        "reduce",
        "map",
        "all_reduce",
        "reduce_scatter",
        "scatter",
        "reduce_window",
        "select_and_scatter",
        "sort",
    ]
)
"""Operations that run the program inside for each element, which counts as one."""
PICKED: Final = frozenset(["slice", "dynamic_slice", "real_dynamic_slice", "gather"])
"""Operations that read only as much of their first operand as they return."""
PLACED: Final = MappingProxyType({"dynamic_update_slice": 1, "scatter": -1})
"""Operations that change a part of their first operand in place: where that part is."""
CHOICES: Final = frozenset(["case", "if", "conditional"])
"""Operations that run one of the programs inside."""


def flops_of_operation(op: Operation) -> float | None:
    """The operations of one run; None if its types and name do not say."""
    rule = RULES.get(op.name)
    if any([one.shape is None for one in (*op.ins, *op.outs)]):
        return None
    if rule is None or not op.outs or (rule is not nothing and not op.ins):
        return None if rule is None else 0.0
    return rule(op)


def bytes_of_operation(op: Operation) -> float | None:
    """The bytes that one run reads and writes, each operand once."""
    if op.moved is not None:
        return op.moved
    if op.name in VIEWS:
        return 0.0
    if any([one.shape is None for one in (*op.ins, *op.outs)]):
        return None
    # The first operand is what a part is read from or written to.
    ins = dict(zip(op.operands, op.ins, strict=False))
    first = op.ins[0].bytes if op.ins else 0
    read = sum([one.bytes for one in ins.values()])
    if op.name in PICKED:
        return float(2 * sum([one.bytes for one in op.outs]) + read - first)
    if op.name in PLACED:
        return float(op.ins[PLACED[op.name]].bytes + read - first)
    return float(read + sum([one.bytes for one in op.outs]))


def fill_costs(
    rows: Sequence[Row], operations: Mapping[int, Operation], before: Sequence[Row]
) -> None:
    """Fill in the operations and bytes of all runs of each row.

    A row with programs inside has the sum over them, of a choice that of the dearest.
    `before` are the rows of the stage before.
    """
    held = {row.inside for row in rows}
    runs = runs_of(rows, operations)
    idle = held - set(computing(rows))
    for number, op in operations.items():
        row, times = rows[number], runs[number]
        inside = number in held and op.name not in APPLIED
        if times is None or op.callee:
            continue
        if op.trips is None:
            row.note = ONE_TRIP
        moved = op.moved if inside else bytes_of_operation(op)
        flops = None if inside else flops_of_operation(op)
        if op.name in APPLIED and number in idle:  # each element is only put there
            flops = 0.0
        row.flops = None if flops is None else flops * times
        row.bytes = None if moved is None else moved * times
    borrow(rows, operations, before)
    add_up(rows, operations)


def computing(rows: Sequence[Row]) -> Iterator[int]:
    """The rows right inside which an operation stands."""
    for row in rows:
        if row.kind == EQUATION and row.inside >= 0:
            outer = rows[row.inside]
            yield outer.inside if outer.kind == HEAD else row.inside


def runs_of(
    rows: Sequence[Row], operations: Mapping[int, Operation]
) -> list[float | None]:
    """The number of runs of each row; None for what is applied to elements.

    A function is written before those that call it.
    """
    runs: list[float | None] = [1.0] * len(rows)
    called: dict[str, float] = {}
    for start, end in functions(rows):
        if rows[start].kind == HEAD and rows[start].inside < 0:
            runs[start] = called.get(rows[start].right, 1.0)
        for number in range(start, end):
            outer = rows[number].inside
            if outer >= 0:
                runs[number] = inner_runs(runs[outer], operations.get(outer))
            op, times = operations.get(number), runs[number]
            if op is not None and op.callee and times is not None:
                called[op.callee] = called.get(op.callee, 0.0) + times
    return runs


def inner_runs(outer: float | None, op: Operation | None) -> float | None:
    """The number of runs of what stands right inside a row."""
    if outer is None or op is None:
        return outer
    if op.name in APPLIED:
        return None
    return outer if op.trips is None else outer * op.trips


def functions(rows: Sequence[Row]) -> Iterator[tuple[int, int]]:
    """The start and end of each function of a module, the last one first."""
    end = len(rows)
    for number in range(len(rows) - 1, -1, -1):
        if not number or (rows[number].kind == HEAD and rows[number].inside < 0):
            yield number, end
            end = number


def borrow(
    rows: Sequence[Row], operations: Mapping[int, Operation], before: Sequence[Row]
) -> None:
    """Give functions of libraries what the rows cost that they came from.

    Those that came from the same rows share it.
    """
    alike: dict[tuple[int, ...], list[Row]] = {}
    for number, op in operations.items():
        if op.name == "custom_call" and rows[number].origins:
            alike.setdefault(tuple(rows[number].origins), []).append(rows[number])
    for origins, sharing in alike.items():
        known = [before[i].flops for i in origins]
        flops = [one for one in known if one is not None]
        for row in sharing if flops else ():
            row.flops = sum(flops) / len(sharing)


def add_up(rows: Sequence[Row], operations: Mapping[int, Operation]) -> None:
    """Give rows with programs inside, and heads of functions, the sum over them."""
    sums: dict[int, list[tuple[float, float]]] = {}
    for number in range(len(rows) - 1, -1, -1):
        row, inner = rows[number], sums.pop(number, [])
        flops, moved = row.flops or 0.0, row.bytes or 0.0
        op = operations.get(number)
        if inner:
            together = max if op is not None and op.name in CHOICES else sum
            flops += together([one for one, _ in inner])
            moved += together([one for _, one in inner])
            if row.kind == EQUATION or row.inside < 0:
                row.flops, row.bytes = flops, moved
        known = row.flops is not None or row.bytes is not None
        if row.inside >= 0 and (inner or known):
            sums.setdefault(row.inside, []).append((flops, moved))
