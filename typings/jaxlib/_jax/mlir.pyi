"""The part of jaxlib's conversions between forms of modules that verax uses."""

from typing import Any

def serialize_portable_artifact(
    mlir_module: object, target: str, use_mixed_serialization: bool = False
) -> bytes: ...
def deserialize_portable_artifact(mlir_module: bytes, context: Any = None) -> Any: ...
