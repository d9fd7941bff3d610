"""The predicted memory of the whole program, in the document of a page."""

from typing import Any

import verax
import verax.numpy as vnp


def floats(*shape: Any) -> verax.ShapeDtypeStruct:
    return verax.ShapeDtypeStruct(shape, vnp.float32)


def loss(weights: list[Any], x: Any) -> Any:
    for w in weights:
        x = vnp.tanh(x @ w)
    return vnp.mean(x**2)


ARGUMENTS = [floats(16, 16)] * 6, floats(128, 16)


def test_the_curve_of_a_gradient() -> None:
    page = verax.explore(verax.grad(loss), compile=False)(*ARGUMENTS)
    note: Any = page.document["memory"]
    report = verax.debug.memory(verax.grad(loss), measure=False)(*ARGUMENTS)
    assert max(note["curve"]["bytes"]) == report.fullest.bytes
    assert note["before"] is None
    lengths = {len(column) for column in note["curve"].values()}
    assert len(lengths) == 1
    assert max(lengths) <= 160
    code = loss.__code__.co_firstlineno
    assert set(note["curve"]["line"]) <= {code + 2, code + 3}


def test_a_budget_has_two_curves() -> None:
    limited = verax.grad(loss, memory=0.7)
    note: Any = verax.explore(limited, compile=False)(*ARGUMENTS).document["memory"]
    assert max(note["curve"]["bytes"]) < max(note["before"]["bytes"])


def test_nothing_in_between_is_no_curve() -> None:
    page = verax.explore(lambda x: x + 1, compile=False)(floats(8))
    assert "memory" not in page.document
