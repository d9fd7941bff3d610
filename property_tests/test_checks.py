"""Laws of checks: they change no value, and say what an interpreter sees first.

The interpreter looks at every equation as it goes. Checks are planted in random
programs, also in bodies of loops and branches.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen
from hypothesis import given, settings, strategies as st

from property_tests.test_nan_finding import (
    FLAT,
    NESTED,
    evolve_inside,
    few,
    same_bits,
)
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float32, is_float, is_inexact
from verax.ir.jaxpr import UNKNOWN_SOURCE, Atom, Eqn, Jaxpr
from verax.ir.reports.check import check_jaxpr
from verax.ir.walk import Path, interpret, read
from verax.ops.calls.check import CheckParams, check_p
from verax.ops.elementwise.compare import lt
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.reductions.reduce import reduce_or
from verax.ops.structure.shape import reshape
from verax.rules.programs.host import (
    PASSED,
    Category,
    DivisionByZeroError,
    FailedCheckError,
    NaNError,
    OOBError,
    Site,
    failure_of,
)
from verax.rules.rows.builder import Builder
from verax.rules.rows.infer import inferred
from verax.rules.rows.row import NDArray, traits_of
from verax.rules.values.state import interpreting
from verax.transforms.checks.errors import bodies_of
from verax.transforms.checks.writer import checked, sites_of
from verax.transforms.engine.engine import STANDARD, evaluate_eqn, literal_value
from verax.verify.cases.case import Case
from verax.verify.random_programs import programs

ALL = frozenset((DivisionByZeroError, NaNError, OOBError, FailedCheckError))
SMALL = 5

type Seen = tuple[Category, object, tuple[float, ...]]
"""The category of a failure, what it is about, and what it shows."""


@frozen
class Planted:
    """What a planted message says: its number."""

    number: int

    def filled(self, values: Sequence[Any]) -> str:
        return f"{self.number}: {values}"


@frozen(eq=False)
class Watcher:
    """An engine that looks at every equation; `seen` is what failed first."""

    seen: list[Seen]

    def __getattr__(self, name: str) -> Any:
        return getattr(STANDARD, name)

    def evaluate(self, jaxpr: Jaxpr, args: Sequence[NDArray]) -> list[NDArray]:
        return interpret(jaxpr, args, self.results, literal_value)

    def results(self, eqn: Eqn, given: list[NDArray]) -> list[NDArray]:
        if isinstance(eqn.params, CheckParams):
            self.note(planted_failure(eqn.params, given))
            return []
        inside = bool(bodies_of(eqn))
        outs = evaluate_eqn(self if inside else STANDARD, eqn, given)
        if not inside:
            self.note(failure_at(eqn, given, outs))
        return outs

    def note(self, result: Seen | None) -> None:
        if result is not None and not self.seen:
            self.seen.append(result)


def planted_failure(p: CheckParams, given: Sequence[NDArray]) -> Seen | None:
    code, *values = given
    if code == PASSED:
        return None
    (site,) = p.sites
    return FailedCheckError, site.about, tuple(map(float, values))


def failure_at(
    eqn: Eqn, given: Sequence[NDArray], outs: Sequence[NDArray]
) -> Seen | None:
    """What fails in one equation, as NumPy sees it."""
    name = eqn.primitive.name
    if name == "div" and bool(np.any(given[1] == 0)):
        return DivisionByZeroError, None, ()
    outside = index_outside(eqn, given)
    if outside is not None:
        return OOBError, name, outside
    if name == "gather" or not traits_of(eqn.primitive).makes_nans:
        return None
    pairs = zip(eqn.outvars, outs, strict=True)
    if any(is_inexact(v.aval.dtype) and np.any(np.isnan(x)) for v, x in pairs):
        return NaNError, name, ()
    return None


def index_outside(eqn: Eqn, given: Sequence[NDArray]) -> tuple[float, ...] | None:
    """The first index out of bounds, and its dimension."""
    p: Any = eqn.params
    name, shape = eqn.primitive.name, np.shape(given[0] if given else ())
    if name in ("dynamic_slice", "dynamic_update_slice"):
        first, sizes = (1, p.slice_sizes) if name == "dynamic_slice" else (2, None)
        windows = given[1].shape if sizes is None else sizes
        for d, start in enumerate(given[first:]):
            if not 0 <= int(start) <= shape[d] - windows[d]:
                return float(start), float(d)
        return None
    if name != "gather" and not name.startswith("scatter"):
        return None
    dims = p.dimension_numbers
    reading = name == "gather"
    axes = dims.start_index_map if reading else dims.scatter_dims_to_operand_dims
    sizes = p.slice_sizes if reading else written_sizes(dims, shape, given[2].shape)
    for i, index in enumerate(given[1].reshape(-1)):
        d = axes[i % len(axes)]
        if not 0 <= int(index) <= shape[d] - sizes[d]:
            return float(int(index)), float(d)
    return None


def written_sizes(
    dims: Any, operand: tuple[int, ...], updates: tuple[int, ...]
) -> list[int]:
    """The sizes of the windows of a scatter: 1 where no dimension of updates goes."""
    left_out = {*dims.inserted_window_dims, *dims.operand_batching_dims}
    windows = iter(dims.update_window_dims)
    return [1 if d in left_out else updates[next(windows)] for d in range(len(operand))]


def paths(jaxpr: Jaxpr, path: Path = ()) -> Iterator[Path]:
    """Where checks can stand: behind equations, also in the bodies of others."""
    for number, eqn in enumerate(jaxpr.eqns):
        here = (*path, number)
        if eqn.outvars:
            yield here
        bodies = bodies_of(eqn)
        for which, inner in enumerate(eqn.params.subjaxprs()):
            if any(inner is body for body in bodies):
                yield from paths(inner, (*here, which))


def with_checks(jaxpr: Jaxpr, path: Path, number: int) -> Jaxpr:
    """The program with a check of the results of the equation at `path`."""
    builder = Builder("a law", source=UNKNOWN_SOURCE)
    env = builder.input_atoms(jaxpr.in_avals)
    for place, eqn in enumerate(jaxpr.eqns):
        ins = read(eqn.invars, env)
        here = place == path[0]
        if here and len(path) > 1:
            change = lambda inner: with_checks(inner, path[2:], number)  # noqa: E731
            eqn = evolve_inside(eqn, path[1], change)
        outs = builder.copy(eqn, ins)
        if here and len(path) == 1:
            with interpreting(builder):
                plant(builder, outs, number)
        env += outs
    return builder.close(read(jaxpr.outvars, env))[0]


def plant(builder: Builder, outs: Sequence[Atom], number: int) -> None:
    """Write a check that the first elements of float results are not negative."""
    for x in builder.tracers(outs):
        if is_float(x.aval.dtype) and x.aval.dtype.itemsize > 2 and x.aval.size:
            first = reshape(x, (x.aval.size,))[:1]
            bad = reduce_or(lt(first, 0.0), (0,))
            shown = convert(reshape(first, ()), x.aval.dtype)
            site = Site(FailedCheckError, Planted(number), (shown.aval.strong(),))
            code = select(bad, np.int32(0), PASSED)
            check_p.bind(CheckParams((site,)), code, shown)


def summary(sites: Sequence[Site], code: NDArray, values: Sequence[NDArray]) -> Any:
    """A failure as the watcher writes it."""
    failure = failure_of(sites, int(code), values)
    if failure is None:
        return None
    about = getattr(failure.about, "primitive", failure.about)
    return type(failure), about, tuple(map(float, failure.payload))


def agree(jaxpr: Jaxpr, values: Sequence[NDArray]) -> None:
    """The interpreted program says what the watcher saw, and keeps all bits."""
    body = checked(jaxpr, ALL)
    check_jaxpr(body.jaxpr, inferred)
    sites = list(sites_of(jaxpr, ALL))
    assert len(sites) == body.count
    watcher = Watcher([])
    with np.errstate(all="ignore"):
        expected = watcher.evaluate(jaxpr, values)
        actual = STANDARD.evaluate(body.jaxpr, list(values))
    count = len(jaxpr.outvars)
    assert all(map(same_bits, actual[:count], expected))
    first = watcher.seen[0] if watcher.seen else None
    got = summary(sites, actual[count], actual[count + 1 :])
    assert repr(got) == repr(first)


@settings(max_examples=max(10, settings().max_examples // 2))
@given(programs(FLAT))
def test_flat_programs(case: Case) -> None:
    agree(case.jaxpr, case.values)


@few
@given(programs(NESTED, most=SMALL), st.data())
def test_programs_with_bodies(case: Case, data: st.DataObject) -> None:
    jaxpr = case.jaxpr
    for number in range(2):
        places = list(paths(jaxpr))
        if places:
            jaxpr = with_checks(jaxpr, data.draw(st.sampled_from(places)), number)
    agree(jaxpr, case.values)


@few
@given(programs(FLAT, depth=3, most=SMALL))
def test_an_error_for_each_element(case: Case) -> None:
    """The checked program, batched, says of each element what it says alone."""
    body = checked(case.jaxpr, ALL)
    sites = list(sites_of(case.jaxpr, ALL))
    count, size = len(case.jaxpr.outvars), case.depth
    batched, axes = STANDARD.batch(body.jaxpr, size, (0,) * len(case.stacks))
    with np.errstate(all="ignore"):
        outs = STANDARD.evaluate(batched, list(case.stacks))
        for element in range(size):
            alone = STANDARD.evaluate(body.jaxpr, list(case.at(element)))
            own = [
                x if axis is None else np.take(x, element, axis)
                for x, axis in zip(outs[count:], axes[count:], strict=True)
            ]
            actual = summary(sites, own[0], own[1:])
            assert repr(actual) == repr(
                summary(sites, alone[count], alone[count + 1 :])
            )


def test_the_watcher_sees_planted_checks() -> None:
    """The law is no empty one: a check that is dropped is found missing."""
    case_jaxpr = with_checks(*one_equation(), 7)
    watcher = Watcher([])
    watcher.evaluate(case_jaxpr, [np.array(-1.0, np.float32)])
    assert watcher.seen == [(FailedCheckError, Planted(7), (-2.0,))]
    agree(case_jaxpr, [np.array(-1.0, np.float32)])
    agree(case_jaxpr, [np.array(1.0, np.float32)])
    silent = evolve(case_jaxpr, eqns=case_jaxpr.eqns[:1])
    assert not list(sites_of(silent, frozenset((FailedCheckError,))))


def one_equation() -> tuple[Jaxpr, Path]:
    """x + x, and the path of its equation."""
    builder = Builder("a law", source=UNKNOWN_SOURCE)
    x = builder.input(ShapedArray((), float32))
    with interpreting(builder):
        y = x + x
    return builder.finish((y,))[0], (0,)
