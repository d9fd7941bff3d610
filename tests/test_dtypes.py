"""`verax.dtypes`: questions about dtypes."""

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import dtypes


def test_dtypes_answer() -> None:
    assert dtypes.canonicalize_dtype(int) == np.int32
    assert [dtypes.itemsize_bits(t) for t in ("int4", "bool", float)] == [4, 8, 64]
    assert dtypes.scalar_type_of(vnp.ones(2, "bfloat16")) is float
    assert dtypes.issubdtype(verax.random.key(0).dtype, dtypes.prng_key)
    with pytest.raises(TypeError, match="allow_extended_dtype=True"):
        dtypes.canonicalize_dtype(verax.random.key(0).dtype)
