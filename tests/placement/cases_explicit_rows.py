"""Every row along explicit mesh axes: types, places and values; eight devices."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from random import Random
from typing import Any

import numpy as np
import pytest

import verax
from verax import random as vrandom
from verax.backend.arrays.concrete import from_host
from verax.errors import ShardingTypeError
from verax.ir.avals import ShapedArray, bit_width
from verax.ir.dtypes import is_extended
from verax.ir.forms.parser import parse_closed
from verax.ops.table import ROWS
from verax.rules.rows.infer import inferred
from verax.rules.rows.row import Row, Sample, as_typed
from verax.sharding import AxisType, NamedSharding, PartitionSpec as P
from verax.verify.cases.case import constants_of
from verax.verify.cases.growing import domains_of
from verax.verify.random_programs import random_array

MESH = verax.make_mesh((2, 2), ("x", "y"), (AxisType.Explicit,) * 2)
ATTEMPTS = 300

TOLERANCES = {
    "bfloat16": (2e-2, 1e-4),
    "float16": (2e-3, 1e-4),
    "float32": (1e-5, 1e-5),
    "complex64": (1e-5, 1e-5),
    "float64": (1e-12, 1e-12),
    "complex128": (1e-12, 1e-12),
}
"""Relative and absolute: parts are summed in another order than the whole."""
WITHOUT = {
    "iota": "takes no operands",
    "dim_as_value": "takes no operands",
    "platform_index": "takes no operands",
    "axis_index": "takes no operands",
    "any_lane": "is for predicates of batches, which loops make",
    "rng_bit_generator": "takes the state of a generator as a whole",
    "select_and_scatter_add": "is made by derivatives, where the compiler decides",
}
"""The rows without the column, and why operands that are split are refused."""

ELSEWHERE = {"sharding_constraint": "its samples are for a mesh of one device"}


def test_every_row_says_how_its_results_are_split() -> None:
    assert {row.name for row in ROWS if row.sharding is None} == set(WITHOUT)


def test_rows_that_do_not_say_it_refuse_split_operands() -> None:
    for row in ROWS:
        if row.draw is None or row.name not in WITHOUT:
            continue
        sample = row.draw(Random(0))
        place = NamedSharding(MESH, P("x"))
        avals = [
            ShapedArray((2, *a.shape[1:]), a.dtype, sharding=place) if a.ndim else a
            for a in sample.avals
        ]
        if avals and any([a.explicit is not None for a in avals]):
            with pytest.raises((ShardingTypeError, TypeError, ValueError)):
                inferred(row, sample.params, *avals)


def split_somehow(random: Random, aval: ShapedArray) -> P:
    """Axes of the mesh for the dimensions of a type, each at most once."""
    left, axes = ["x", "y"], []
    for size in aval.shape:
        chosen = random.choice([*left, None]) if size and size % 2 == 0 else None
        axes.append(chosen)
        if chosen is not None:
            left.remove(chosen)
    return P(*axes)


def with_terms(random: Random, aval: ShapedArray) -> P:
    """As `split_somehow`; along an axis that is left, terms of numbers to be summed."""
    spec = split_somehow(random, aval)
    left = [axis for axis in ("x", "y") if axis not in spec.partitions]
    narrow = bit_width(aval.dtype) < 8 if not is_extended(aval.dtype) else True
    if not left or narrow or random.random() < 0.3:  # XLA refuses those of four bits
        return spec
    axes = frozenset([random.choice(left)])
    if random.random() < 0.3:
        return spec.update(reduced=axes)
    return spec.update(unreduced=axes)


type Drawn = Callable[[Random, ShapedArray], P]


def suitable(
    row: Row[Any], seed: int, draw: Drawn = split_somehow
) -> tuple[Sample[Any], list[P]] | None:
    """A call of the row some of whose operands are split, if its types allow it."""
    assert row.draw is not None
    random = Random(seed)
    sample = row.draw(random)
    specs = [draw(random, aval) for aval in sample.avals]
    if draw is split_somehow:
        if not any([axis for spec in specs for axis in spec]):
            return None
    elif not any([spec.unreduced for spec in specs]):
        return None
    try:
        avals = [
            aval.update(sharding=NamedSharding(MESH, spec))
            for aval, spec in zip(sample.avals, specs, strict=True)
        ]
        inferred(row, sample.params, *avals)
    except (ShardingTypeError, ValueError):
        return None  # numbers that are complex have no terms
    return sample, specs


def numbers(x: Any) -> np.ndarray:
    """The values of a result; of keys, their words."""
    actual = np.asarray(vrandom.key_data(x) if is_extended(x.dtype) else x)
    return actual.astype(np.complex128) if actual.dtype.kind in "fcV" else actual


NEVER_SPLIT = {"threefry2x32", "threefry4x32", "reduce_window"}
"""Rows of whose samples no dimension is even, or may be split."""

KNOWN = [
    row
    for row in ROWS
    if row.sharding is not None
    and row.draw is not None
    and not row.hosted
    and row.name not in ELSEWHERE
]


def placed(x: Any, spec: P) -> Any:
    """The array so, its terms spread over devices if some dimension can be split."""
    for axis in spec.unreduced:
        for i, size in enumerate(x.shape):
            if size % 2 == 0 and size and not any(spec.partitions[i : i + 1]):
                own = [*spec.partitions[:i], axis, *spec.partitions[i + 1 :]]
                x = verax.device_put(x, NamedSharding(MESH, P(*own)))
                break
    return verax.device_put(x, NamedSharding(MESH, spec))


def check(row: Row[Any], seeds: Sequence[int], draw: Drawn = split_somehow) -> None:
    """Run the calls of these seeds on split operands and on whole ones, and compare.

    One program runs all on split operands: compiling takes longest.
    """
    calls: list[tuple[Sample[Any], list[P]]] = []
    for seed in seeds:
        call = suitable(row, seed, draw)
        assert call is not None
        calls.append(call)
    samples = [sample for sample, _ in calls]
    with verax.enable_x64(True):
        whole = [operands(row, s, n) for n, s in zip(seeds, samples, strict=True)]
        split = [
            [placed(x, spec) for x, spec in zip(xs, specs, strict=True)]
            for xs, (_, specs) in zip(whole, calls, strict=True)
        ]

        @verax.jit
        def run(split: Any) -> Any:
            pairs = zip(samples, split, strict=True)
            return [row.bind(sample.params, *xs) for sample, xs in pairs]

        actual = run(split)
        expected = [
            row.bind(sample.params, *xs)
            for sample, xs in zip(samples, whole, strict=True)
        ]
        for sample, args, outs, plain in zip(
            samples, split, actual, expected, strict=True
        ):
            check_text(row, sample, args)
            due = inferred(row, sample.params, *[x.aval for x in args])
            for out, one, aval in zip(outs, plain, due, strict=True):
                check_result(out, one, aval)


def operands(row: Row[Any], sample: Sample[Any], seed: int) -> list[Any]:
    pairs = zip(sample.avals, domains_of(row, sample), strict=True)
    return [
        from_host(random_array(Random(seed + i), aval, domain, i, True), aval)
        for i, (aval, domain) in enumerate(pairs)
    ]


def check_text(row: Row[Any], sample: Sample[Any], args: list[Any]) -> None:
    """What is read is what was written."""
    closed = verax.make_jaxpr(lambda *xs: row.bind(sample.params, *xs))(*args)
    constants = (*closed.consts, *constants_of(closed.jaxpr))
    assert parse_closed(str(closed), consts=constants, mesh=MESH) == closed


def check_result(out: Any, expected: Any, aval: ShapedArray) -> None:
    """It lies where its type says, and has the values of the whole."""
    assert out.aval.explicit == aval.explicit
    spec: Any = aval.sharding.spec if aval.explicit else P(*[None] * aval.ndim)
    assert out.sharding == NamedSharding(MESH, spec)
    rtol, atol = TOLERANCES.get(str(aval.dtype), (0, 0))
    assert np.allclose(
        numbers(out), numbers(expected), rtol=rtol, atol=atol, equal_nan=True
    )


@pytest.mark.parametrize("row", KNOWN, ids=lambda row: row.name)
def test_a_row_keeps_values_and_lies_as_its_type_says(row: Row[Any]) -> None:
    seeds = (seed for seed in range(ATTEMPTS) if suitable(row, seed) is not None)
    seed = next(seeds, None)
    if seed is None:
        assert row.name in NEVER_SPLIT
    else:
        check(row, [seed])


LINEAR = {
    name
    for line in (
        "add sub neg mul div convert_element_type select_n layout_constraint pad rev",
        "transpose reshape squeeze broadcast_in_dim slice split concatenate gather",
        "dynamic_slice dynamic_update_slice scatter-add scatter-sub reduce_sum",
    )
    for name in line.split()
}
"""The rows that take terms of sums, and give terms of their results."""

# Rows whose types speak of axes run programs, which have types of their own.
SUMMED = [row for row in KNOWN if row.sharding is not as_typed]


def seeds_with_terms(row: Row[Any]) -> Iterator[int]:
    return (s for s in range(ATTEMPTS) if suitable(row, s, with_terms) is not None)


def test_rows_that_are_linear_take_terms() -> None:
    takes = [
        row.name for row in SUMMED if next(seeds_with_terms(row), None) is not None
    ]
    assert set(takes) == LINEAR


@pytest.mark.parametrize(
    "row", [row for row in SUMMED if row.name in LINEAR], ids=lambda row: row.name
)
def test_a_row_keeps_sums_that_are_left_to_be_made(row: Row[Any]) -> None:
    check(row, list(islice(seeds_with_terms(row), 4)), with_terms)
