"""Floor 6: Hypothesis strategies for arrays, calls of rows, and cases.

One idea: what an author would rather exclude is drawn on purpose, and what is plain is
drawn first, so that a counterexample shrinks to ones and zeros unless it must not::

    arrays(ShapedArray((2, 3), float32))      # 1.0, -0.0, inf, 3.4e38, 1e-45, nan
    cases(sin_p, depth=4)                     # a program, and four values per operand
"""

from collections.abc import Sequence
from random import Random
from types import MappingProxyType
from typing import Any

import numpy as np
from hypothesis import strategies as st

from verax.ir.avals import Shape, ShapedArray, finfo, iinfo
from verax.ir.dtypes import (
    DType,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float0,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    is_bool,
    is_complex,
    is_inexact,
    is_integer,
    numpy_dtype,
    real_dtype,
    stored_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from verax.ir.jaxpr import Params
from verax.ops.table import ROWS
from verax.rules.rows.row import REALS, Domain, NDArray, Row, SomeRow, SomeSample
from verax.rules.values.memo import pure
from verax.rules.values.state import STATE
from verax.verify.cases.case import Case, double_precision, traced
from verax.verify.cases.growing import (
    Pool,
    domains_of,
    drawn,
    pool_of,
    random_steps,
    weakened,
)
from verax.verify.cases.nested import DRAWS
from verax.verify.cases.tolerance import widened

type Strategy[T] = st.SearchStrategy[T]

PLAIN = (1.0, 0.0, 2.0, -1.0, 0.5, 3.0, -2.0, 0.25, -0.5)
SATURATED = (20.0, -20.0, 90.0, -90.0, 800.0, -800.0, 1e4, -1e4, 1e30, -1e30)
FULL_DRAW = 16
"""Up to so many elements are drawn one by one; more are made of as many values."""
SEEDS = st.integers(0, (1 << 16) - 1)
DTYPES_BY_KIND = MappingProxyType(
    {
        "float": (float32, float16, bfloat16, float64),
        "integer": (int32, uint8, int8, uint32, int16, uint16, int64, uint64),
        "bool": (bool_,),
        "complex": (complex64, complex128),
    }
)
REACH = 1e3
"""Differences are taken at numbers up to this size."""
ATTEMPTS = 4
"""So often a call without tangents is drawn again where tangents are the subject."""
WEAK = 0.25
"""The share of weak operands."""
BODY = 3
"""Equations of a body, at most."""
STANDARD = pool_of(
    [row for row in ROWS if row.evaluate and (row.draw is not None or row in DRAWS)]
)
"""The pool of rows for the bodies of calls."""


def arrays(aval: ShapedArray, domain: Domain = REALS) -> Strategy[NDArray]:
    """Arrays of the type, with values of `domain` and the points where rules go wrong.

    Those are zeros of both signs, ties, infinities, NaN (only if the domain has no
    bounds), saturation, subnormals, the largest and smallest numbers, and
    `domain.special`.
    """
    dtype = stored_dtype(aval.dtype)
    if dtype == float0:
        return st.just(np.zeros(aval.shape, float0))
    parts = 2 if is_complex(dtype) else 1
    count = aval.size * parts
    drawn = st.lists(
        elements(dtype, domain), min_size=min(count, FULL_DRAW), max_size=FULL_DRAW
    )
    return drawn.map(lambda values: filled(values[:count], aval.shape, dtype))


def filled(
    values: Sequence[float], shape: Sequence[int], dtype: np.dtype[np.generic]
) -> NDArray:
    """An array of a shape from some values, which are repeated out of step."""
    count = int(np.prod(shape)) * (2 if is_complex(dtype) else 1)
    place = np.arange(count)
    known = max(len(values), 1)
    # The second term keeps long axes from seeing the same values at every index.
    order = (place + place // known * 5) % known
    part = numpy_dtype(real_dtype(dtype))
    kind = object if is_integer(dtype) else np.float64
    with np.errstate(all="ignore"):
        flat: NDArray = np.array(values or [0], kind)[order].astype(part)
    return (flat.view(dtype) if is_complex(dtype) else flat).reshape(shape)


@pure(1024)
def elements(dtype: DType, domain: Domain) -> Strategy[Any]:
    """Elements of an array, as Python numbers; the parts of complex ones."""
    if is_bool(dtype):
        return st.booleans()
    if is_integer(dtype):
        return integers(dtype, domain)
    return floats(dtype, domain)


def integers(dtype: DType, domain: Domain) -> Strategy[int]:
    """Integers of the dtype within the domain: small ones, any, and the extremes."""
    limits = iinfo(dtype)
    bottom, top = int(limits.min), int(limits.max)
    low = max(bottom, int(np.ceil(domain.low))) if np.isfinite(domain.low) else bottom
    high = min(top, int(np.floor(domain.high))) if np.isfinite(domain.high) else top
    special = [int(x) for x in domain.special if np.isfinite(x) and bottom <= x <= top]
    around = [low, high, *special, -1, 0, 1, 2, 7, bottom + 1, top - 1]
    inside = [x for x in dict.fromkeys(around) if low <= x <= high or x in special]
    near_low, near_high = max(low, -4), min(high, 4)
    small = (near_low, near_high) if near_low <= near_high else (low, low)
    return st.one_of(
        st.integers(*small), st.sampled_from(inside), st.integers(low, high)
    )


def floats(dtype: DType, domain: Domain) -> Strategy[float]:
    """Floats within the domain: plain ones, fractions of 64, and special points."""
    low, high = domain.low, domain.high
    special = [x for x in special_points(dtype, domain) if low <= x <= high]
    special += domain.special
    plain = [x for x in PLAIN if low <= x <= high]
    bottom, top = nearby(domain)
    steps = (int(np.ceil(bottom * 64)), int(np.floor(top * 64)))
    if steps[1] - steps[0] > 16:
        generic = st.integers(*steps).map(lambda i: i / 64)
    else:
        generic = st.integers(0, 64).map(lambda i: bottom + (top - bottom) * i / 64)
    pools = [
        st.sampled_from(pool) for pool in (plain, special, meeting(domain)) if pool
    ]
    return st.one_of(generic, *pools)


def special_points(dtype: DType, domain: Domain) -> list[float]:
    """The special floats of the dtype, and the points where functions turn."""
    limits = finfo(dtype)
    largest = float(limits.max)
    out = [-0.0, np.inf, -np.inf, largest, -largest]
    for name in ("tiny", "smallest_subnormal", "eps"):
        out += [float(getattr(limits, name)), -float(getattr(limits, name))]
    out += [1 - float(limits.eps), 1 + float(limits.eps), 0.5, -0.5, 1.5, 2.5, -2.5]
    out += [x for x in SATURATED if abs(x) <= largest]
    out += [x for x in (domain.low, domain.high) if np.isfinite(x)]
    return [*out, *domain.kinks]


def meeting(domain: Domain) -> list[float]:
    """Points that are so few that two operands have the same: zeros, ends, NaN."""
    ends = (0.0, -0.0, np.inf, 1.0, *domain.special)
    out = [x for x in ends if domain.low <= x <= domain.high]
    free = domain.low == -np.inf and domain.high == np.inf
    return [*out, np.nan] if free else out


def nearby(domain: Domain, reach: float = 8.0) -> tuple[float, float]:
    """A bounded interval within the domain, around zero if that is inside."""
    low, high = max(domain.low, -reach), min(domain.high, reach)
    if low < high:
        return low, high
    if np.isfinite(domain.low):
        return domain.low, min(domain.high, domain.low + reach)
    return domain.high - reach, domain.high


def smooth_arrays(
    aval: ShapedArray, domain: Domain = REALS, place: int = 0
) -> Strategy[NDArray]:
    """Arrays for derivatives: distinct elements, inside the domain, off its kinks.

    `place` tells operands of one call apart, so that no two elements of a call tie.
    """
    if not is_inexact(aval.dtype):
        return arrays(aval, domain)
    count = aval.size * (2 if is_complex(aval.dtype) else 1)
    drawn = st.lists(
        st.integers(0, 4095), min_size=min(count, FULL_DRAW), max_size=FULL_DRAW
    )
    return drawn.map(lambda steps: generic(steps, aval, domain, place))


def generic(
    steps: Sequence[int], aval: ShapedArray, domain: Domain, place: int
) -> NDArray:
    """The array of `smooth_arrays` for integers below 4096."""
    count = aval.size * (2 if is_complex(aval.dtype) else 1)
    low, high = nearby(domain, 3.0)
    width = high - low
    index = np.arange(count)
    coarse = np.array(steps or [0])[index % max(len(steps), 1)] / 4096
    # Multiples of the golden ratio are never close to each other modulo one.
    fine = ((index + 1 + 101 * place) * 0.6180339887498949) % 1
    x = low + width * (0.03 + 0.8 * coarse + 0.14 * fine)
    for kink in domain.kinks:
        x = np.where(np.abs(x - kink) < 0.01 * width, x + 0.02 * width, x)
    dtype = numpy_dtype(aval.dtype)
    part = x.astype(numpy_dtype(real_dtype(dtype)))
    return (part.view(dtype) if is_complex(dtype) else part).reshape(aval.shape)


def samples(
    row: SomeRow, inexact: bool = False, pool: Pool = STANDARD
) -> Strategy[SomeSample]:
    """Calls of a row, as its draw makes them, some with weak types.

    Half of them come from choices that Hypothesis can shrink, half from a seed: choices
    that shrink well lean to the small, and some mistakes need the middle. `inexact`
    prefers calls with an operand that has a tangent, and asks for double precision in
    bodies, which are made of the rows in `pool`.

    Raises:
        ValueError: the row has no draw.
    """
    if row.draw is None and row not in DRAWS:
        raise ValueError(f"the row {row.name} has no draw, so it cannot be sampled")

    def one(random: Random) -> SomeSample:
        inside = random_steps(random, pool, BODY, 1) if row in DRAWS else ()
        with double_precision(inexact):
            return drawn(row, random, pool, inside, wide=inexact)

    def compute(random: Random) -> SomeSample:
        sample = one(random)
        for _ in range(ATTEMPTS if inexact else 0):
            if any(is_inexact(aval.dtype) for aval in sample.avals):
                break
            sample = one(random)
        weak = row not in DRAWS and random.random() < WEAK
        return weakened(row, sample, random) if weak else sample

    shrinking = st.randoms(use_true_random=False)
    return st.one_of(shrinking, SEEDS.map(Random)).map(compute)


def cases(
    row: SomeRow,
    *,
    depth: int = 1,
    wide: bool = False,
    tied: bool = False,
    given: Strategy[SomeSample] | None = None,
) -> Strategy[Case]:
    """Calls of `row` with `depth` values per operand.

    `wide` asks for what derivatives need: inexact operands in double precision, and
    values at which the row is smooth; with `tied`, values at which it may not be. Calls
    are `given`, or come from the row's `draw`.
    """

    calls = samples(row, wide) if given is None else given

    @st.composite
    def one(draw: st.DrawFn) -> Case:
        sample = draw(calls)
        domains = domains_of(row, sample)
        if wide:
            sample = widened(row, sample)
        stacks = [
            draw(stack(aval, domain, depth, i, wide, tied))
            for i, (aval, domain) in enumerate(zip(sample.avals, domains, strict=True))
        ]
        smooth = tuple([domain.smooth for domain in domains])
        return Case(traced(row, sample), tuple(stacks), draw(SEEDS), smooth, row)

    return one()


@pure(1024)
def stack(
    aval: ShapedArray,
    domain: Domain,
    depth: int,
    place: int,
    wide: bool,
    tied: bool = False,
) -> Strategy[NDArray]:
    """`depth` values of one operand along a new first dimension."""
    full = aval.with_shape((depth, *aval.shape))
    if tied:
        return tied_arrays(full, domain)
    return smooth_arrays(full, domain, place) if wide else arrays(full, domain)


def tied_arrays(aval: ShapedArray, domain: Domain = REALS) -> Strategy[NDArray]:
    """Arrays of few different numbers, where functions have their kinks.

    Zeros of both signs, ties, the ends and the special points of the domain: numbers of
    moderate size, for differences are taken there.
    """
    if not is_inexact(aval.dtype):
        return arrays(aval, domain)
    values = tied_values(domain)
    count = aval.size * (2 if is_complex(aval.dtype) else 1)
    drawn = st.lists(
        st.sampled_from(values), min_size=min(count, FULL_DRAW), max_size=FULL_DRAW
    )
    return drawn.map(
        lambda xs: filled(xs[:count], aval.shape, stored_dtype(aval.dtype))
    )


def tied_values(domain: Domain) -> list[float]:
    """The numbers of `tied_arrays`."""
    ends = [x for x in (domain.low, domain.high, *domain.special) if abs(x) <= REACH]
    pool = [x for x in (*PLAIN, -0.0) if domain.low <= x <= domain.high]
    values = list(dict.fromkeys([*pool[:4], *domain.kinks, *ends])) or [domain.low]
    return [*values, -0.0] if 0.0 in values else values


def dtypes(*kinds: str) -> Strategy[DType]:
    """Dtypes that fit `kinds`: "bool", "integer", "float", "complex"; all if none.

    The plain ones come first. 64-bit dtypes are among them only while x64 is on.

    Raises:
        ValueError: there is no such kind.

    """
    unknown = set(kinds) - set(DTYPES_BY_KIND)
    if unknown:
        raise ValueError(
            f"kinds must be among {', '.join(DTYPES_BY_KIND)}, not {unknown.pop()}"
        )
    pool = [d for kind in kinds or DTYPES_BY_KIND for d in DTYPES_BY_KIND[kind]]
    return st.deferred(
        lambda: st.sampled_from([d for d in pool if STATE.enable_x64 or narrow(d)])
    )


def narrow(dtype: DType) -> bool:
    """Whether a dtype is there while x64 is off."""
    return dtype.itemsize < (16 if is_complex(dtype) else 8)


def shapes(max_dims: int = 3, max_side: int = 4) -> Strategy[Shape]:
    """Shapes, empty ones and those without dimensions included."""
    return st.lists(st.integers(0, max_side), max_size=max_dims).map(tuple)


def broadcastable_shapes(
    count: int, max_dims: int = 3, max_side: int = 4
) -> Strategy[tuple[Shape, ...]]:
    """`count` shapes that broadcast against each other: ones and missing dimensions."""

    @st.composite
    def drawn(draw: st.DrawFn) -> tuple[Shape, ...]:
        whole = draw(shapes(max_dims, max_side))
        out = []
        for _ in range(count):
            kept = draw(st.integers(0, len(whole)))
            sides = whole[kept:]
            ones = draw(
                st.lists(st.booleans(), min_size=len(sides), max_size=len(sides))
            )
            out.append(
                tuple(1 if one else n for one, n in zip(ones, sides, strict=True))
            )
        return tuple(out)

    return drawn()


def batched_shapes(shape: Sequence[int], size: int) -> Strategy[tuple[Shape, int]]:
    """`shape` with a dimension of length `size` somewhere, and where it is."""
    plain = tuple(shape)
    return st.integers(0, len(plain)).map(
        lambda axis: ((*plain[:axis], size, *plain[axis:]), axis)
    )


def avals(
    dtype: Strategy[DType] | None = None, shape: Strategy[Shape] | None = None
) -> Strategy[ShapedArray]:
    """Types of arrays; scalars are weak at times."""
    kinds = dtypes() if dtype is None else dtype
    sides = shapes() if shape is None else shape
    return st.builds(
        lambda d, s, weak: ShapedArray(s, d, weak and not s and not is_bool(d)),
        kinds,
        sides,
        st.booleans(),
    )


def indices(
    size: int, shape: Sequence[int] = (3,), dtype: np.dtype[np.generic] = int32
) -> Strategy[NDArray]:
    """Indices into a dimension of length `size`: also negative ones, and outside it."""
    edge = [0, size - 1, size, -1, -size, -size - 1, size + 7]
    limits = iinfo(dtype)
    fit = [i for i in edge if int(limits.min) <= i <= int(limits.max)]
    extremes = [int(limits.min), int(limits.max)]
    one = st.one_of(st.sampled_from(fit), st.sampled_from(extremes))
    count = int(np.prod(shape))
    drawn = st.lists(one, min_size=min(count, FULL_DRAW), max_size=FULL_DRAW)
    return drawn.map(lambda xs: filled(xs[:count], tuple(shape), dtype))


def pytrees(leaves: Strategy[Any], max_leaves: int = 5) -> Strategy[Any]:
    """Containers of leaves: tuples, lists, dicts, None, empty and nested ones."""
    keys = st.sampled_from(("a", "b", "w"))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.lists(inner, max_size=3).map(tuple),
            st.dictionaries(keys, inner, max_size=3),
            st.none(),
        ),
        max_leaves=max_leaves,
    )


def params_of[P: Params](row: Row[P]) -> Strategy[P]:
    """Params of a primitive, as its calls have them.

    Raises:
        ValueError: the row has no `draw`.
    """
    return samples(row).map(lambda sample: sample.params)
