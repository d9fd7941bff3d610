"""A few of the programs of `make fuzz`, in verax alone, and that they can fail."""

import pytest

from property_tests.levels import rarely
from tests.fuzz.comparing import contradictions, differences
from tests.fuzz.programs import flat_source, source
from tests.fuzz.running import results, space_of

SEEDS = (0, 2, 8)
NAMES = space_of("verax")


@pytest.mark.slow
@pytest.mark.parametrize("seed", rarely(SEEDS, *SEEDS[1:]))
def test_a_program_has_one_value_and_one_gradient(seed: int) -> None:
    own = results(NAMES, source(seed, late=False).text)
    assert contradictions(own) == []
    late = results(NAMES, source(seed, late=True).text)
    assert differences(late, own) == []


@pytest.mark.slow
def test_what_differs_is_seen() -> None:
    own = results(NAMES, flat_source(1, late=False).text)
    other = results(NAMES, flat_source(2, late=False).text)
    assert len(differences(other, own)) == len(own)
    assert contradictions(own | {"jit": [3.0]})
    assert contradictions(own | {"hvp": "TypeError: no"}) == ["hvp: TypeError: no"]
