"""Floor 2: calls of gather from which tests draw, for scatter reverses them.

One idea: every dimension of the operand gets a role, the sizes are mostly not empty and
mostly not equal, and a promise about indices is made only where it is sure::

    draw_gather(Random(0), ANYTHING)    # a Sample: params, types, where indices lie
"""

from collections.abc import Mapping, Sequence
from math import prod
from random import Random
from types import MappingProxyType

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import DType, int4, int8, int32, is_inexact, uint4, uint8
from verax.ir.limits import iinfo
from verax.ops.indexing.gather_impl import CLIP, FILL, GatherParams
from verax.ops.indexing.geometry import GatherDimensionNumbers, bounds
from verax.rules.rows.row import REALS, Domain, Sample
from verax.rules.values.kinds import Kind
from verax.rules.values.shape_samples import draw_size

INDICES: Sequence[DType] = (int32, int32, int32, uint8, int8, int4, uint4)
LONG: Mapping[DType, int] = MappingProxyType({int4: 10, uint4: 18, int8: 130})
"""Sizes that indices of few bits do not reach to the end of."""


def draw_gather(
    random: Random, accepts: Kind, counts: Sequence[int] = (1, 2, 3)
) -> Sample[GatherParams]:
    """Any roles of the operand's dimensions, any places of windows, wild indices.

    `counts` are the numbers of index vectors along dimensions that only indices have.
    A part of the calls take whole rows, as NumPy's `take` does.
    """
    taking, index = random.random() < 0.25, random.choice(INDICES)
    paired = [not taking and random.random() < 0.3 for _ in range(random.randint(0, 2))]
    batch = [draw_size(random, (1, 2, 3) if flag else counts) for flag in paired]
    together = [i for i, flag in enumerate(paired) if flag]
    random.shuffle(together)
    roles = draw_roles(random, len(together), taking)
    pairs = iter([batch[i] for i in together])
    shape, sizes = [], []
    for role in roles:
        size, window = draw_window(random, role, taking)
        size = next(pairs) if role == "batching" else size
        shape.append(size)
        sizes.append(min(window, size) if role == "batching" else window)
    likely = {"collapsed": 0.9 + taking, "window": 0.6 - taking, "batching": 0.0}
    mapped = [d for d, role in enumerate(roles) if random.random() < likely[role]]
    random.shuffle(mapped)
    if mapped and random.random() < (0.6 if index in LONG else 0.1):
        shape[mapped[0]] = LONG.get(index, 130)
    windows = roles.count("window")
    offsets = sorted(random.sample(range(len(batch) + windows), windows))
    if taking and random.random() < 0.7:
        # As `take` has it, or nearly so.
        shift = random.choice((len(batch), len(batch), max(0, len(batch) - 1)))
        before = roles.index("collapsed")
        offsets = [i + (i >= before) * shift for i in range(windows)]
    dims = GatherDimensionNumbers(
        offsets,
        [d for d, role in enumerate(roles) if role == "collapsed"],
        mapped,
        [d for d, role in enumerate(roles) if role == "batching"],
        together,
    )
    mode = random.choice(("clip", "fill", "promise_in_bounds"))
    promises = draw_promises(random, dims, batch, max(counts) == 1)
    fill = random.choice((None, 0, 1))
    params = GatherParams(dims, tuple(sizes), *promises, mode, fill)
    indices = ShapedArray((*batch, len(mapped)), index)
    operand = ShapedArray(shape, random.choice(accepts.samples()))
    filled = mode == FILL and fill is None and is_inexact(operand.dtype)
    values = Domain(smooth=False) if filled else REALS
    domain = index_domain(params, operand.shape, index)
    return Sample(params, (operand, indices), (values, domain))


def draw_roles(random: Random, batching: int, taking: bool) -> list[str]:
    """What the dimensions of an operand are for."""
    if taking:
        roles = ["collapsed", *["window"] * random.randint(0, 2)]
    else:
        count = random.choice((0, 1, 2, 2, 3))
        roles = random.choices(("window", "window", "collapsed"), k=count)
        roles += ["batching"] * batching
    random.shuffle(roles)
    return roles


def draw_window(random: Random, role: str, whole: bool) -> tuple[int, int]:
    """The size of a dimension, and that of windows in it."""
    if role != "window":
        return random.choice((1, 2, 4)), 1
    size = draw_size(random, (1, 2, 3, 4, 5))
    if whole or random.random() < 0.3:
        return size, size
    return size, draw_size(random, range(1, size + 1))


def draw_promises(
    random: Random, dims: GatherDimensionNumbers, batch: Sequence[int], always: bool
) -> tuple[bool, bool]:
    """Whether indices are said to be unique, and sorted, where they are in any case.

    They are if there is one index vector, or one for each place of batching dimensions.
    """
    together = dims.start_indices_batching_dims
    alone = all(n <= 1 or i in together for i, n in enumerate(batch))
    ordered = prod(batch) <= 1 or list(together) == sorted(together)
    unique = alone and (always or random.random() < 0.5)
    return unique, alone and ordered and random.random() < 0.5


def index_domain(p: GatherParams, operand: Shape, index: DType) -> Domain:
    """Indices in bounds and around them; in bounds only where that is promised."""
    room, limits = bounds(p.dimension_numbers, operand, p.slice_sizes), iinfo(index)
    upper, bottom, top = min((5, *room)), int(limits.min), int(limits.max)
    if p.mode not in (FILL, CLIP):
        return Domain(0, upper)
    if any(bound >= top for bound in room):
        return Domain(bottom, top, tuple({bottom, 0, 1, top}))
    likely = {-1, upper, upper + 1, 127, *room}
    around = tuple(v for v in sorted(likely) if bottom <= v <= top)
    return Domain(max(bottom, -3), 5, around)
