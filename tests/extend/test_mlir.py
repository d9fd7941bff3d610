"""Portable artifacts go to bytes and back."""

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.extend.mlir import (
    deserialize_portable_artifact,
    hlo_to_stablehlo,
    serialize_portable_artifact,
)


def test_there_and_back() -> None:
    lowered = verax.jit(lambda x: vnp.sin(x) + 1).lower(np.ones(3, np.float32))
    data = serialize_portable_artifact(lowered.as_text(), "1.0.0")
    assert b"StableHLO_v1.0.0" in data
    module = deserialize_portable_artifact(data)
    assert "stablehlo.sine" in str(module)
    for again in (str(module), module):
        data = serialize_portable_artifact(again, "1.0.0")
        assert str(deserialize_portable_artifact(data)) == str(module)


def test_hlo_becomes_stablehlo() -> None:
    hlo = verax.jit(vnp.sin).lower(np.ones(3, np.float32)).compiler_ir("hlo")
    actual = hlo_to_stablehlo(hlo.as_serialized_hlo_module_proto())
    data = serialize_portable_artifact(actual, "1.0.0")
    assert "stablehlo.sine" in str(deserialize_portable_artifact(data))


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="no portable form"):
        serialize_portable_artifact("not a module", "1.0.0")
    with pytest.raises(ValueError, match="this jaxlib can read"):
        deserialize_portable_artifact(b"not an artifact")
    with pytest.raises(ValueError, match="not an HLO module"):
        hlo_to_stablehlo(b"not an HLO module")
