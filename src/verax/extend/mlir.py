"""StableHLO as bytes that other versions read, as `jax.extend.mlir` (floor 6).

A portable artifact is a module in the form of one version of StableHLO; later versions
of jaxlib read it for five years::

    data = serialize_portable_artifact(jit(f).lower(x).as_text(), "1.0.0")
    module = deserialize_portable_artifact(data)

>>> import verax
>>> text = verax.jit(verax.numpy.sin).lower(1.0).as_text()
>>> data = serialize_portable_artifact(text, "1.0.0")
>>> "stablehlo.sine" in str(deserialize_portable_artifact(data))
True
"""

from verax.backend.lowering import stablehlo_io

__all__ = [
    "deserialize_portable_artifact",
    "hlo_to_stablehlo",
    "serialize_portable_artifact",
]


def serialize_portable_artifact(
    mlir_module: object, target: str, use_mixed_serialization: bool = False
) -> bytes:
    """A module as a portable artifact.

    Args:
        mlir_module: the module: its text, its bytecode or an MLIR module.
        target: the version of StableHLO, such as "1.0.0".
        use_mixed_serialization: whether operations of other dialects may stay as they
            are; they are then tied to one version of MLIR.

    Raises:
        ValueError: the module is not StableHLO of that version, or there is none.
    """
    return stablehlo_io.portable(mlir_module, target, use_mixed_serialization)


def deserialize_portable_artifact(mlir_module: bytes, context: object = None) -> object:
    """The MLIR module of a portable artifact.

    Args:
        context: the MLIR context of the module, by default one of its own.

    Raises:
        ValueError: this jaxlib cannot read the bytes.
    """
    return stablehlo_io.module_of(mlir_module, context)


def hlo_to_stablehlo(computation: bytes) -> bytes:
    """The bytecode of a StableHLO module from a serialized HLO module.

    Raises:
        ValueError: the bytes are not an HLO module.
    """
    return stablehlo_io.from_hlo(computation)
