"""Floor 6: cases at the edges, where rules go wrong that are right elsewhere.

One idea: what a draw meets by chance is listed here: near zero and near one at several
distances, at overflow, at poles, near the ends and the kinks of a domain. A row that
computes each element by itself takes the whole list in one call::

    edge_cases(log1p_p)      # f32[185], f64[197], ...: the same for every seed
"""

import math
from collections.abc import Iterator, Sequence
from itertools import product
from random import Random
from typing import Final

import numpy as np
from attrs import evolve

from verax.ir.avals import ShapedArray, finfo, iinfo
from verax.ir.dtypes import (
    DType,
    bfloat16,
    float16,
    float32,
    float64,
    is_bool,
    is_float,
    is_inexact,
    is_integer,
    numpy_dtype,
)
from verax.rules.rows.infer import inferred
from verax.rules.rows.row import Domain, NDArray, Sample, SomeRow, SomeSample
from verax.verify.cases.case import Case, double_precision, traced
from verax.verify.cases.growing import domains_of
from verax.verify.cases.nested import DRAWS

FLOATS: Final = (float32, float64, float16, bfloat16)
"""The dtypes of a row that is compiled at its edges, as far as it takes them."""
DRAWN: Final = 8
"""So many calls of a row are drawn in search of different params and large operands."""
KINDS: Final = 3
"""Calls with so many different params are tried."""
MOST: Final = 1024
"""Elements of a case for the compiler, at most; of more combinations, a sample."""
MOST_WIDE: Final = 128
"""Elements of a case for arithmetic with many digits, at most."""
LEAST: Final = 1e-12
REACH: Final = 1e3
"""Between these sizes and no further, a difference quotient has digits enough."""
ANCHORS: Final = (1.0, math.pi / 2, math.pi, 2 * math.pi, 10.5 * math.pi)
"""Zeros and poles of functions, for a row without a domain of its own."""
SIZES: Final = (0.1, 0.3, 0.7, 2.0, 3.0, 5.0, 10.0, 15.0, 30.0, 50.0, 100.0, 200.0)
LARGE: Final = (500.0, 700.0, 1e3, 1e4, 1e6, 1e10)
ODD: Final = 1.37
"""Powers of two are rounded to themselves and hide what others show."""
HALVINGS: Final = 8
"""So far from the subnormal numbers, half of a number is not taken for zero."""


def edge_points(dtype: DType, domain: Domain, wide: bool = False) -> list[float]:
    """The numbers of a domain near which functions lose digits, overflow or turn.

    With `wide`, those at which a difference quotient can be taken.
    """
    limits = finfo(dtype)
    eps, tiny, top = float(limits.eps), float(limits.tiny), float(limits.max)
    near = [ODD * eps**power for power in (1.0, 0.75, 0.5, 0.25)]
    full = math.log(top)
    sizes = [*near, *SIZES, *LARGE, 0.99 * full, 1.01 * full, ODD * eps**2]
    sizes += [ODD * HALVINGS * tiny, ODD * math.sqrt(tiny)]
    sizes += [math.sqrt(top) / ODD, top / ODD]
    ends = [x for x in (domain.low, domain.high) if np.isfinite(x)]
    anchors = [*ANCHORS, *ends, *domain.kinks, *domain.special]
    around = [
        a + s * max(1.0, abs(a)) * d for a in anchors for d in near for s in SIGNS
    ]
    result = [s * x for x in (*sizes, *ANCHORS, *around) for s in SIGNS]
    result += [0.0, -0.0, math.inf, -math.inf, *anchors]
    with np.errstate(all="ignore"):
        there = [float(x) for x in np.array(result).astype(numpy_dtype(dtype))]
    inside = [
        x for x in there if domain.low <= x <= domain.high and not (0 < abs(x) < tiny)
    ]
    if wide:
        turns = (0.0, *ends, *domain.kinks)
        inside = [
            x
            for x in inside
            if abs(x) <= REACH and min(abs(x - turn) for turn in turns) >= LEAST
        ]
    return list(dict.fromkeys(inside))


SIGNS: Final = (1.0, -1.0)


def edge_cases(
    row: SomeRow, wide: bool = False, given: Sequence[SomeSample] = ()
) -> Iterator[Case]:
    """Calls of a row at the edges of its domain; the same ones each time.

    None for rows with bodies, and for operands that are complex, keys or references.
    """
    if row in DRAWS or (row.draw is None and not given):
        return
    samples = [real for s in given or calls(row) if (real := realistic(row, s))]
    whole = [s for s in samples if by_elements(row, s) is not None]
    if whole:
        for sample in different(whole):
            for dtype in (float64,) if wide else FLOATS:
                yield from stretched(row, sample, dtype, wide)
    elif not wide and samples:
        yield from magnitudes(row, max(samples, key=size_of))


def calls(row: SomeRow) -> list[SomeSample]:
    """A few calls as the row's own draw makes them."""
    assert row.draw is not None
    with double_precision():
        return [row.draw(Random(seed)) for seed in range(DRAWN)]


def size_of(sample: SomeSample) -> int:
    return sum(aval.size for aval in sample.avals if aval.size <= MOST)


def different(samples: Sequence[SomeSample]) -> list[SomeSample]:
    """Calls that differ in more than types, a few."""
    out: list[SomeSample] = []
    for sample in samples:
        if len(out) < KINDS and all(sample.params != s.params for s in out):
            out.append(sample)
    return out


def realistic(row: SomeRow, sample: SomeSample) -> SomeSample | None:
    """The call in single precision, or None if it has nothing real to compute with."""
    return in_dtype(row, sample, float32)


def in_dtype(row: SomeRow, sample: SomeSample, dtype: DType) -> SomeSample | None:
    """The call with floats of one dtype, or None if the row does not take that."""
    avals = sample.avals
    if not any(is_float(a.dtype) for a in avals):
        return None
    if not all(type(a) is ShapedArray and is_plain(a.dtype) for a in avals):
        return None
    changed = [a.with_dtype(dtype if is_float(a.dtype) else a.dtype) for a in avals]
    return taken(row, evolve(sample, avals=tuple(changed)))


def is_plain(dtype: DType) -> bool:
    return is_float(dtype) or is_integer(dtype) or is_bool(dtype)


def taken(row: SomeRow, sample: SomeSample) -> SomeSample | None:
    """The call, if the row has a type rule for it."""
    try:
        inferred(row, sample.params, *sample.avals)
    except Exception:  # the author's code, asked about shapes that it may not know
        return None
    return sample


def shaped(
    row: SomeRow, sample: SomeSample, shape: tuple[int, ...]
) -> SomeSample | None:
    """The call with all operands of one shape, if its results have that, too."""
    avals = tuple([aval.with_shape(shape) for aval in sample.avals])
    result = taken(row, evolve(sample, avals=avals))
    if result is None:
        return None
    outs = inferred(row, result.params, *result.avals)
    return result if all(out.shape == shape for out in outs) else None


def by_elements(row: SomeRow, sample: SomeSample) -> SomeSample | None:
    """The call on scalars, if the row computes each element by itself.

    What takes scalars and vectors alike has no axis along which elements meet.
    """
    if shaped(row, sample, (2,)) is None or shaped(row, sample, (3, 2)) is None:
        return None
    return shaped(row, sample, ())


def stretched(
    row: SomeRow, sample: SomeSample, dtype: DType, wide: bool
) -> Iterator[Case]:
    """One call on all combinations of the operands' edge points, or on some."""
    typed = in_dtype(row, sample, dtype)
    if typed is None:
        return
    domains = domains_of(row, typed)
    points = [
        points_of(aval, domain, wide)
        for aval, domain in zip(typed.avals, domains, strict=True)
    ]
    if not all(points):
        return
    columns = combined(points, MOST_WIDE if wide else MOST)
    full = shaped(row, typed, (len(columns[0]),))
    if full is not None:
        yield case_of(row, full, domains, [np.array(c) for c in columns])


def points_of(aval: ShapedArray, domain: Domain, wide: bool) -> Sequence[float]:
    """The edge points of an operand; of integers, small ones and the ends."""
    if is_inexact(aval.dtype):
        return edge_points(aval.dtype, domain, wide)
    return small_integers(aval, domain)


def small_integers(aval: ShapedArray, domain: Domain) -> list[float]:
    """Small integers of the dtype within the domain; of booleans, both."""
    limits = None if is_bool(aval.dtype) else iinfo(aval.dtype)
    low = 0 if limits is None else max(float(limits.min), domain.low)
    high = 1 if limits is None else min(float(limits.max), domain.high)
    start = min(max(-2.0, low), high)
    return [x for x in np.arange(start, start + 6).tolist() if x <= high]


def combined(points: Sequence[Sequence[float]], most: int) -> list[list[float]]:
    """A column for each operand: all combinations, or `most` of them."""
    if math.prod(map(len, points)) <= most:
        rows = list(product(*points))
    else:
        random = Random(0)
        rows = [tuple(random.choice(pool) for pool in points) for _ in range(most)]
    return [list(column) for column in zip(*rows, strict=True)]


def case_of(
    row: SomeRow,
    sample: SomeSample,
    domains: Sequence[Domain],
    values: Sequence[NDArray],
) -> Case:
    """The case of a call and the values of its operands."""
    with np.errstate(all="ignore"):
        stacks = [
            x.reshape(1, *aval.shape).astype(numpy_dtype(aval.dtype))
            for x, aval in zip(values, sample.avals, strict=True)
        ]
    smooth = tuple([domain.smooth for domain in domains])
    return Case(traced(row, sample), tuple(stacks), 0, smooth, row)


def magnitudes(row: SomeRow, sample: SomeSample) -> Iterator[Case]:
    """Calls of a row whose elements meet, each with operands of one size.

    A sum of tiny and of huge numbers is that of the huge ones.
    """
    domains = domains_of(row, sample)
    limits = finfo(float32)
    tiny, top = math.sqrt(float(limits.tiny)), math.sqrt(float(limits.max))
    for size in (tiny / 64, 1e-4, 1.0, 100.0, top * 64):
        values = [
            at_size(aval, domain, size, place)
            for place, (aval, domain) in enumerate(
                zip(sample.avals, domains, strict=True)
            )
        ]
        yield case_of(row, sample, domains, values)


def at_size(aval: ShapedArray, domain: Domain, size: float, place: int) -> NDArray:
    """Numbers of about one size within the domain; small integers."""
    # Multiples of the golden ratio are never close to each other modulo one.
    part = (np.arange(1, aval.size + 1) * 0.6180339887498949 + 0.1 * place) % 1
    if not is_inexact(aval.dtype):
        pool = np.array(small_integers(aval, domain) or [0.0])
        return np.take(pool, (part * len(pool)).astype(int))
    return np.asarray(np.clip(size * (0.5 + part), domain.low, domain.high))


def element_of(case: Case, index: tuple[int, ...]) -> Case | None:
    """The case of one element, where the row computes each by itself."""
    if case.row is None or len(index) != 1:
        return None
    (eqn,) = case.jaxpr.eqns
    sample = by_elements(case.row, Sample(eqn.params, case.jaxpr.in_avals))
    if sample is None:
        return None
    stacks = tuple([x[:, index[0]] for x in case.stacks])
    return evolve(case, jaxpr=traced(case.row, sample), stacks=stacks)


def without_element(case: Case, index: tuple[int, ...]) -> Case:
    """The case with what its neighbour has in the place of one element."""
    stacks = []
    for x in case.stacks:
        other = x.copy()
        other[:, index[0]] = x[:, index[0] - 1]
        stacks.append(other)
    return evolve(case, stacks=tuple(stacks))
