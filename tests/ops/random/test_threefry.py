"""Threefry: the documented stream, seeds, counters."""

import numpy as np
import pytest

from tests.ops.agreement import both, trace
from tests.ops.laws import ENGINE
from verax.ir.avals import ShapedArray
from verax.ops.random import threefry

KEY = np.zeros(2, np.uint32)


def test_threefry_gives_the_documented_stream() -> None:
    """Values of jax.random under key(0), with partitionable threefry."""
    (keys,) = both(lambda k: threefry.split(k, (2,)), KEY)
    assert keys.tolist() == [[1797259609, 2579123966], [928981903, 3453687069]]
    (folded,) = both(lambda k: threefry.fold_in(k, np.uint32(7)), KEY)
    assert folded.tolist() == [2716826189, 292468403]
    bits = {
        32: [4070199207, 4202968722, 1427181096],
        16: [20391, 13970, 3624],
        8: [167, 146, 40],
    }
    for width, expected in bits.items():
        (actual,) = both(
            lambda k, w=width: threefry.random_bits(k, w, (3,)),
            KEY,
        )
        assert actual.tolist() == expected
    (wide,) = both(lambda k: threefry.random_bits(k, 64, (1,)), KEY)
    assert wide.tolist() == [7719171245655871230]


@pytest.mark.parametrize("count", [1, 1 << 32, (1 << 32) + 1])
def test_places_are_counted_in_as_many_words_as_they_need(count: int) -> None:
    """Nobody has room for so many here: how they are counted is all that is seen."""
    program = trace(lambda: threefry.counter((count, 1))[1])
    assert program.out_avals == (ShapedArray((count, 1), np.dtype(np.uint32)),)
    counted = program.eqns[0].outvars[0].aval.dtype
    assert counted == (np.uint64 if count > 1 << 32 else np.uint32)


@pytest.mark.parametrize("value", [0, -1, 2**33 + 5])
def test_seeds(value: int) -> None:
    (key,) = ENGINE.evaluate(trace(lambda: threefry.seed(value)), [])
    assert key.tolist() == [0, value & 0xFFFFFFFF]
