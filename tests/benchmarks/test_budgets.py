"""That the table of budgets can be made, and that budgets hold in it."""

import pytest

from property_tests.levels import rarely
from tests.benchmarks.budgets import cells, costs
from tests.benchmarks.test_memory import SMALL


@pytest.mark.slow(nightly=True)
@pytest.mark.parametrize("name", rarely(["gpt in a loop", "ode"], "gpt in a loop"))
def test_budgets_hold(name: str) -> None:
    found = costs(name, SMALL[name], runs=1)
    plain = found["plain"]
    assert found["checkpoint"].bytes < plain.bytes
    for share in ("0.75", "0.5"):
        if share in found:
            assert found[share].bytes <= float(share) * plain.bytes
    assert cells(name, found)[0] == name
