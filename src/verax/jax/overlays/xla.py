"""`jax.interpreters.xla`: what is left of it in JAX."""

from typing import Any

from verax.jax.overlays.handlers import Handlers

canonicalize_dtype_handlers = Handlers()
pytype_aval_mappings = Handlers()


def apply_primitive(primitive: Any, *args: object, **params: object) -> Any:
    """Compile the lowering of a primitive and run it."""
    return primitive.bind(*args, **params)


apply_primitive.compiles_the_lowering = True  # type: ignore[attr-defined]  # a mark
