"""explain_cache_misses: each miss is logged with its reason, and hits say nothing."""

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import verax
import verax.numpy as vnp


@contextmanager
def logged() -> Iterator[list[str]]:
    """The messages of the logger, times left out."""
    actual: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            assert record.levelno == logging.WARNING
            actual.append(re.sub(r"[\d,.]+ ms", "TIME", record.getMessage()))

    logger, handler = logging.getLogger("verax"), Keep()
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        with verax.explain_cache_misses():
            yield actual
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate


def line_of(fun: Any) -> str:
    code = fun.__wrapped__.__code__
    return f"{fun.__name__} ({__file__}:{code.co_firstlineno})"


def test_a_miss_is_logged_and_a_hit_is_not() -> None:
    @verax.jit
    def scaled(x: Any, by: Any) -> Any:
        return x * by

    with logged() as actual:
        scaled(vnp.ones(3), 2.0)
        scaled(vnp.ones(3), 3.0)
        scaled(vnp.ones(4), 2.0)
    place = f"cache miss: {line_of(scaled)} called at {__file__}:"
    assert all(text.startswith(place) for text in actual)
    here = "(test_a_miss_is_logged_and_a_hit_is_not)"
    done = "traced, lowered and compiled, in TIME (1 equation)"
    first, second = [
        re.sub(r"\d+ ", "LINE ", text[len(place) :], count=1) for text in actual
    ]
    assert first.splitlines() == [
        f"LINE {here} with x: f32[3], by: weak f32[]: {done}",
        "This is the first call of this jitted object.",
    ]
    assert second.splitlines()[:3] == [
        f"LINE {here} with x: f32[4], by: weak f32[]: {done}",
        "What differs from the only signature known so far:",
        "  x: shape (4,), previously (3,)",
    ]
    assert second.splitlines()[3].startswith("  (each shape gets its own program")
    scaled(vnp.ones(5), 2.0)
    assert len(actual) == 2  # the block has ended


def test_what_saved_time_is_named() -> None:
    def one(x: Any) -> Any:
        return vnp.cos(x) + 17.5

    def two(x: Any) -> Any:
        return vnp.cos(x) + 17.5

    verax.jit(one)(1.0)
    f = verax.jit(two)
    with logged() as actual:
        f(1.0)
        verax.jit(two).lower(2.0)
        f.lower(3)
        f(3)
    shared, traced = actual
    line = one.__code__.co_firstlineno + 1
    assert (
        f": traced and given the program that was compiled for one ({__file__}:{line})"
        in shared
    )
    assert ": lowered and compiled, in TIME" in traced
    assert "by trace(), lower() or within another function" in traced


def test_calls_within_a_trace() -> None:
    @verax.jit
    def inner(x: Any) -> Any:
        return x * 2

    @verax.jit
    def outer(x: Any) -> Any:
        return inner(x) + inner(x) + inner(vnp.ones(3))

    with logged() as actual:
        outer(1.0)
        outer(1.0)
    assert [text.split(" (")[0] for text in actual] == [
        "cache miss: inner",
        "cache miss: inner",
        "cache miss: outer",
    ]
    assert "traced into the enclosing program, in TIME (1 equation)" in actual[0]
    assert "(test_calls_within_a_trace.<locals>.outer)" in actual[0]


def test_jit_in_a_loop_is_told() -> None:
    with logged() as actual:
        for _ in range(3):
            verax.jit(lambda x: x * 19.5)(1.0)
    assert "first call of" in actual[0].splitlines()[1]
    assert "One other object was made from the same code" in actual[1]
    assert "2 other objects were made from the same code" in actual[2]
    assert "call jit once, outside loops" in actual[2]


def test_checks_of_purity_are_no_misses() -> None:
    inner = verax.jit(lambda x: x * 2)
    with logged() as actual:
        verax.check_purity(lambda x: inner(x) + 1)(1.0)
    assert actual == []
    assert "This is the first call" in inner.explain(1.0).reason
    inner(2)
    assert list(map(str, inner.explain(1.0).differences)) == [
        "x: dtype float32, previously int32"
    ]


def test_names_and_scopes_of_the_option() -> None:
    assert verax.config.explain_cache_misses is False
    with verax.explain_cache_misses(), verax.explain_cache_misses(False):
        assert verax.config.explain_cache_misses is False
    verax.config.update("jax_explain_cache_misses", True)
    try:
        seen: list[bool] = []
        thread = threading.Thread(
            target=lambda: seen.append(verax.config.explain_cache_misses)
        )
        thread.start()
        thread.join()
        assert seen == [True]
    finally:
        verax.config.update("explain_cache_misses", False)
    with pytest.raises(TypeError, match="takes bool"):
        verax.config.update("explain_cache_misses", "yes")


def test_an_error_while_tracing_is_the_users() -> None:
    def broken(x: Any) -> Any:
        raise KeyError("mine")

    with logged() as actual, pytest.raises(KeyError, match="mine"):
        verax.jit(broken)(1.0)
    assert [text.partition(" with ")[2].splitlines()[0] for text in actual] == [
        "x: weak f32[]: failed with KeyError: 'mine'"
    ]


def test_failures_are_logged_once_and_with_their_reason() -> None:
    square = verax.jit(lambda x: x @ x)
    square(vnp.ones((2, 2)))
    outer = verax.jit(lambda x: square(x) + 1)
    with logged() as actual:
        with pytest.raises(TypeError, match="matmul"):
            square(vnp.ones((2, 3)))
        with pytest.raises(TypeError, match="matmul"):
            outer(vnp.ones((3, 2)))
    first, inner, last = actual
    assert "failed with ShapeError: matmul: shapes (2, 3)" in first
    assert "  x: shape (2, 3), previously (2, 2)" in first.splitlines()
    assert "x: f32[3,2]: failed with ShapeError: matmul" in inner
    assert "x: f32[3,2]: failed with ShapeError: matmul" in last
    with logged() as actual:
        square(vnp.ones((2, 2)))
    assert actual == []
