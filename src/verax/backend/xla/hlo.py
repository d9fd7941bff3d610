"""Modules as XLA's own programs, before any optimisation (floor 4).

XLA reads the text of a module and gives it back as HLO, with an estimate of its cost;
nothing is compiled::

    hlo_text(lowered.text), hlo_cost(lowered.text)
"""

from jaxlib import _hlo, _jax

from verax.backend.runtime.client import default_client
from verax.backend.runtime.errors import CompileError, trimmed


def computation(text: str) -> _hlo.XlaComputation:
    """The module as jaxlib's `XlaComputation`.

    Raises:
        CompileError: XLA cannot read it.
    """
    try:
        return _jax.mlir.mlir_module_to_xla_computation(
            text, use_tuple_args=False, return_tuple=False
        )
    except RuntimeError as error:
        raise CompileError(trimmed(str(error))) from error


def hlo_text(text: str, *, metadata: bool = False) -> str:
    """The module as HLO; with `metadata` the source lines that it knows."""
    options = _hlo.HloPrintOptions.short_parsable()
    options.print_metadata = metadata
    return computation(text).as_hlo_module().to_string(options)


def hlo_cost(text: str) -> dict[str, float]:
    """XLA's estimates for the module as it is: `flops`, `bytes accessed`, ..."""
    module = computation(text).as_hlo_module()
    return dict(_jax.hlo_module_cost_analysis(default_client(), module))
