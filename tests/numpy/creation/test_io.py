"""Arrays as strings, in files, and from memory of other libraries."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verax
from tests.numpy.against import error_of, typed
from verax.ir.dtypes import NUMERIC

jnp: Any = verax.numpy


def test_text() -> None:
    x = jnp.array([1.0, 2.123456])
    assert jnp.array_repr(x, precision=2) == "Array([1.  , 2.12], dtype=float32)"
    assert jnp.array_str(x, precision=1) == "[1.  2.1]"
    with jnp.printoptions(precision=3):
        assert jnp.get_printoptions()["precision"] == 3
        assert str(x) == "[1.    2.123]"


def test_files(tmp_path: Path) -> None:
    for dtype in ("float32", "int8", "bfloat16", "complex64"):
        x = jnp.arange(4).astype(dtype)
        jnp.save(tmp_path / "x.npy", x)
        actual = jnp.load(tmp_path / "x.npy")
        assert actual.dtype == x.dtype
        assert actual.tolist() == x.tolist()
    jnp.savez(tmp_path / "all.npz", jnp.ones(2), named=jnp.zeros(3))
    with jnp.load(tmp_path / "all.npz") as archive:
        assert sorted(archive) == ["arr_0", "named"]
    np.arange(3, dtype=np.int32).tofile(tmp_path / "raw")
    assert jnp.fromfile(tmp_path / "raw", np.int32).tolist() == [0, 1, 2]


def test_bytes_text_and_other_libraries() -> None:
    data = np.array([1, 2], np.int32).tobytes()
    actual = jnp.frombuffer(data, dtype="int32", count=1, offset=4)
    assert typed(actual) == ("int32", [2])
    assert jnp.frombuffer(data).dtype == "float32"
    assert typed(jnp.fromstring("1 2 3", sep=" ", dtype=int)) == ("int32", [1, 2, 3])
    assert typed(jnp.fromiter(range(3), dtype=int)) == ("int32", [0, 1, 2])
    assert typed(jnp.from_dlpack(np.ones(2, np.float32))) == ("float32", [1, 1])
    assert typed(jnp.from_dlpack(np.ones(2))) == ("float32", [1, 1])
    assert typed(jnp.from_dlpack(jnp.arange(3), copy=True)) == ("int32", [0, 1, 2])
    assert "__dlpack__" in error_of(lambda: jnp.from_dlpack([1]), TypeError)
    assert issubclass(jnp.ComplexWarning, Warning)


@pytest.mark.parametrize("dtype", NUMERIC, ids=str)
def test_what_was_saved_is_loaded(dtype: Any, tmp_path: Path) -> None:
    path, archive = tmp_path / "x.npy", tmp_path / "x.npz"
    with verax.enable_x64():
        for shape in ((), (0,), (3,), (2, 0), (2, 3)):
            x = jnp.asarray(np.arange(np.prod(shape)).reshape(shape) % 2, dtype)
            jnp.save(path, x)
            jnp.savez(archive, x, named=x)
            actual = [jnp.load(path)]
            if x.size:
                actual.append(jnp.load(path, mmap_mode="r"))
            with jnp.load(archive) as arrays:
                assert sorted(arrays.files) == sorted(arrays) == ["arr_0", "named"]
                actual += [arrays["named"], arrays["arr_0"]]
            for y in actual:
                assert (y.dtype, y.shape) == (x.dtype, x.shape)
                assert np.asarray(y).tobytes() == np.asarray(x).tobytes()


def test_files_of_numpy(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    # Two bytes without a name are a bfloat16, as in JAX; one byte may be anything.
    np.save(path, jnp.ones(2, "bfloat16"))
    assert jnp.load(path).tolist() == [1, 1]
    np.save(path, jnp.ones(2, "float8_e4m3fn"))
    assert jnp.load(path).view("float8_e4m3fn").tolist() == [1, 1]
    jnp.save(path, jnp.ones(2, "float8_e4m3fn"))
    read = np.load(path)
    assert read.dtype.names == ("float8_e4m3fn",)
    assert read.view(jnp.float8_e4m3fn.dtype).tolist() == [1, 1]
    np.save(path, np.array(["text"]))
    assert jnp.load(path).tolist() == ["text"]
    text = error_of(lambda: jnp.load(tmp_path / "no.npy"), FileNotFoundError)
    assert "no.npy" in text
