"""Floor 2: `threefry4x32`: a hash of four words of counter under four words of key.

One idea: it is a program of sums, rotations and exclusive ors, compiled as two loops,
since LLVM takes a time exponential in the rounds that it finds in one::

    threefry4x32(keys, counters)   # four arrays uint32[n]

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011.
"""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from random import Random

import numpy as np

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import uint32
from verax.ir.jaxpr import Jaxpr
from verax.ops.elementwise.arith import add
from verax.ops.elementwise.bits import (
    bitwise_or,
    bitwise_xor,
    shift_left,
    shift_right_logical,
)
from verax.ops.random.threefry import APART, HashParams, alike
from verax.ops.random.threefry_host import PARITY
from verax.rules.families.elementwise import batch_elementwise, common_shape
from verax.rules.families.linear import zero_jvp
from verax.rules.rows.builder import program
from verax.rules.rows.eager_costs import large
from verax.rules.rows.emitter import Emitter, Operand, apart
from verax.rules.rows.row import Row, Rows, Sample
from verax.rules.rows.type_shardings import axis_by_axis
from verax.rules.values.array import Array
from verax.rules.values.memo import pure

type Words = Sequence[Array]

WORDS = 4
ROTATIONS = (
    *((10, 26), (11, 21), (13, 27), (23, 5)),
    *((6, 20), (17, 11), (25, 10), (18, 20)),
)
HALVES = (range(10), range(10, 20))
"""The rounds of each loop."""


def typing_of_words(
    p: HashParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    if len(avals) != 2 * WORDS or any(aval.dtype != uint32 for aval in avals):
        raise TypeError(
            "threefry4x32 takes eight uint32 arrays (four words of key, four of "
            f"counter), not {', '.join(map(str, avals))}"
        )
    return (ShapedArray(common_shape("threefry4x32", avals), uint32),) * WORDS


def rounds(which: range, *words: Array) -> Words:
    """Some rounds on a state, the last four of the words; the first are the key.

    A part of the key is added before the first round and after each four.
    """
    key, state = words[:WORDS], list(words[WORDS:])
    parts = (*key, bitwise_xor(reduce(bitwise_xor, key), np.uint32(PARITY)))
    if which[0] == 0:
        state = list(map(add, state, key))
    for i in which:
        # The second words of both pairs change places in every other round.
        ends = (1, 3) if i % 2 == 0 else (3, 1)
        for at, end, by in zip(
            (0, 2), ends, ROTATIONS[i % len(ROTATIONS)], strict=True
        ):
            state[at] = add(state[at], state[end])
            state[end] = bitwise_xor(state[at], rotated(state[end], by))
        if i % WORDS == WORDS - 1:
            number = i // WORDS + 1
            due = [parts[(number + place) % len(parts)] for place in range(WORDS)]
            state = list(map(add, state, due))
            state[-1] = add(state[-1], np.uint32(number))
    return state


def rotated(x: Array, by: int) -> Array:
    """The bits of words, moved to the left and in again from the right."""
    left = shift_left(x, np.uint32(by))
    return bitwise_or(left, shift_right_logical(x, np.uint32(32 - by)))


def composed_rounds(p: HashParams, *words: Array) -> Words:
    """All rounds."""
    half = rounds(HALVES[0], *words)
    return rounds(HALVES[1], *words[:WORDS], *half)


@pure(256)
def half_of(which: range, *avals: ShapedArray) -> Jaxpr:
    """The rounds of one loop as a program."""
    body: Callable[..., Words] = partial(rounds, which)
    return program(avals, body)


def lower_rounds(
    e: Emitter, p: HashParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """Two functions that calls of these types share, and nothing fused with them."""
    words = [*xs]
    for which in HALVES:
        made = e.call(half_of(which, *[x.aval for x in words]), words, "threefry4x32")
        words[WORDS:] = apart(e, made)
    return [
        e.broadcast(y, out.shape, ()) if y.aval != out else y
        for y, out in zip(words[WORDS:], outs, strict=True)
    ]


def draw_words(random: Random) -> Sample[HashParams]:
    shape = tuple(random.choice((0, 1, 3)) for _ in range(random.randint(0, 2)))
    avals = [
        ShapedArray(() if random.random() < 0.4 else shape, uint32)
        for _ in range(2 * WORDS)
    ]
    return Sample(APART, tuple(avals))


threefry4x32_p: Row[HashParams] = Row(
    "threefry4x32",
    HashParams,
    typing=typing_of_words,
    composition=composed_rounds,
    jvp=zero_jvp(lambda: threefry4x32_p),
    batch=lambda engine, p, size, xs, axes: alike(
        *batch_elementwise(engine, threefry4x32_p, p, size, xs, axes)
    ),
    lower=lower_rounds,
    draw=draw_words,
    costly=large,
    multiple_results=True,
    sharding=axis_by_axis,
)


def threefry4x32(key: Words, counter: Words) -> Words:
    """The hash of four words of counter under four words of key, elementwise."""
    return threefry4x32_p.bind(APART, *key, *counter)


ROWS: Rows = (threefry4x32_p,)
