"""`jax.extend.core.primitives`: verax's own primitives under JAX's names."""

from verax.ops.table import ROWS
from verax.rules.rows.row import Row

NAMED = {f"{row.name}_p": row for row in ROWS}
OTHERS = {"pjit_p": "jit_p"}


def __getattr__(name: str) -> Row:
    found = NAMED.get(OTHERS.get(name, name))
    if found is None:
        raise AttributeError(name)
    return found


def __dir__() -> list[str]:
    return sorted({*NAMED, *OTHERS})
