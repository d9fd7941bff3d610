"""What must agree among the results of a generated program.

One idea: a program has one value and one gradient, however they are computed, whoever
computes them, and wherever its rules read what they need::

    differences(own, other), contradictions(own)
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

type Results = Mapping[str, list[float] | str]

SAME: Final = (
    ("eager", "jit"),
    ("eager", "value"),
    ("grad", "jit_grad"),
    ("grad", "grad_jit"),
    ("vmap_grad", "grad_vmap"),
)
"""Ways that lead to the same numbers."""
FIRST: Final = (("vmap", "eager"), ("vmap_grad", "grad"))
"""Ways whose first numbers are those of another."""
DIGITS: Final = 2e-3
"""The error of a few hundred operations on floats of 32 bits, of the largest number."""


def is_near(one: list[float], other: list[float]) -> bool:
    """Whether numbers agree but for rounding."""
    a, b = np.array(one), np.array(other)
    finite = np.abs(b[np.isfinite(b)])
    size = 1 + (finite.max() if finite.size else 0)
    return a.shape == b.shape and bool(
        np.allclose(a, b, rtol=0, atol=DIGITS * size, equal_nan=True)
    )


def contradictions(own: Results) -> list[str]:
    """Which ways fail, or do not agree with each other."""
    wrong = [f"{way}: {x}" for way, x in own.items() if isinstance(x, str)]
    for way, other in SAME:
        a, b = own[way], own[other]
        if isinstance(a, list) and isinstance(b, list) and not is_near(a, b):
            wrong.append(f"{way} {a} is not {other} {b}")
    for way, other in FIRST:
        a, b = own[way], own[other]
        if isinstance(a, str) or isinstance(b, str) or is_near(a[: len(b)], b):
            continue
        wrong.append(f"{way} {a} does not begin as {other} {b}")
    return wrong


def differences(own: Results, other: Results) -> list[str]:
    """Which ways give something else in another library; its errors count for nothing.

    An error of ours is one where the other library has none.
    """
    wrong = []
    for way, due in other.items():
        actual = own[way]
        if isinstance(due, str):
            continue
        if isinstance(actual, str) or not is_near(actual, due):
            wrong.append(f"{way} gives {actual}, not {due}")
    return wrong


def is_same(one: list[float] | str, other: list[float] | str) -> bool:
    """Whether numbers are the same, bit for bit; nothing is the same as an error."""
    if isinstance(one, str) or isinstance(other, str):
        return False
    return np.array(one).tobytes() == np.array(other).tobytes()
