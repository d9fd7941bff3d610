"""Laws of watching: measures change no value, and say what an onlooker sees.

The onlooker is an interpreter that keeps the results of each equation as it goes.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from hypothesis import given, settings

from verax.api.inspect.watching import Watched, WatchedValue, value_of
from verax.ir.dtypes import is_complex, is_inexact
from verax.ir.jaxpr import Eqn, Jaxpr
from verax.ir.reports.check import check_jaxpr
from verax.ir.walk import interpret
from verax.ops.table import ROWS
from verax.rules.rows.infer import inferred
from verax.rules.rows.row import NDArray
from verax.transforms.engine.engine import STANDARD, evaluate_eqn, literal_value
from verax.transforms.watching import Watching, watch
from verax.verify.cases.case import Case
from verax.verify.cases.nested import DRAWS
from verax.verify.random_programs import composable, programs

FULL = composable(ROWS, "lower")
FLAT = tuple(row for row in FULL if row not in DRAWS)
SMALL = 5
few = settings(max_examples=max(4, settings().max_examples // 10))


def same_bits(x: NDArray, y: NDArray) -> bool:
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def seen_by_onlooker(jaxpr: Jaxpr, values: Sequence[NDArray]) -> Iterator[NDArray]:
    """The inexact results of a program without bodies, in order."""
    found: list[NDArray] = []

    def results(eqn: Eqn, given: list[NDArray]) -> list[NDArray]:
        outs = evaluate_eqn(STANDARD, eqn, given)
        pairs = zip(eqn.outvars, outs, strict=True)
        found.extend([x for v, x in pairs if is_inexact(v.aval.dtype)])
        return outs

    interpret(jaxpr, list(values), results, literal_value)
    yield from found


def reported(made: Watching, outs: Sequence[NDArray], count: int) -> Watched:
    """The report, with an entry for every site."""
    return Watched("law", outs[count:], made.sites, made.courses)


def agrees(v: WatchedValue, x: NDArray, dtype: np.dtype) -> bool:
    """Whether an entry says what NumPy says of the values, measured in a dtype."""
    wide = np.abs(x) if is_complex(x.dtype) else x
    wide = wide.astype(dtype).astype(np.float64)
    finite = wide[np.isfinite(wide)]
    counts = (v.nans, v.infinite) == (np.isnan(wide).sum(), np.isinf(wide).sum())
    if not finite.size:
        return counts and bool(np.isnan(v.mean))
    scale = np.abs(finite).max()
    low, high = (1e-17, 1e18) if dtype == np.float32 else (1e-150, 1e150)
    squares = low < scale < high  # of others leave the dtype
    close = [
        np.isclose(v.least, finite.min(), rtol=1e-6, atol=0),
        np.isclose(v.greatest, finite.max(), rtol=1e-6, atol=0),
        not squares or np.isclose(v.mean, finite.mean(), rtol=1e-4, atol=1e-5 * scale),
        not squares or np.isclose(v.std, finite.std(), rtol=1e-3, atol=1e-5 * scale),
        np.isclose(v.zeros, (wide == 0).mean()),
    ]
    return bool(counts and all(close))


@settings(max_examples=max(10, settings().max_examples // 4))
@given(programs(FLAT))
def test_flat_programs_say_what_an_onlooker_sees(case: Case) -> None:
    made = watch(case.jaxpr, True)
    check_jaxpr(made.jaxpr, inferred)
    with np.errstate(all="ignore"):
        expected = STANDARD.evaluate(case.jaxpr, list(case.values))
        actual = STANDARD.evaluate(made.jaxpr, list(case.values))
        values = list(seen_by_onlooker(case.jaxpr, case.values))
    count = len(case.jaxpr.outvars)
    assert all(map(same_bits, actual[:count], expected))
    seen = reported(made, actual, count)
    assert len(made.sites) == len(values)
    dtype = actual[count].dtype
    ends, moments, sums = next(seen.blocks())
    for i, (site, x) in enumerate(zip(made.sites, values, strict=True)):
        entry = value_of(site, ends[i], moments[i], sums[i], ())
        with np.errstate(all="ignore"):
            assert agrees(entry, x, dtype), (site, x)


@few
@given(programs(FULL, most=SMALL))
def test_programs_with_bodies_keep_their_values(case: Case) -> None:
    for every in (True, False):
        made = watch(case.jaxpr, every)
        check_jaxpr(made.jaxpr, inferred)
        with np.errstate(all="ignore"):
            expected = STANDARD.evaluate(case.jaxpr, list(case.values))
            actual = STANDARD.evaluate(made.jaxpr, list(case.values))
        count = len(case.jaxpr.outvars)
        assert all(map(same_bits, actual[:count], expected))
        for v in reported(made, actual, count).values:
            assert v.runs >= 0
            assert v.runs == 0 or v.nans or v.infinite or not v.least > v.greatest
            assert abs(v.exponents.sum() - (v.runs > 0 and "0" not in v.type)) < 2
