"""Wrong calls raise what JAX raises: the class, for each of a thousand calls.

The calls stand in a file, with the class that JAX has for each, which it was asked.
"""

import builtins
import operator
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as jnp
from verax import errors, flatten_util, lax, nn, random, tree_util

FILE = Path(__file__).parent.parent / "goldens" / "wrong_calls.txt"
NOTHING = "-"


def cases() -> Iterator[tuple[str, str]]:
    """The class that ours raises, and the call."""
    for line in FILE.read_text().splitlines():
        if line and not line.startswith("#"):
            kind, _, call = line.partition(": ")
            yield kind.split()[0], call


def with_jvp(rule: Callable[..., Any]) -> Any:
    function = verax.custom_jvp(lambda a: a)
    function.defjvp(rule)
    return function


def with_vjp(forward: Any, backward: Any) -> Any:
    function = verax.custom_vjp(lambda a: a)
    function.defvjp(forward, backward)
    return function


def names() -> dict[str, Any]:
    """What the calls may use."""
    x = jnp.array([1.0, 2.0, 0.0])
    return {
        "J": verax,
        "jnp": jnp,
        "lax": lax,
        "nn": nn,
        "random": random,
        "tree": tree_util,
        "flat": flatten_util,
        "np": np,
        "operator": operator,
        "cjvp": with_jvp,
        "cvjp": with_vjp,
        "x": x,
        "b": x > 0,
        "i3": jnp.array([0, 1, 2]),
        "y2": jnp.ones((2, 3)),
        "y3": jnp.ones((2, 3, 4)),
        "y4": jnp.ones((2, 2, 3, 3)),
        "k": random.key(0),
        "mesh": verax.sharding.Mesh(np.array(verax.devices()[:1]), ("i",)),
    }


def class_named(name: str) -> type[BaseException]:
    actual: type[BaseException] = getattr(errors, name, None) or getattr(builtins, name)
    return actual


def raised(call: str) -> type[BaseException] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            verax.block_until_ready(eval(call, names()))  # the calls of our own file
        except Exception as error:
            return type(error)
    return None


@pytest.mark.parametrize(("kind", "call"), list(cases()))
def test_a_wrong_call_raises_what_jax_raises(kind: str, call: str) -> None:
    actual = raised(call)
    if kind == NOTHING:
        assert actual is None
    else:
        assert actual is not None, f"{call} raised nothing"
        assert issubclass(actual, class_named(kind))
        assert not issubclass(actual, AssertionError)


def test_there_are_many_calls_and_few_that_differ() -> None:
    lines = [line for line in FILE.read_text().splitlines() if line]
    differing = [line for line in lines if " in JAX): " in line]
    assert len(lines) > 900
    assert len(differing) < 110


def test_errors_of_shapes_are_caught_by_each_name() -> None:
    x, y = jnp.ones(3), jnp.ones(2)
    for kind in (TypeError, ValueError, errors.ShapeError):
        with pytest.raises(kind, match="incompatible shapes for broadcasting"):
            x + y
    for base in (TypeError, ValueError, IndexError, errors.AxisError):
        with pytest.raises(base, match="axis 4 is out of bounds"):
            jnp.mean(x, axis=4)
