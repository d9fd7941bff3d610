"""Results of eager functions lie where their operands are committed to."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp

DEVICE = verax.devices()[1]
NONE = np.zeros(0, np.int32)


def there(x: Any) -> verax.Array:
    out: verax.Array = verax.device_put(vnp.asarray(x), DEVICE)
    return out


X = there(np.ones((4, 3), np.float32))
PLACES = there([2, 0, 2])
EMPTY = there(np.ones((0, 3), np.float32))
HERE = np.arange(5.0, dtype=np.float32)

CASES: dict[str, Callable[[], Any]] = {
    "an empty index": lambda: X[NONE],
    "an empty mask": lambda: X[np.zeros(4, bool)],
    "no elements": lambda: EMPTY[NONE],
    "an index that is there": lambda: vnp.asarray(HERE)[PLACES],
    "take": lambda: vnp.take(HERE, PLACES),
    "take nothing": lambda: vnp.take(X, NONE, axis=0),
    "take_along_axis": lambda: vnp.take_along_axis(vnp.asarray(HERE), PLACES, 0),
    "put_along_axis": lambda: vnp.put_along_axis(
        vnp.asarray(HERE), PLACES[:2], 1.0, 0, inplace=False
    ),
    "a write": lambda: vnp.zeros(3).at[PLACES].add(1.0),
    "nonzero": lambda: vnp.nonzero(X),
    "extract": lambda: vnp.extract(X > 2, X),
    "bincount": lambda: vnp.bincount(PLACES),
    "histogram": lambda: vnp.histogram(X, bins=4)[0],
    "fftfreq": lambda: vnp.fft.fftfreq(8, device=DEVICE),
    "rfftfreq": lambda: vnp.fft.rfftfreq(8, device=DEVICE),
    "a constant gradient": lambda: verax.grad(lambda x: (x * 2).sum())(X),
    "the gradient of a sum": lambda: verax.grad(vnp.sum)(X),
    "no gradient": lambda: verax.grad(lambda x: (x * 0).sum())(X),
}


@pytest.mark.parametrize("case", CASES)
def test_a_result_is_where_its_operands_are(case: str) -> None:
    result = CASES[case]()
    for x in result if isinstance(result, tuple) else (result,):
        assert x.devices() == {DEVICE}
        assert x.committed


def test_operands_in_two_places_are_an_error() -> None:
    index = verax.device_put(vnp.array([0, 1]), verax.devices()[2])
    with pytest.raises(ValueError, match="different devices"):
        X[index]
