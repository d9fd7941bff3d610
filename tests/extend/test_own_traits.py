"""A primitive of a user's own states its traits, and passes treat it as one of ours."""

from typing import Any

import numpy as np
import pytest
from attrs import evolve

import verax
import verax.numpy as vnp
from verax import lax, verify
from verax.experimental import checkify, sparse
from verax.extend import NO_PARAMS, NoParams, Row, Traits, Work, composed, elementwise
from verax.ir.jaxpr import Jaxpr
from verax.rules.rows.costs import Costs
from verax.transforms.passes.blocks import flows
from verax.transforms.passes.chains import LEAST, WORTH, split_chains

TRAITS = Traits(Work.CHEAP, makes_nans=False, keeps_zero=True)
shrink_p = elementwise(
    "shrink",
    lambda x: x - np.clip(x, -1, 1),
    jvp=lambda x, y, t: vnp.where(y == 0, 0, t),
    lower=composed(lambda x: x - vnp.clip(x, -1, 1)),
    traits=TRAITS,
)
untold_p = evolve(shrink_p, traits=Traits())


def jaxpr_of(row: Row[NoParams], times: int, x: Any) -> Jaxpr:
    def repeated(x: Any) -> Any:
        for _ in range(times):
            x = row.call(NO_PARAMS, x)
        return x

    program: Jaxpr = verax.make_jaxpr(repeated)(x).jaxpr
    return program


def test_long_chains_of_it_are_split() -> None:
    x = np.zeros(LEAST, np.float32)
    for row, split in ((shrink_p, True), (untold_p, False)):
        jaxpr = split_chains(jaxpr_of(row, WORTH, x))
        names = {eqn.primitive.name for eqn in jaxpr.eqns}
        assert ("optimization_barrier" in names) is split


def test_values_stream_through_it() -> None:
    assert flows(jaxpr_of(shrink_p, 2, 1.0), 0) == {0}
    assert flows(jaxpr_of(untold_p, 2, 1.0), 0) == set()


def test_it_is_counted_as_it_says() -> None:
    dear_p = evolve(
        shrink_p, traits=Traits(flops=lambda p, ins, outs: 7.0 * outs[0].size)
    )
    for row, flops in ((shrink_p, 6.0), (dear_p, 42.0)):
        (eqn,) = jaxpr_of(row, 1, np.zeros((2, 3))).eqns
        assert Costs().of(eqn).flops == flops


def test_only_what_may_make_a_nan_is_checked() -> None:
    for row, errors in ((shrink_p, 0), (untold_p, 1)):

        def f(x: Any, row: Row[NoParams] = row) -> Any:
            return row.call(NO_PARAMS, x)

        error, _ = checkify.checkify(f, errors=checkify.nan_checks)(np.nan)
        assert bool(error.get()) is bool(errors)


def test_sparse_arrays_take_it() -> None:
    def sparsified(row: Row[NoParams], x: sparse.BCOO) -> Any:
        return sparse.sparsify(lambda x: row.call(NO_PARAMS, x))(x)

    x = sparse.BCOO.fromdense(np.array([0.0, 3.0, 0.0, 0.5], np.float32))
    assert sparsified(shrink_p, x).todense().tolist() == [0.0, 2.0, 0.0, 0.0]
    dense_p = evolve(shrink_p, traits=Traits(keeps_zero=False))
    for row, reason in ((untold_p, "is not implemented"), (dense_p, "dense output")):
        with pytest.raises(NotImplementedError, match=reason):
            sparsified(row, x)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "traits"),
    [
        (lax.sub_p, {"commutative": True}),
        (lax.cos_p, {"keeps_zero": True}),
        (lax.sin_p, {"keeps_zero": False}),
        (lax.exp_p, {"additive": True}),
        (lax.reduce_sum_p, {"elementwise": True}),
        (lax.reduce_sum_p, {"joined_by": lax.max_p}),
        (lax.sin_p, {"loop": True}),
        (lax.dynamic_update_slice_p, {"writes_part": 0}),
        (lax.sin_p, {"flops": lambda p, ins, outs: -1.0}),
    ],
)
def test_the_law_finds_wrong_traits(row: Row[Any], traits: dict[str, Any]) -> None:
    wrong = evolve(row, traits=evolve(row.traits, **traits))
    for tried, verdict in ((row, "holds"), (wrong, "broken")):
        report = verify.check_primitive(tried, laws=["traits"])
        assert [finding.verdict for finding in report] == [verdict], report
