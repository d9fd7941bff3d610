"""`verax.api_util`: what libraries that wrap functions ask about arguments."""

import itertools

import numpy as np
import pytest

import verax
import verax.numpy as jnp
from verax import api_util
from verax.ir.avals import ShapedArray
from verax.tree_util import tree_structure


@pytest.mark.parametrize("size", range(4))
@pytest.mark.parametrize("kwargs", [{}, {"b": 0, "a": [0, 0]}])
def test_donated_leaves(size: int, kwargs: dict[str, object]) -> None:
    args = ({"a": 0, "b": 0}, [0, None], 0)
    tree = tree_structure((args, kwargs))
    named = (True, True, False) if kwargs else ()
    for numbers in itertools.permutations(range(3), size):
        expected = (*[0 in numbers] * 2, 1 in numbers, 2 in numbers, *named)
        assert api_util.donation_vector(numbers, ("a",), tree) == expected
        alone = api_util.donation_vector(numbers, (), tree_structure(args), kws=False)
        assert alone == expected[:4]


@pytest.mark.parametrize(
    ("donated", "static", "expected"),
    [
        ((), (), ()),
        ((), (1, 2, 3), ()),
        ((0, 1), (2, 3), (0, 1)),
        ((3, 2), (1, 0), (0, 1)),
        ((3, 3), (0, 1), (1,)),
    ],
)
def test_donated_positions_among_arguments_that_are_not_static(
    donated: tuple[int, ...], static: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert api_util.rebase_donate_argnums(donated, static) == expected


def test_static_arguments_cannot_be_donated() -> None:
    with pytest.raises(ValueError, match="cannot intersect"):
        api_util.rebase_donate_argnums((0, 1), (1, 2))


def test_axes_of_each_leaf() -> None:
    tree = tree_structure({"a": [1, 2], "b": 3})
    assert api_util.flatten_axes("axes", tree, {"a": 0, "b": None}) == [0, 0, None]
    with pytest.raises(ValueError, match="axes specification must be a tree prefix"):
        api_util.flatten_axes("axes", tree, {"a": 0, "b": (1, 2)})
    with pytest.raises(ValueError, match="Wrap axes in a tuple"):
        api_util.flatten_axes("axes", tree, [0], tupled_args=True)


def test_map_of_equal_lengths_only() -> None:
    assert api_util.safe_map(lambda x, y: x + y, [1, 2], (3, 4)) == [4, 6]
    with pytest.raises(ValueError, match="shorter"):
        api_util.safe_map(lambda x, y: x + y, [1, 2], (3,))


@pytest.mark.parametrize(
    ("value", "due"),
    [
        (1.0, ShapedArray((), np.dtype(np.float32), True)),
        (np.float64(2), ShapedArray((), np.dtype(np.float32))),
        (jnp.ones(2, jnp.int8), ShapedArray((2,), np.dtype(np.int8))),
        (verax.ShapeDtypeStruct((2,), jnp.int8), ShapedArray((2,), np.dtype(np.int8))),
    ],
)
def test_types_of_values(value: object, due: ShapedArray) -> None:
    assert api_util.shaped_abstractify(value) == due


def test_a_string_has_no_type() -> None:
    with pytest.raises(TypeError):
        api_util.shaped_abstractify("a")
