"""A draw has the same bits in NumPy, compiled, and under jit."""

from collections.abc import Callable

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import random
from verax.random.samplers import PATIENCE
from verax.rules.values.array import Array

type Draw = Callable[[Array], Array]

# Shapes that no other test draws, so that the first draws here are those of NumPy.
DRAWS: dict[str, Draw] = {
    "uniform": lambda key: random.uniform(key, (3, 7, 5)),
    "uniform of 16 bits": lambda key: random.uniform(key, (3, 7, 5), vnp.bfloat16),
    "uniform between": lambda key: random.uniform(key, (3, 7, 5), minval=-2, maxval=3),
    "normal": lambda key: random.normal(key, (3, 7, 5)),
    "complex normal": lambda key: random.normal(key, (3, 7, 5), vnp.complex64),
    "randint": lambda key: random.randint(key, (3, 7, 5), -3, 1000),
    "permutation": lambda key: random.permutation(key, 105),
    "rows": lambda key: random.permutation(
        key, vnp.arange(105.0).reshape(3, 35), 1, independent=True
    ),
    "exponential": lambda key: random.exponential(key, (3, 7, 5)),
    "bernoulli": lambda key: random.bernoulli(key, 0.3, (3, 7, 5)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWS)
def test_when_a_sampler_is_compiled_cannot_be_seen(name: str) -> None:
    draw = DRAWS[name]
    keys = random.split(random.key(7), 3)
    first = [draw(key) for key in keys]
    for _ in range(PATIENCE):
        draw(keys[0])
    later = [draw(key) for key in keys]
    under_jit = [verax.jit(draw)(key) for key in keys]
    for a, b, c in zip(first, later, under_jit, strict=True):
        assert a.aval == b.aval == c.aval
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
        assert np.asarray(a).tobytes() == np.asarray(c).tobytes()


def test_compiled_samplers_follow_the_configuration_and_transformations() -> None:
    key = random.key(0)
    for _ in range(PATIENCE):
        random.normal(key, (11,))
    small = random.normal(key, (11,))
    with verax.enable_x64(True):
        wide = random.normal(key, (11,))
    assert (str(small.dtype), str(wide.dtype)) == ("float32", "float64")
    keys = random.split(key, 4)
    rows = verax.vmap(lambda k: random.normal(k, (11,)))(keys)
    np.testing.assert_allclose(rows[2], random.normal(keys[2], (11,)), rtol=1e-6)
