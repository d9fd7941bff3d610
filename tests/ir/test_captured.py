"""Captured constants: which, how large, and on which line."""

import tracemalloc
from typing import Any

import numpy as np

import verax
import verax.numpy as vnp
from verax import ir

HUGE = np.broadcast_to(np.float32(1), (16384, 16384))
"""A gigabyte to everybody who asks for its size, and four bytes of memory."""


def f(x: Any) -> Any:
    small = np.arange(3, dtype=np.int8)
    inner = verax.jit(lambda v: v * HUGE)
    return inner(x) + HUGE, small, 2.0


def test_constants_are_listed_by_size_with_lines() -> None:
    actual = ir.captured_constants(verax.make_jaxpr(f)(1.0))
    assert [(c.nbytes, c.shape, str(c.dtype)) for c in actual] == [
        (1 << 30, (16384, 16384), "float32"),
        (3, (3,), "int8"),
    ]
    assert actual[0].value is HUGE
    # It is passed to the call, so the call reads it first.
    assert actual[0].source.line == f.__code__.co_firstlineno + 3
    assert actual.nbytes == (1 << 30) + 3
    head, first, second = repr(actual).splitlines()
    assert head.split() == ["bytes", "type", "first", "used", "at"]
    assert first.startswith("1,073,741,824  f32[16384,16384]  ")
    assert "test_captured.py:" in first
    assert second.endswith("an output of the program")


def test_stages_and_plain_jaxprs_are_taken() -> None:
    actual = ir.captured_constants(verax.jit(f).trace(1.0))
    assert len(actual) == 2
    # What the inner function captured is an operand of its call.
    assert actual[0].source.line == f.__code__.co_firstlineno + 3
    closed = verax.make_jaxpr(f)(1.0)
    assert len(ir.captured_constants(ir.close(closed))) == 2
    assert repr(ir.captured_constants(verax.make_jaxpr(vnp.sin)(1.0))) == (
        "no captured constants"
    )


def test_a_gigabyte_makes_no_constant_and_one_argument() -> None:
    tracemalloc.start()
    text = verax.jit(f).lower(1.0).as_text()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 27
    assert len(text) < 3000
    (main,) = [line for line in text.splitlines() if "public @main" in line]
    assert main.partition("->")[0].count("tensor<16384x16384xf32>") == 1
    large = [line for line in text.splitlines() if "constant" in line and "x" in line]
    assert [line for line in large if "16384" in line] == []
