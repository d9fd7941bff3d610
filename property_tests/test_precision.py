"""Laws of the shadow: it changes no value, and finds no loss where there is none."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

import verax
import verax.numpy as vnp
from verax.ir.dtypes import is_inexact
from verax.ops.table import ROWS
from verax.rules.rows.row import NDArray
from verax.transforms.engine.engine import STANDARD
from verax.transforms.precision.arithmetic import Arithmetic, InExtended, InFloat64
from verax.transforms.precision.lines import lines_of
from verax.transforms.precision.walking import Walk
from verax.transforms.precision.weighing import Tape
from verax.verify.cases.case import Case
from verax.verify.cases.nested import DRAWS
from verax.verify.random_programs import composable, programs

FULL = composable(ROWS, "lower")
FLAT = tuple(row for row in FULL if row not in DRAWS)
EXACT = frozenset(
    (
        "abs",
        "and",
        "broadcast_in_dim",
        "concatenate",
        "copy",
        "eq",
        "ge",
        "gt",
        "le",
        "lt",
        "max",
        "min",
        "ne",
        "neg",
        "not",
        "or",
        "reduce_max",
        "reduce_min",
        "reshape",
        "rev",
        "select_n",
        "sign",
        "slice",
        "sort",
        "squeeze",
        "transpose",
        "xor",
    )
)
"""Operations on whose results nothing is rounded."""
MOVES = tuple(row for row in FLAT if row.name in EXACT)
SMALL = 5
few = settings(max_examples=max(4, settings().max_examples // 10))
some = settings(max_examples=max(10, settings().max_examples // 4))


def same_bits(x: NDArray, y: NDArray) -> bool:
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def holds(case: Case, arithmetic: Arithmetic, tape: Tape | None = None) -> Walk:
    """A walk has the values of the interpreter, and measures that make sense."""
    with np.errstate(all="ignore"):
        expected = STANDARD.evaluate(case.jaxpr, list(case.values))
    walk = Walk(STANDARD, arithmetic, tape)
    cells = walk.run(case.jaxpr, list(case.values))
    assert all(map(same_bits, [c.actual for c in cells], expected))
    for c in cells:
        assert 0 <= c.error.mean <= c.error.worst * (1 + 1e-9) <= 1 + 1e-9
        assert c.shadow is None or c.shadow.shape == c.actual.shape
    assert walk.root is not None
    for line in lines_of(walk.root):
        assert 0 <= line.lost <= line.digits + 1e-9
        assert line.error <= 1
        assert str(line)
    return walk


@some
@given(programs(FLAT))
def test_flat_programs_keep_their_values(case: Case) -> None:
    holds(case, InFloat64(STANDARD))


@few
@given(programs(FULL, most=SMALL))
def test_programs_with_bodies_keep_their_values(case: Case) -> None:
    holds(case, InFloat64(STANDARD))
    holds(case, InExtended(STANDARD))


@few
@given(programs(FULL, most=SMALL))
def test_weighed_programs_keep_their_values(case: Case) -> None:
    tape = Tape(STANDARD)
    with np.errstate(all="ignore"):
        holds(case, InFloat64(STANDARD), tape)


@some
@given(programs(MOVES))
def test_what_rounds_nothing_loses_nothing(case: Case) -> None:
    walk = holds(case, InFloat64(STANDARD))
    assert walk.root is not None
    for site in walk.root.every():
        assert site.worst.worst == site.local.worst == site.lost == 0
        assert not site.decisions


def whole(x: Any, y: Any) -> Any:
    """Sums and products of whole numbers, and halves of them."""
    z = x * y - x
    w = vnp.sum(z.reshape(2, -1), 1) @ vnp.ones((2, 3), x.dtype)
    return vnp.cumsum(z / 4) + w.max(), vnp.where(z > 2, z * 0.5, -z)


@given(st.lists(st.integers(-3, 3), min_size=8, max_size=8))
def test_exact_sums_and_products(values: Sequence[int]) -> None:
    x = np.array(values, np.float32)
    for dtype in (np.float32, vnp.float16):
        report = verax.debug.precision(whole)(x.astype(dtype), x[::-1].astype(dtype))
        assert report.error == 0
        assert all(line.lost == 0 for line in report.lines)


def smooth(x: Any) -> Any:
    y = vnp.exp(vnp.sin(x)) * x
    return vnp.sum(y / (1 + y**2))


@given(st.lists(st.floats(0.1, 3.0), min_size=4, max_size=4))
def test_effects_bound_the_error_of_the_loss(values: Sequence[float]) -> None:
    x = np.array(values, np.float32)
    report = verax.debug.precision(smooth, gradient=True)(x)
    exact = np.sum((y := np.exp(np.sin(w := x.astype(float))) * w) / (1 + y**2))
    total = sum([line.effect for line in report.lines])
    assert abs(float(report.result) - exact) <= 1.001 * total + 1e-12
    assert is_inexact(report.result.dtype)
