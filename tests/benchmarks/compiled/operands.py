"""Operands of the cases by a letter each, the same for every library.

    drawn("x")          # 250 000 normal float32, 500 x 500
"""

import zlib
from typing import Any

import numpy as np

N = 500
KINDS = {
    "x": "normal, N x N",
    "y": "normal, N x N, others",
    "p": "positive, N x N",
    "q": "positive, N x N, others",
    "u": "within (-0.9, 0.9), N x N",
    "h": "within (0.1, 0.9), N x N",
    "g": "at least 1.1, N x N",
    "v": "normal, 100 000",
    "w": "normal, 100 000, others",
    "o": "sorted, 100 000",
    "i": "integers below 1000, N x N",
    "k": "integers below 20, N x N, at least 1",
    "n": "indices below N, 20 000",
    "j": "indices below 1000, 100 000, sorted",
    "b": "booleans, N x N",
    "z": "complex normal, N x N",
    "s": "symmetric positive definite, 200 x 200",
    "m": "normal, 200 x 200",
    "r": "normal, 200",
    "t": "normal, 8 x 32 x 32 x 16",
    "f": "normal, 3 x 3 x 16 x 16",
    "c": "stack of 500 positive definite 6 x 6",
    "d": "stack of 500 6 x 6",
}


def drawn(kind: str) -> Any:
    """The operand; two calls return equal ones."""
    rng = np.random.default_rng(zlib.crc32(kind.encode()))
    normal = rng.standard_normal
    square, line = (N, N), (100_000,)

    def f4(x: Any) -> Any:
        return np.asarray(x, np.float32)

    match kind:
        case "x" | "y":
            return f4(normal(square))
        case "p" | "q":
            return f4(np.abs(normal(square)) + 0.1)
        case "u":
            return f4(rng.uniform(-0.9, 0.9, square))
        case "h":
            return f4(rng.uniform(0.1, 0.9, square))
        case "g":
            return f4(rng.uniform(1.1, 6, square))
        case "v" | "w":
            return f4(normal(line))
        case "o":
            return f4(np.sort(normal(line)))
        case "i":
            return rng.integers(0, 1000, square).astype(np.int32)
        case "k":
            return rng.integers(1, 20, square).astype(np.int32)
        case "n":
            return rng.integers(0, N, 20_000).astype(np.int32)
        case "j":
            return np.sort(rng.integers(0, 1000, 100_000)).astype(np.int32)
        case "b":
            return normal(square) > 0
        case "z":
            return (normal(square) + 1j * normal(square)).astype(np.complex64)
        case "s":
            a = normal((200, 200))
            return f4(a @ a.T / 200 + np.eye(200))
        case "m":
            return f4(normal((200, 200)) + 4 * np.eye(200))
        case "r":
            return f4(normal(200))
        case "t":
            return f4(normal((8, 32, 32, 16)))
        case "f":
            return f4(normal((3, 3, 16, 16)) / 12)
        case "c":
            a = normal((500, 6, 6))
            return f4(a @ a.transpose(0, 2, 1) + np.eye(6))
        case "d":
            return f4(normal((500, 6, 6)) + 3 * np.eye(6))
    raise ValueError(f"no operand has the name {kind!r}; there are {', '.join(KINDS)}")
