"""What flax, optax and keras ask of jax."""

from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import verax.numpy as vnp
from verax import tree_util
from verax.core import eval_jaxpr
from verax.ir import ShapedArray
from verax.jax.internals.functions.tree_util import _registry
from verax.jax.overlays import export, linear_util, partial_eval

Pair = namedtuple("Pair", "first second")


def test_registry_knows_the_classes_that_are_nodes() -> None:
    class Node:
        pass

    assert Node not in _registry
    tree_util.register_pytree_node(Node, lambda node: ((), None), lambda *_: Node())
    assert Node in _registry
    for kind in (list, tuple, dict, type(None)):
        assert kind in _registry
    assert Pair not in _registry
    assert int not in _registry


@pytest.fixture
def traced() -> Any:
    """A program of one constant and two inputs, and the constants."""
    constant = vnp.arange(3.0)
    fun = linear_util.wrap_init(
        lambda x, y: [constant * 2.0, constant + 1.0, y.sum()], debug_info=None
    )
    aval = ShapedArray((3,), np.dtype("float32"))
    return partial_eval.trace_to_jaxpr_dynamic(fun, [aval, aval])


def test_constants_are_the_first_inputs(traced: Any) -> None:
    jaxpr, avals, consts = traced
    assert (len(jaxpr.constvars), len(jaxpr.invars), len(consts)) == (0, 3, 1)
    assert [aval.shape for aval in avals] == [(3,), (3,), ()]
    actual = eval_jaxpr(jaxpr, consts, np.ones(3, "f"), np.ones(3, "f"))
    assert actual[2] == 3.0


@pytest.mark.parametrize(
    ("used", "instantiate", "kept"),
    [
        (True, False, [True, False, True]),
        ([True, True, False], False, [True, False, False]),
        ([True, True, False], [False, True, False], [True, True, False]),
        ([False, False, True], True, [True, True, True]),
    ],
)
def test_dce_says_which_inputs_stay(
    traced: Any, used: Any, instantiate: Any, kept: list[bool]
) -> None:
    jaxpr, consts = traced[0], traced[2]
    smaller, flags = partial_eval.dce_jaxpr(jaxpr, used, instantiate)
    assert flags == kept
    given = [*consts, np.ones(3, "f"), np.ones(3, "f")]
    args = [x for x, flag in zip(given, flags, strict=True) if flag]
    whole = eval_jaxpr(jaxpr, given)
    mask = [True] * 3 if used is True else used
    expected = [x for x, flag in zip(whole, mask, strict=True) if flag]
    actual = eval_jaxpr(smaller, args)
    for x, y in zip(actual, expected, strict=True):
        assert np.array_equal(x, y)


def test_no_size_is_a_symbol() -> None:
    assert not export.is_symbolic_dim(3)
