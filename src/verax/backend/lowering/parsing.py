"""Floor 4: module text as a module object, for what jaxlib does not take as text.

One idea: only programs that call functions of the host need MLIR's bindings (30 ms to
import, 4 ms for a context), so they are named here and imported when one is compiled::

    client.compile_and_load(parsed(text), devices, options, [function])
"""

from typing import Any, Final

from verax.rules.values.lazy import LazyFunction, loaded

LIBRARIES: Final = "jaxlib.mlir._mlir_libs."
REGISTRATIONS: Final = (
    LazyFunction(f"{LIBRARIES}_stablehlo", "register_dialect"),
    LazyFunction(f"{LIBRARIES}_chlo", "register_dialect"),
    LazyFunction(f"{LIBRARIES}_sdy", "register_dialect"),
    LazyFunction(f"{LIBRARIES}_mlirHlo", "register_mhlo_dialect"),
)


def new_context() -> Any:
    """A context that knows every dialect which modules are written in."""
    context = loaded("jaxlib.mlir.ir", "Context")()
    registry = loaded("jaxlib.mlir.ir", "DialectRegistry")()
    loaded(f"{LIBRARIES}_jax_mlir_ext", "register_dialects")(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for register in REGISTRATIONS:
        register(context)
    return context


def parsed(text: str) -> Any:
    """The module that `text` is, in a context of its own."""
    return loaded("jaxlib.mlir.ir", "Module").parse(text, new_context())
