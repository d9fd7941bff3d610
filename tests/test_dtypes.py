"""`verax.dtypes`: questions about dtypes."""

import copy
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import dtypes, lax


def test_dtypes_answer() -> None:
    assert dtypes.canonicalize_dtype(int) == np.int32
    assert [dtypes.itemsize_bits(t) for t in ("int4", "bool", float)] == [4, 8, 64]
    assert dtypes.scalar_type_of(vnp.ones(2, "bfloat16")) is float
    assert dtypes.issubdtype(verax.random.key(0).dtype, dtypes.prng_key)
    with pytest.raises(ValueError, match="allow_extended_dtype=True"):
        dtypes.canonicalize_dtype(verax.random.key(0).dtype)


def test_scalar_types_are_classes() -> None:
    kinds = [vnp.float32, vnp.int4, vnp.bfloat16, vnp.bool_, vnp.complex64]
    for kind in kinds:
        assert isinstance(kind, type)
        assert pickle.loads(pickle.dumps(kind)) is copy.deepcopy(kind) is kind
        scalar = kind.dtype.type
        assert {kind: 1}[scalar] == {scalar: 1}[kind]
        assert [kind, kind.dtype, kind] == [kind.dtype, kind, np.dtype(kind)]
        assert isinstance(scalar(1), kind)
        assert not isinstance(kind(1), kind)
        assert repr(kind) == f"<class 'verax.numpy.{kind.__name__}'>"
    assert vnp.float32 not in [float, vnp.float64, np.float16, "float32", 1]
    assert not issubclass(vnp.float32, np.floating)
    assert dtypes.issubdtype(vnp.float32, np.floating)
    assert dtypes.bfloat16 is ml_dtypes.bfloat16 is vnp.bfloat16.dtype.type
    with pytest.raises(TypeError, match="missing 1 required"):
        vnp.float32()


def test_issubdtype_of_categories_and_of_dtypes_of_numpy_alone() -> None:
    yes = [
        *[(np.generic, np.generic), (np.integer, np.number), (None, np.floating)],
        *[(np.dtype("S1"), np.character), (np.dtype("M8[s]"), np.generic)],
        *[(dtypes.float0, np.void), (dtypes.prng_key, dtypes.extended)],
        *[("int8", np.signedinteger), (vnp.bfloat16, np.generic)],
    ]
    no = [
        *[(np.generic, vnp.float32), (np.floating, np.float32), (object, np.floating)],
        *[(vnp.bfloat16, np.float16), (dtypes.float0, np.floating), (bool, np.integer)],
        *[(dtypes.prng_key, np.integer), (np.int32, np.float32), (float, vnp.float32)],
    ]
    assert [pair for pair in yes if not dtypes.issubdtype(*pair)] == []
    assert [pair for pair in no if dtypes.issubdtype(*pair)] == []
    with pytest.raises(TypeError, match="nonsense"):
        dtypes.issubdtype("nonsense", np.floating)


def test_none_is_the_default_float_and_the_weak_flag_is_returned() -> None:
    assert dtypes.canonicalize_dtype(None) == dtypes.result_type(None) == np.float32
    assert dtypes.result_type(1, return_weak_type_flag=True) == (np.int32, True)
    assert dtypes.result_type("int8", 1, return_weak_type_flag=True) == (np.int8, False)
    with pytest.raises(TypeError, match="unknown kind"):
        vnp.isdtype(vnp.float32, np.floating)
    with pytest.raises(ValueError, match="unknown kind"):
        vnp.isdtype(vnp.float32, "small")


def test_isscalar_asks_what_stands_for_an_array() -> None:
    class Wrapped:
        def __init__(self, x: Any) -> None:
            self.x = x

        def __jax_array__(self) -> Any:
            return self.x

    assert vnp.isscalar(Wrapped(vnp.array(1)))
    assert not vnp.isscalar(Wrapped(vnp.ones(1)))


def test_isscalar_takes_strings() -> None:
    scalars = [1, 1.0, "a", np.float32(1), vnp.float32(1)]
    assert all(map(vnp.isscalar, scalars))
    assert not any(map(vnp.isscalar, [None, [1], np.ones(2), vnp.ones(2)]))


def test_an_array_is_no_dtype() -> None:
    x = vnp.ones(2)
    for convert in (lax.convert_element_type, lax.bitcast_convert_type):
        for array in (x, np.ones(2)):
            with pytest.raises(ValueError, match="an array is not a dtype"):
                convert(x, array)
    assert lax.convert_element_type(x, ml_dtypes.bfloat16).dtype == ml_dtypes.bfloat16
