"""Floor 2: contractions from which tests draw: their dimensions, their types.

One idea: a dimension of an operand is batch, contracted or free, each has a size of its
own, and the types are all that go together::

    draw_numbers(Random(0))    # dimension numbers, and the shapes of both operands
"""

from collections.abc import Sequence
from random import Random

from verax.ir.avals import Shape
from verax.ir.dtypes import (
    DType,
    bfloat16,
    bool_,
    complex64,
    float16,
    float32,
    int8,
    int32,
    is_bool,
    is_float,
    is_integer,
    uint8,
)
from verax.ops.contraction.precision import (
    Algorithm,
    DotAlgorithm,
    DotAlgorithmPreset,
    DotPrecision,
    Precision,
)
from verax.rules.values.kinds import ANYTHING
from verax.rules.values.shape_samples import draw_sizes

type Pair = tuple[Shape, Shape]
type Numbers = tuple[Pair, Pair]
"""Contracted and batch dimensions, each of the left and of the right."""
MIXED: Sequence[tuple[DType, DType]] = (
    (float32, bfloat16),
    (float16, float32),
    (int8, int32),
    (complex64, float32),
    (uint8, float32),
    (bool_, int32),
)
ALGORITHMS: Sequence[Algorithm] = (
    DotAlgorithm(float32, float32, float32),
    DotAlgorithmPreset.ANY_F8_ANY_F8_F32,
    DotAlgorithmPreset.F16_F16_F32,
    DotAlgorithmPreset.BF16_BF16_F32,
    DotAlgorithmPreset.F32_F32_F32,
    DotAlgorithmPreset.TF32_TF32_F32,
    DotAlgorithmPreset.BF16_BF16_F32_X3,
    DotAlgorithmPreset.F64_F64_F64,
)
"""Those whose sums have more digits than what is summed, or as many."""


def draw_numbers(random: Random) -> tuple[Numbers, tuple[Shape, Shape]]:
    """Up to two dimensions of each of the four sorts, in random order."""
    sizes = draw_sizes(random, 8, (1, 2, 3, 4, 1, 2, 3, 5))
    batch, contracted, *free = (
        [sizes.pop() for _ in range(random.choice((0, 1, 1, 2)))] for _ in range(4)
    )
    places, shapes = [], []
    for own in free:
        pool = [*batch, *contracted, *own]
        order = random.sample(range(len(pool)), len(pool))
        shapes.append(tuple(pool[order.index(i)] for i in range(len(pool))))
        places.append(order)
    b, c = len(batch), len(batch) + len(contracted)
    (left, right) = places
    numbers = (
        (tuple(left[b:c]), tuple(right[b:c])),
        (tuple(left[:b]), tuple(right[:b])),
    )
    return numbers, (shapes[0], shapes[1])


def draw_dtypes(random: Random) -> tuple[DType, DType]:
    """Twice the same, mostly."""
    if random.random() < 0.15:
        x, y = random.choice(MIXED)
        return random.choice(((x, y), (y, x)))
    dtype = random.choice(ANYTHING.samples())
    return dtype, dtype


def draw_precision(
    random: Random, x: DType, y: DType
) -> tuple[DotPrecision, DType | None]:
    """How exactly to multiply, and in what to sum up, where there is a choice."""
    pair = Precision.HIGHEST, Precision.DEFAULT
    precision = pair if random.random() < 0.2 else None
    if x != y or is_bool(x) or not (is_float(x) or is_integer(x)):
        return precision, None
    if is_float(x) and x.itemsize <= 4 and random.random() < 0.25:
        return random.choice(ALGORITHMS), None
    small = x.itemsize < 4 and random.random() < 0.5
    return precision, (float32 if is_float(x) else int32) if small else None
