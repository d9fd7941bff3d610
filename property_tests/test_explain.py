"""Calls of jitted functions are explained: keys differ where something is named."""

from collections import OrderedDict
from typing import Any

import numpy as np
from hypothesis import given, strategies as st

import verax
from verax.api.explain.differences import (
    Key,
    differences,
    distance,
    nearest,
    signature_of,
)
from verax.api.explain.report import ADVICE

SCALARS = st.one_of(st.booleans(), st.integers(-3, 3), st.floats(width=32), st.just(1j))
SHAPES = st.lists(st.integers(0, 3), max_size=2).map(tuple)
DTYPES = st.sampled_from(["float32", "int8", "bool", "float64", "complex64"])
ARRAYS = st.builds(np.zeros, SHAPES, DTYPES)
LEAVES = st.one_of(SCALARS, ARRAYS, ARRAYS.map(verax.numpy.asarray), st.none())
NAMES = st.sampled_from("abc")
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(NAMES, inner, max_size=3),
        st.lists(st.tuples(NAMES, inner), max_size=2).map(OrderedDict),
    ),
    max_leaves=5,
)
VALUES = st.one_of(SCALARS, st.text(max_size=2), st.none())
STATICS = st.one_of(
    VALUES, st.lists(VALUES, max_size=2).map(tuple), st.frozensets(VALUES, max_size=2)
)


def fun(x: Any, y: Any = 0, *rest: Any, **others: Any) -> int:
    return 1


@st.composite
def calls(draw: st.DrawFn) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments for `fun`; `s` and `t` are static."""
    args = draw(st.lists(TREES, min_size=1, max_size=4))
    kwargs = draw(st.dictionaries(NAMES, TREES, max_size=2))
    statics = draw(st.dictionaries(st.sampled_from("st"), STATICS))
    return tuple(args), {**kwargs, **statics}


def key_of(call: tuple[tuple[Any, ...], dict[str, Any]], wide: bool) -> Key:
    jitted = verax.jit(fun, static_argnames=("s", "t"))
    with verax.enable_x64(wide):
        jitted.trace(*call[0], **call[1])
    (key,) = jitted.traces
    return key


@given(calls(), calls(), st.booleans(), st.booleans())
def test_keys_differ_where_something_is_named(
    one: Any, two: Any, wide: bool, wider: bool
) -> None:
    first, second = key_of(one, wide), key_of(two, wider)
    actual = differences(signature_of(fun, first), signature_of(fun, second))
    back = differences(signature_of(fun, second), signature_of(fun, first))
    assert bool(actual) == (first != second)
    assert sorted((d.kind, d.where) for d in actual) == sorted(
        (d.kind, d.where) for d in back
    )
    assert all(d.kind in ADVICE and d.now != d.before and str(d) for d in actual)


@given(calls(), st.booleans())
def test_a_call_does_not_differ_from_itself(call: Any, wide: bool) -> None:
    first, second = key_of(call, wide), key_of(call, wide)
    assert first == second
    assert not differences(signature_of(fun, first), signature_of(fun, second))


@given(calls(), st.lists(calls(), min_size=1, max_size=4))
def test_the_nearest_is_nearest(call: Any, others: list[Any]) -> None:
    key, seen = key_of(call, False), [key_of(other, False) for other in others]
    actual = nearest(key, seen)
    different = [other for other in seen if other != key]
    if actual is None:
        assert not different
        return
    away = distance(key, actual)
    assert away > 0
    assert away == min(distance(key, other) for other in different)
    assert all(distance(key, k) == distance(k, key) for k in seen)
    assert distance(key, key) == 0
