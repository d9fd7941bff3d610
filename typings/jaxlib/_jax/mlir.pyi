"""The part of jaxlib's conversions between forms of modules that verax uses."""

from typing import Any

from jaxlib._hlo import XlaComputation

def serialize_portable_artifact(
    mlir_module: object, target: str, use_mixed_serialization: bool = False
) -> bytes: ...
def deserialize_portable_artifact(mlir_module: bytes, context: Any = None) -> Any: ...
def hlo_to_stablehlo(computation: bytes) -> bytes: ...
def mlir_module_to_xla_computation(
    mlir_module: object, use_tuple_args: bool = False, return_tuple: bool = False
) -> XlaComputation: ...
def refine_polymorphic_shapes(
    mlir_module: bytes,
    enable_shape_assertions: bool = ...,
    validate_static_shapes: bool = ...,
    enable_shardy: bool = ...,
) -> bytes: ...
