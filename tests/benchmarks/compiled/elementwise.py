"""Functions of each element, in single and double precision, of a million elements.

next(cases()).name  # "exp/f4"
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from .cases import Case

N = 1_000_000
# Name of a word: letters of its operands.
FUNCTIONS: dict[str, str] = {
    "exp": "a",
    "log": "p",
    "sin": "a",
    "cos": "a",
    "tan": "a",
    "asin": "u",
    "acos": "u",
    "atan": "a",
    "atan2": "ap",
    "sinh": "a",
    "cosh": "a",
    "tanh": "a",
    "asinh": "a",
    "acosh": "g",
    "atanh": "u",
    "log1p": "p",
    "expm1": "a",
    "exp2": "a",
    "log2": "p",
    "sqrt": "p",
    "rsqrt": "p",
    "cbrt": "a",
    "pow": "pa",
    "erf": "a",
    "erfc": "a",
    "erf_inv": "u",
    "lgamma": "q",
    "digamma": "q",
    "igamma": "qp",
    "i0e": "a",
    "sigmoid": "a",
    "softplus": "a",
    "logaddexp": "ap",
    "mod": "aq",
    "fmod": "aq",
    "floor_divide": "aq",
    "round": "a",
    "floor": "a",
    "sign": "a",
    "divide": "aq",
    "hypot": "aq",
    "nextafter": "aq",
    "is_nan": "a",
    "to_bfloat16": "a",
    "to_float16": "a",
    "to_int32": "a",
    "clip": "a",
    "relu": "a",
    "square": "a",
    "cube": "a",
}


def drawn(letter: str, dtype: str) -> Any:
    """The operand of a letter."""
    r = np.random.RandomState(ord(letter))
    match letter:
        case "a":
            x = r.randn(N)
        case "u":
            x = r.rand(N) * 1.8 - 0.9
        case "p":
            x = np.abs(r.randn(N)) + 0.1
        case "q":
            x = r.rand(N) * 5 + 0.5
        case "b":
            x = r.randn(N) * 1000
        case _:
            x = r.rand(N) * 5 + 1.5
    return x.astype(dtype)


def cases() -> Iterator[Case]:
    """Every function for both dtypes, and the sine of large angles."""
    for dtype in ("f4", "f8"):
        for name, letters in (*FUNCTIONS.items(), ("sin", "b")):
            mark = "_large" if letters == "b" else ""
            operands = partial(all_drawn, letters, dtype)
            yield Case(f"{name}{mark}/{dtype}", partial(called, name), operands)


def called(name: str, w: Any, *xs: Any) -> Any:
    return getattr(w, name)(*xs)


def all_drawn(letters: str, dtype: str) -> tuple[Any, ...]:
    return tuple(drawn(letter, dtype) for letter in letters)
