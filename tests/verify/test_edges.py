"""Lowerings that lose digits or overflow at the edges are found, whatever the seed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import frozen

import verax.numpy as vnp
from verax import verify
from verax.extend import Domain
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import as_dtype, float32
from verax.ir.jaxpr import NO_PARAMS, NoParams
from verax.lax import exp_p, log1p_p, logistic_p, tan_p
from verax.ops.reductions.reduce import reduce_sum
from verax.rules.families.elementwise import composed, elementwise
from verax.rules.rows.row import Row, Sample
from verax.rules.values.constants import FLOAT
from verax.verify.cases.edges import by_elements, edge_cases, edge_points

SEEDS = range(10)
REALS = Domain()
POSITIVE = Domain(0.0, np.inf)


@frozen
class Planted:
    """What a row computes, and a lowering that is right at most numbers."""

    name: str
    evaluate: Callable[..., Any]
    lowered: Callable[..., Any]
    operands: int = 1
    domain: Domain = REALS

    def row(self, lowered: Callable[..., Any]) -> Row[NoParams]:
        return elementwise(
            self.name,
            self.evaluate,
            lower=composed(lowered),
            operands=self.operands,
            accepts=FLOAT,
            domains=self.domain,
        )


PLANTED = (
    Planted(
        "log1mexp",
        lambda x: np.log(-np.expm1(-x)),
        lambda x: vnp.log(1 - vnp.exp(-x)),
        domain=POSITIVE,
    ),
    Planted("log1p", np.log1p, lambda x: vnp.log(1 + x), domain=Domain(-1.0, np.inf)),
    Planted("expm1", np.expm1, lambda x: vnp.exp(x) - 1),
    Planted("hypot", np.hypot, lambda x, y: vnp.sqrt(x * x + y * y), operands=2),
    Planted(
        "logaddexp",
        np.logaddexp,
        lambda x, y: vnp.log(vnp.exp(x) + vnp.exp(y)),
        operands=2,
    ),
    Planted(
        "tan",
        np.tan,
        # A multiple of pi that is rounded before it is taken off.
        lambda x: vnp.tan(x - vnp.round(x / np.pi) * np.float32(np.pi).astype(x.dtype)),
        domain=Domain(-100.0, 100.0),
    ),
    Planted("sinc", np.sinc, lambda x: vnp.sin(np.pi * x) / (np.pi * x)),
    Planted("softplus", lambda x: np.logaddexp(x, 0), lambda x: vnp.log1p(vnp.exp(x))),
    Planted(
        "asinh",
        np.arcsinh,
        lambda x: vnp.log(x + vnp.sqrt(x * x + 1)),
        domain=Domain(0.0, 1e6),
    ),
    Planted("cosm1", lambda x: -2 * np.sin(x / 2) ** 2, lambda x: vnp.cos(x) - 1),
)


@pytest.mark.slow
@pytest.mark.parametrize("planted", PLANTED, ids=lambda p: p.name)
def test_wrong_lowering_is_found_at_every_seed(planted: Planted) -> None:
    row = planted.row(planted.lowered)
    for seed in SEEDS:
        report = verify.check_primitive(row, laws=["compiled"], seed=seed)
        (finding,) = report.broken
        assert finding.case is not None
        assert sum(x.size for x in finding.case.values) == planted.operands


@pytest.mark.parametrize("planted", PLANTED[1:3], ids=lambda p: p.name)
def test_snippet_of_an_edge_fails_again(planted: Planted) -> None:
    row = planted.row(planted.lowered)
    (finding,) = verify.check_primitive(row, laws=["compiled"]).broken
    assert finding.case is not None
    with pytest.raises(verify.LawBroken):
        verify.hold("compiled", finding.case)


def stable(x: Any, y: Any) -> Any:
    return vnp.maximum(x, y) + vnp.log1p(vnp.exp(-vnp.abs(x - y)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "lowered"),
    [("log1p", vnp.log1p), ("expm1", vnp.expm1), ("hypot", vnp.hypot)],
)
def test_right_lowering_is_not_accused(name: str, lowered: Callable[..., Any]) -> None:
    (planted,) = [p for p in PLANTED if p.name == name]
    report = verify.check_primitive(planted.row(lowered), laws=["compiled"], seed=0)
    report.raise_if_broken()


def reference(x: np.ndarray) -> np.ndarray:
    most = x.max(1, keepdims=True)
    return np.asarray(np.log(np.exp(x - most).sum(1)) + most[:, 0], x.dtype)


def log_of_sums(shift: bool) -> Row[NoParams]:
    """Logarithms of sums of exponentials of rows, with the maximum taken out or not."""

    def composition(params: NoParams, x: Any) -> Any:
        most = vnp.max(x, axis=1, keepdims=True) if shift else vnp.zeros_like(x[:, :1])
        total = reduce_sum(vnp.exp(x - most), (1,))
        return vnp.log(total) + most[:, 0]

    return Row(
        "log_of_sums",
        NoParams,
        typing=lambda p, avals: (avals[0].with_shape(avals[0].shape[:1]),),
        evaluate=lambda engine, p, xs: (reference(xs[0]),),
        composition=composition,
        draw=lambda random: Sample(
            NO_PARAMS, (ShapedArray((2, random.randint(1, 3)), float32),)
        ),
        domains=(Domain(-1e30, 1e30),),
    )


def test_reduction_that_overflows_is_found_at_every_seed() -> None:
    wrong, right = log_of_sums(False), log_of_sums(True)
    for seed in SEEDS:
        assert not verify.check_primitive(wrong, laws=["compiled"], seed=seed)
    verify.check_primitive(right, laws=["compiled"], seed=0).raise_if_broken()


@pytest.mark.slow
def test_branch_of_a_derivative_near_zero_is_held_to_digits() -> None:
    """A series for small numbers with a wrong term, far below what is drawn."""
    row = elementwise(
        "phi",
        lambda x: np.expm1(x) / x,
        jvp=lambda x, y, t: (
            t * vnp.where(vnp.abs(x) < 1e-6, 0.3, (y * (x - 1) + 1) / x)
        ),
        lower=composed(lambda x: vnp.expm1(x) / x),
        accepts=FLOAT,
        domains=POSITIVE,
    )
    for seed in SEEDS:
        report = verify.check_primitive(row, laws=["digits"], seed=seed)
        assert report["digits"].verdict == "broken"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(
    "domain", [Domain(), POSITIVE, Domain(-1.0, 1.0), Domain(2.0, 3.0, kinks=(2.5,))]
)
def test_edge_points_lie_in_the_domain_at_several_distances(
    dtype: str, domain: Domain
) -> None:
    points = edge_points(as_dtype(dtype), domain)
    assert all(domain.low <= x <= domain.high for x in points)
    near = [abs(x - domain.low) for x in points if 0 < abs(x - domain.low) < 0.2]
    if np.isfinite(domain.low):
        assert len(near) >= 2
    assert len(points) >= 5


def test_rows_by_elements_are_told_from_those_along_axes() -> None:
    vector = Sample(NO_PARAMS, (ShapedArray((3,), float32),))
    for row in (exp_p, log1p_p, logistic_p, tan_p):
        assert by_elements(row, vector) is not None
    assert by_elements(log_of_sums(True), vector) is None
    assert {c.values[0].shape for c in edge_cases(log_of_sums(True))} == {(2, 3)}
