"""Every sampler checks its key, dtype, shape and sharding, under its own name."""

import inspect
from typing import Any

import numpy as np
import pytest

from verax import random

FLOATS: dict[str, tuple[Any, ...]] = {
    "ball": (2,),
    "beta": (1.0, 2.0),
    "binomial": (3.0, 0.5),
    "cauchy": (),
    "chisquare": (2.0,),
    "dirichlet": (np.ones(3, np.float32),),
    "double_sided_maxwell": (0.0, 1.0),
    "exponential": (),
    "f": (2.0, 3.0),
    "gamma": (2.0,),
    "generalized_normal": (2.0,),
    "gumbel": (),
    "laplace": (),
    "loggamma": (2.0,),
    "logistic": (),
    "lognormal": (),
    "maxwell": (),
    "normal": (),
    "orthogonal": (2,),
    "pareto": (2.0,),
    "rayleigh": (1.0,),
    "t": (2.0,),
    "triangular": (0.0, 1.0, 2.0),
    "truncated_normal": (-1.0, 1.0),
    "uniform": (),
    "wald": (1.0,),
    "weibull_min": (1.0, 2.0),
}
INTEGERS: dict[str, tuple[Any, ...]] = {"geometric": (0.5,), "poisson": (2.0,)}
SAMPLERS = FLOATS | INTEGERS | {"bits": (), "rademacher": ()}


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_key_is_needed(name: str) -> None:
    with pytest.raises(TypeError, match=f"^{name} takes a key"):
        getattr(random, name)(3, *SAMPLERS[name])


@pytest.mark.parametrize("name", SAMPLERS)
def test_several_keys_are_refused(name: str) -> None:
    keys = random.split(random.key(0))
    with pytest.raises(ValueError, match=f"^{name} accepts a single key"):
        getattr(random, name)(keys, *SAMPLERS[name])


@pytest.mark.parametrize("name", FLOATS)
def test_samples_are_floats(name: str) -> None:
    with pytest.raises(ValueError, match=f"^dtype argument to `{name}` must be a fl"):
        getattr(random, name)(random.key(0), *FLOATS[name], dtype=int)


@pytest.mark.parametrize("name", INTEGERS)
def test_samples_are_integers(name: str) -> None:
    with pytest.raises(TypeError, match=f"^{name}: dtype must be an integer type"):
        getattr(random, name)(random.key(0), *INTEGERS[name], dtype=float)


@pytest.mark.parametrize("name", SAMPLERS)
def test_what_is_no_sharding_is_refused(name: str) -> None:
    sampler = getattr(random, name)
    if "out_sharding" not in inspect.signature(sampler).parameters:
        return
    with pytest.raises(TypeError, match=f"{name} takes a device, a Sharding, .* not 3"):
        sampler(random.key(0), *SAMPLERS[name], out_sharding=3)


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_shape_is_that_of_the_samples(name: str) -> None:
    actual = getattr(random, name)(random.key(0), *SAMPLERS[name], shape=(5, 0))
    assert actual.shape[:2] == (5, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.usefixtures("little_effort")
def test_none_stands_for_a_shape_only_by_default(name: str) -> None:
    sampler = getattr(random, name)
    if inspect.signature(sampler).parameters["shape"].default is None:
        assert sampler(random.key(0), *SAMPLERS[name], shape=None).shape in ((), (3,))
        return
    with pytest.raises(
        TypeError, match=f"^{name}: shape must be a sequence of integers"
    ):
        sampler(random.key(0), *SAMPLERS[name], shape=None)
