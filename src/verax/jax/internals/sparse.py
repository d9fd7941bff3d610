"""`jax.experimental.sparse`: what means something where no array is sparse."""

from collections.abc import Callable
from typing import Any


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """`f`, which is what it computes of arrays that are not sparse."""
    return f
