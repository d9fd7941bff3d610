"""Copies and pickles of what wraps functions: new, or itself where it cannot change."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding


def double(x: Any) -> Any:
    return x * 2


@verax.jit
def named(x: Any) -> Any:
    """Found in its module under its own name."""
    return x + 1


twice = verax.jit(double)


class Model:
    """What users copy: arrays, and jitted functions of all kinds."""

    def __init__(self) -> None:
        self.weights = vnp.arange(3.0)
        self.step = verax.jit(self.scaled)
        self.slope = verax.jit(verax.grad(lambda x: x**2))
        self.place = NamedSharding(Mesh(verax.devices()[:1], ("i",)), PartitionSpec())
        self.placed = verax.jit(double, device=verax.devices()[0])
        self.spread = verax.pmap(double)
        self.rule = verax.custom_jvp(double)
        self.rule.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * 7))

    def scaled(self, x: Any) -> Any:
        return self.weights * x

    @verax.jit
    def method(x: Any) -> Any:  # called through the class alone
        return x - 1


@pytest.mark.parametrize("called_before", [False, True])
def test_a_deep_copy_of_a_model_is_a_model_of_its_own(called_before: bool) -> None:
    model = Model()
    if called_before:
        for run in (model.step, model.slope, model.placed):
            run(2.0)
        model.spread(vnp.ones(1))
    made = copy.deepcopy(model)
    model.weights = vnp.zeros(3)
    assert made.step is not model.step
    assert made.step(2.0).tolist() == [0.0, 2.0, 4.0]
    assert made.slope(3.0) == 6.0
    assert made.placed(3.0) == 6.0
    assert made.spread(vnp.ones(1)).tolist() == [2.0]
    assert made.place is model.place
    assert verax.grad(made.rule)(1.0) == 7.0
    made.rule.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * 8))
    assert verax.grad(model.rule)(1.0) == 7.0


def test_a_method_behind_jit_that_its_object_holds_is_copied_with_it() -> None:
    model = Model()
    step = copy.deepcopy(model.step)
    assert step.fun.__self__ is not model  # type: ignore[attr-defined]  # a method
    assert step.fun.__self__.step is step  # type: ignore[attr-defined]  # a method
    assert step(1.0).tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
def test_a_copy_has_options_attributes_and_traces_of_its_own(how: Any) -> None:
    seen = []

    def fun(x: Any, n: int) -> Any:
        seen.append(n)
        return x * n

    jitted = verax.jit(fun, static_argnames="n")
    vars(jitted)["note"] = ["mine"]
    jitted(1.0, n=3)
    made = how(jitted)
    assert made is not jitted
    assert made.__name__ == "fun"
    assert vars(made)["note"] == ["mine"]
    assert made(2.0, n=3) == 6.0
    assert jitted(2.0, n=3) == 6.0
    assert set(seen) == {3}
    assert made.explain(2.0, n=3).hit


def test_a_jitted_function_of_a_module_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(named)) is named
    assert pickle.loads(pickle.dumps(Model.method)) is Model.method
    assert copy.copy(named) is not named


def test_another_is_pickled_with_its_function_or_says_which_cannot_be() -> None:
    made = pickle.loads(pickle.dumps(twice))
    assert made is not twice
    assert made(2.0) == 4.0
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(verax.jit(lambda x: x))


def test_stages_and_places_are_their_own_copies() -> None:
    traced = twice.trace(1.0)
    lowered = traced.lower()
    mesh = Mesh(np.array(verax.devices()[:1]), ("i",))
    place = SingleDeviceSharding(verax.devices()[0])
    for x in (traced, lowered, lowered.compile(), mesh, place):
        assert copy.copy(x) is x
        assert copy.deepcopy(x) is x
    assert copy.deepcopy([lowered.compile()])[0](3.0) == 6.0
