"""Arrays as strings, in files, and from memory of other libraries."""

from pathlib import Path
from typing import Any

import numpy as np

import verax
from tests.numpy.against import error_of, typed

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
        found = jnp.load(tmp_path / "x.npy")
        assert found.dtype == x.dtype
        assert found.tolist() == x.tolist()
    jnp.savez(tmp_path / "all.npz", jnp.ones(2), named=jnp.zeros(3))
    with jnp.load(tmp_path / "all.npz") as archive:
        assert sorted(archive) == ["arr_0", "named"]
    np.arange(3, dtype=np.int32).tofile(tmp_path / "raw")
    assert jnp.fromfile(tmp_path / "raw", np.int32).tolist() == [0, 1, 2]


def test_bytes_text_and_other_libraries() -> None:
    data = np.array([1, 2], np.int32).tobytes()
    found = jnp.frombuffer(data, dtype="int32", count=1, offset=4)
    assert typed(found) == ("int32", [2])
    assert jnp.frombuffer(data).dtype == "float32"
    assert typed(jnp.fromstring("1 2 3", sep=" ", dtype=int)) == ("int32", [1, 2, 3])
    assert typed(jnp.fromiter(range(3), dtype=int)) == ("int32", [0, 1, 2])
    assert typed(jnp.from_dlpack(np.ones(2, np.float32))) == ("float32", [1, 1])
    assert typed(jnp.from_dlpack(np.ones(2))) == ("float32", [1, 1])
    assert typed(jnp.from_dlpack(jnp.arange(3), copy=True)) == ("int32", [0, 1, 2])
    assert "__dlpack__" in error_of(lambda: jnp.from_dlpack([1]), TypeError)
    assert issubclass(jnp.ComplexWarning, Warning)
