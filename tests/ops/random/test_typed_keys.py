"""Typed keys: the raw functions under them, batches, errors."""

from collections.abc import Sequence

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from tests.ops.agreement import both, trace
from tests.ops.laws import ENGINE
from verax.ops.random import threefry
from verax.ops.random.keys import (
    random_bits,
    random_fold_in,
    random_seed,
    random_split,
    random_unwrap,
    random_wrap,
)
from verax.rules.values.array import Array

KEY = np.zeros(2, np.uint32)


def on_keys(words: Array) -> Sequence[Array]:
    keys = random_wrap(words)
    more = random_split(keys, (2, 2))
    return (
        random_unwrap(more),
        random_unwrap(random_fold_in(keys, -1)),
        random_bits(keys, 32, (2, 3)),
        random_bits(more, 16, ()),
        random_unwrap(random_seed(random_bits(keys, 32, ()))),
    )


def test_typed_keys_are_the_raw_functions() -> None:
    split, folded, bits, small, _ = both(on_keys, KEY)
    assert split.shape == (2, 2, 2)
    assert split[0].tolist() == [[1797259609, 2579123966], [928981903, 3453687069]]
    (raw,) = ENGINE.evaluate(
        trace(lambda k: threefry.fold_in(k, np.uint32(2**32 - 1)), KEY), [KEY]
    )
    assert folded.tolist() == raw.tolist()
    assert bits[0].tolist() == [4070199207, 4202968722, 1427181096]
    assert small.shape == (2, 2)
    assert small.dtype == np.uint16


def test_typed_keys_batch_as_a_loop_does() -> None:
    jaxpr = trace(on_keys, KEY)
    words = np.arange(6, dtype=np.uint32).reshape(2, 3)
    batched, axes = ENGINE.batch(jaxpr, 3, (1,))
    actual = ENGINE.evaluate(batched, [words])
    for i in range(3):
        alone = ENGINE.evaluate(jaxpr, [words[:, i].copy()])
        for x, y, axis in zip(actual, alone, axes, strict=True):
            np.testing.assert_array_equal(x if axis is None else x.take(i, axis), y)


def test_key_errors() -> None:
    with pytest.raises(TypeError, match="typed keys"):
        trace(lambda k: random_bits(k, 32, (2,)), KEY)
    with pytest.raises(ValueError, match="unrecognized PRNG"):
        trace(lambda k: random_wrap(k, "xyz"), KEY)
    with pytest.raises(ValueError, match="width"):
        trace(lambda k: threefry.random_bits(k, 7, (2,)), KEY)


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_a_closed_over_key_is_the_same_where_equations_run_one_by_one(
    impl: str,
) -> None:
    key = verax.random.key(7, impl=impl)

    def drawn(x: verax.Array) -> verax.Array:
        return verax.random.normal(key, x.shape) * x

    kept = verax.checkpoint(drawn)
    x = vnp.ones(3)
    want = drawn(x)
    for f in (kept, lambda x: verax.jvp(kept, (x,), (x,))[1]):
        assert np.allclose(f(x), want, rtol=1e-6)
    g = verax.grad(lambda x: kept(x).sum())(x)
    assert np.allclose(g, want, rtol=1e-6)
    assert np.allclose(verax.vmap(kept)(x[None])[0], want, rtol=1e-6)
