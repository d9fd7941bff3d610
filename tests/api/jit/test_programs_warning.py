"""The warning where many programs are compiled of one function."""

import re
import warnings
from collections.abc import Iterator

import pytest

import verax
import verax.numpy as vnp

LIMIT = 3


@pytest.fixture(autouse=True)
def few() -> Iterator[None]:
    before = verax.config.programs_warn_count
    verax.config.update("programs_warn_count", LIMIT)
    yield
    verax.config.update("programs_warn_count", before)


def test_shapes_that_change_are_named_once() -> None:
    double = verax.jit(lambda x: x * 2)
    with pytest.warns(UserWarning, match="4 programs of <lambda>") as caught:
        [double(vnp.ones(n)) for n in range(8)]
    (warning,) = caught
    assert "x: shape (3,), previously (2,)" in str(warning.message)
    assert "pad arrays to a few fixed shapes" in str(warning.message)
    assert warning.filename == __file__


def test_jit_in_a_loop() -> None:
    with pytest.warns(UserWarning, match="call jit once, outside loops") as caught:
        [verax.jit(lambda x: x + 1)(1.0) for _ in range(8)]
    assert len(caught) == 1


def test_it_is_an_option_and_spares_functions_of_the_library() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sine = verax.jit(vnp.sin)
        for n in range(8):
            sine(vnp.ones(n))
        verax.config.update("programs_warn_count", -1)
        own = verax.jit(lambda x: -x)
        for n in range(8):
            own(vnp.ones(n))


def test_the_text_says_how_to_turn_it_off() -> None:
    tripled = verax.jit(lambda x, n: x * n, static_argnames="n")
    with pytest.warns(UserWarning, match=re.escape('("programs_warn_count", -1)')):
        [tripled(1.0, n=n) for n in range(4)]
