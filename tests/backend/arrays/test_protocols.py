"""Arrays in Python's own protocols, and those of other libraries."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.ir.dtypes import NUMERIC

NAMES = [dtype.name for dtype in NUMERIC]
SMALL = ("int2", "int4", "uint2", "uint4", "float4_e2m1fn")
STANDARD = [dtype.name for dtype in NUMERIC if dtype.num < 256]


def sample(name: str, shape: tuple[int, ...] = (3,)) -> Any:
    """0, 1, 0, 1, ... which every dtype has; in the smallest float 1, 2, ..."""
    count = int(np.prod(shape))
    start = 1 if name == "float8_e8m0fnu" else 0
    with verax.enable_x64():
        return vnp.asarray(np.arange(start, start + count) % 2 + start).astype(name)


def computed(shape: tuple[int, ...] = (4,)) -> Any:
    """An array that lies on the device, and not in NumPy."""
    return verax.jit(lambda: vnp.ones(shape))()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2)])
def test_copies_and_pickles_keep_type_and_values(
    name: str, shape: tuple[int, ...]
) -> None:
    x = sample(name, shape)
    again = pickle.loads(pickle.dumps(x))
    for y in (again, copy.copy(x), copy.deepcopy(x), verax.jit(lambda x: x)(x)):
        assert (y.dtype, y.shape, y.weak_type) == (x.dtype, x.shape, x.weak_type)
        assert np.asarray(y).tobytes() == np.asarray(x).tobytes()
        assert repr(y) == repr(x)


def test_keys_are_pickled_and_copied() -> None:
    keys = verax.random.split(verax.random.key(7), 2)
    words = verax.random.key_data(keys).tolist()
    for y in (pickle.loads(pickle.dumps(keys)), copy.copy(keys), copy.deepcopy(keys)):
        assert y.dtype == keys.dtype
        assert verax.random.key_data(y).tolist() == words


@pytest.mark.parametrize("name", STANDARD)
def test_buffers_show_the_memory(name: str) -> None:
    x = sample(name)
    view = memoryview(x)
    assert view.readonly
    assert view.shape == (3,)
    assert np.asarray(view).dtype == x.dtype
    assert bytes(x) == np.asarray(x).tobytes()


def test_there_are_no_buffers_of_other_dtypes_nor_for_writing() -> None:
    key: Any = verax.random.key(0)
    for x in (sample("bfloat16"), sample("int4"), key):
        with pytest.raises(BufferError, match="no elements of dtype"):
            memoryview(x)
    with pytest.raises(BufferError, match="immutable"):
        sample("int8").__buffer__(1)
    assert np.asarray(sample("bfloat16")).dtype.name == "bfloat16"


def test_conversion_to_numpy() -> None:
    x = vnp.arange(3.0)
    assert not np.asarray(x).flags.writeable
    assert np.array(x).flags.writeable
    assert np.asarray(x, dtype=np.int64).dtype == np.int64
    assert np.shares_memory(np.array(x, copy=False), np.asarray(x))
    with pytest.raises(ValueError, match="copy"):
        np.array(x, dtype=np.float64, copy=False)
    with pytest.raises(ValueError, match="needs a copy"):
        x.__array__(np.dtype(np.float64), copy=False)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in SMALL])
def test_dlpack_of_every_dtype(name: str) -> None:
    x = sample(name)
    with verax.enable_x64():
        y = verax.dlpack.from_dlpack(x)
    assert verax.dlpack.is_supported_dtype(x.dtype)
    assert (y.dtype, y.tolist()) == (x.dtype, x.tolist())
    if name in STANDARD and name != "bool":
        shared = np.from_dlpack(x)
        assert shared.dtype == x.dtype
        assert shared.ctypes.data == x.unsafe_buffer_pointer()


def test_dlpack_keywords() -> None:
    x = computed()
    assert np.from_dlpack(x).ctypes.data == x.unsafe_buffer_pointer()
    copied = np.from_dlpack(x, copy=True, device="cpu")
    assert copied.tolist() == [1] * 4
    assert copied.ctypes.data != x.unsafe_buffer_pointer()
    assert x.__dlpack__(max_version=(1, 1), dl_device=(1, 0), copy=False) is not None
    assert x.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="not on"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="no stream"):
        x.__dlpack__(stream=1)
    with pytest.raises(BufferError, match="key_data"):
        verax.random.key(0).__dlpack__()  # type: ignore[attr-defined]  # of values
    for name in SMALL:
        assert not verax.dlpack.is_supported_dtype(name)
        with pytest.raises(BufferError, match=name):
            sample(name).__dlpack__()


def test_dlpack_with_torch() -> None:
    torch = pytest.importorskip("torch")
    x = computed()
    tensor = torch.from_dlpack(x)
    assert tensor.tolist() == x.tolist()
    assert vnp.from_dlpack(tensor * 2).tolist() == [2] * 4
    half = torch.ones(3, dtype=torch.bfloat16)
    assert vnp.from_dlpack(half).dtype.name == "bfloat16"


def test_deleting_what_is_lent_out_is_safe() -> None:
    x = computed()
    lent = np.from_dlpack(x)
    x.delete()
    assert x.is_deleted()
    assert lent.tolist() == [1] * 4
    y = computed()
    seen = memoryview(y)
    y.delete()
    assert seen.tolist() == [1] * 4


def test_donating_what_is_lent_out_leaves_it() -> None:
    x = computed()
    lent = np.from_dlpack(x)
    add = verax.jit(lambda x: x + 1, donate_argnums=0)
    for given in (x, verax.device_put(computed(), verax.devices()[0])):
        lent = np.from_dlpack(given)
        assert add(given).tolist() == [2] * 4
        assert given.is_deleted()
        assert lent.tolist() == [1] * 4


USES: dict[str, Callable[[Any], object]] = {
    "repr": repr,
    "str": str,
    "format": format,
    "numpy": np.asarray,
    "memoryview": memoryview,
    "float": lambda x: float(x[0]),
    "iter": list,
    "operator": lambda x: x + 1,
    "tolist": lambda x: x.tolist(),
    "jit": lambda x: verax.jit(lambda x: x + 1)(x),
    "captured": lambda x: verax.jit(lambda y: x + y)(1.0),
    "grad": verax.grad(lambda x: x.sum()),
    "vmap": verax.vmap(lambda x: x + 1),
    "block_until_ready": lambda x: x.block_until_ready(),
    "block_until_ready of a tree": lambda x: verax.block_until_ready({"a": x}),
    "is_ready": lambda x: x.is_ready(),
    "copy_to_host_async": lambda x: x.copy_to_host_async(),
    "dlpack": lambda x: x.__dlpack__(),
    "dlpack device": lambda x: x.__dlpack_device__(),
    "pickle": pickle.dumps,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "device_put": verax.device_put,
    "device_get": verax.device_get,
    "pointer": lambda x: x.unsafe_buffer_pointer(),
    "donation": lambda x: verax.jit(lambda x: x + 1, donate_argnums=0)(x),
}


@pytest.mark.parametrize("use", USES)
def test_a_deleted_array_says_what_deleted_it(use: str) -> None:
    donate = verax.jit(lambda x: x * 2, donate_argnums=0)
    x, y = computed(), computed()
    z: Any = vnp.ones(4)
    x.delete()
    donate(y)
    z.delete()
    for gone, how in (
        (x, "x.delete"),
        (y, "donated to <lambda>"),
        (z, "test_protocols"),
    ):
        with pytest.raises(RuntimeError, match=f"shape=float32.4.. .*{how}"):
            USES[use](gone)
        assert gone.is_deleted()
        gone.delete()
        assert (gone.shape, gone.dtype.name, gone.nbytes) == ((4,), "float32", 16)


@pytest.mark.parametrize("shape", [(), (3,), (2, 0)])
def test_sizes(shape: tuple[int, ...]) -> None:
    for name, size in (("float64", 8), ("bfloat16", 2), ("int4", 1), ("complex64", 8)):
        x = sample(name, shape)
        assert (x.itemsize, x.nbytes) == (size, size * int(np.prod(shape)))
        assert x.on_device_size_in_bytes() >= 0


def test_python_asks_for_numbers() -> None:
    assert [10, 20, 30][vnp.int32(1)] == 20
    assert list(range(vnp.int32(2))) == [0, 1]
    with pytest.raises(TypeError, match="integer scalar"):
        [1][vnp.float32(0)]
    assert f"{vnp.float32(1.5):.2f} {vnp.int32(3):03d}" == "1.50 003"
    assert f"{vnp.arange(2)}" == "[0 1]"
    assert vnp.arange(6).reshape(2, 3).item(1, 2) == 5
    assert vnp.arange(6).reshape(2, 3).item(4) == 4
    with pytest.raises(TypeError, match="unhashable"):
        hash(vnp.ones(2))
    with pytest.raises(TypeError, match="0-d array"):
        iter(vnp.float32(1))
    for name in NAMES:
        x = sample(name)
        kind = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
        expected = kind.get(x.dtype.kind, int if "int" in name else float)
        assert type(x[1].item()) is type(x.tolist()[1]) is expected


@pytest.mark.parametrize("name", NAMES)
def test_printing(name: str) -> None:
    x = sample(name)
    kind = "i" if "int" in name else x.dtype.kind if x.dtype.kind in "bc" else "f"
    text = {
        "i": "[0, 1, 0]",
        "f": "[0., 1., 0.]",
        "b": "[False,  True, False]",
        "c": "[0.+0.j, 1.+0.j, 0.+0.j]",
    }[kind]
    if name == "float8_e8m0fnu":
        text = "[2., 1., 2.]"
    assert repr(x) == f"Array({text}, dtype={name})"
    assert str(x) == text.replace(",", "")


def test_the_array_api_namespace() -> None:
    x = vnp.ones(3)
    assert x.__array_namespace__() is vnp
    assert x.__array_namespace__(api_version=vnp.__array_api_version__) is vnp
    with pytest.raises(ValueError, match=r"2019\.01"):
        x.__array_namespace__(api_version="2019.01")
    assert verax.jit(lambda x: x.__array_namespace__().sin(x))(0.0) == 0
    info = vnp.__array_namespace_info__()
    assert info.capabilities()["max dimensions"] == 64
    assert info.default_dtypes()["real floating"] == np.float32
    assert sorted(info.dtypes(kind=("bool", "integral"))) == [
        *("bool", "int16", "int32", "int8", "uint16", "uint32", "uint8"),
    ]
    with verax.enable_x64():
        assert len(info.dtypes()) == 13
        assert info.default_dtypes()["indexing"] == np.int64
    assert set(info.devices()) == {None, *verax.devices()}
    assert info.default_device() is None
    with pytest.raises(ValueError, match="unknown kind of dtypes 'real'"):
        info.dtypes(kind="real")
    for name, dtype in info.dtypes().items():
        assert getattr(vnp, name).dtype == dtype


def test_places() -> None:
    x: Any = vnp.arange(3)
    device, *_ = verax.devices()
    there = x.to_device(device)
    assert (there.tolist(), there.committed) == ([0, 1, 2], True)
    assert x.astype("float32", device=device).devices() == {device}
    assert there.addressable_data(0).tolist() == [0, 1, 2]
    with pytest.raises(NotImplementedError, match="stream"):
        x.to_device(device, stream=1)
