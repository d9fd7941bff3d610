"""`jax.extend.core.primitives`: verax's own primitives under JAX's names."""

from typing import Any

from verax.jax.primitives import Primitive
from verax.ops.table import ROWS

NAMED = {f"{row.name.replace('-', '_')}_p": row for row in ROWS}
OTHERS = {
    "pjit_p": "jit_p",
    "remat_p": "checkpoint_p",
    "custom_jvp_call_jaxpr_p": "custom_jvp_call_p",
}
UNWRITTEN = {
    name: Primitive(name.removesuffix("_p"))
    for name in ("call_p", "closed_call_p", "core_call_p", "custom_lin_p")
}
"""Primitives of JAX's that no program of verax has."""


def __getattr__(name: str) -> Any:
    found: Any = NAMED.get(OTHERS.get(name, name)) or UNWRITTEN.get(name)
    if found is None:
        raise AttributeError(name)
    return found


def __dir__() -> list[str]:
    return sorted({*NAMED, *OTHERS, *UNWRITTEN})
