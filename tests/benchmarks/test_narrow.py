"""The harness that compares narrow programs with wide ones."""

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from property_tests.levels import rarely
from tests.benchmarks.narrow import WORKLOADS, apart, chain, row_of, values_read
from verax import random
from verax.transforms import dce
from verax.transforms.public import opened


@pytest.mark.slow
@pytest.mark.parametrize("name", rarely(WORKLOADS, "gpt"))
def test_each_value_that_products_read_is_rounded_once(name: str) -> None:
    _, curve, _, casts, compiled, values, share, _ = row_of(name, 12, {})
    assert casts == compiled == values
    assert float(curve.removesuffix(" %")) < 1
    assert float(share.removesuffix(" %")) > 90


@pytest.mark.slow
def test_a_chain_needs_no_more_casts_than_values() -> None:
    sample = chain()
    program = opened(dce(verax.make_jaxpr(sample)(random.split(random.key(0), 2))))
    assert values_read(program) == 8
    assert int(row_of("hmc", 3, {})[3]) <= 8


def test_curves_are_compared_as_means() -> None:
    exact = np.full(20, 2.0)
    moved = exact + np.repeat([0.0, 0.2], 10)
    np.testing.assert_allclose(apart(moved, exact), (0.1, 0.1))


def test_a_constant_is_a_value() -> None:
    w = vnp.ones((4, 4))
    program = opened(verax.make_jaxpr(lambda x: x @ w)(w))
    assert values_read(program) == 2
