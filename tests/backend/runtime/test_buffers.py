"""Arrays reach the device and come back unchanged, whatever their type and layout."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import DTypeLike, NDArray

from tests.backend.programs import VECTOR, compiled, on_device, vector
from verax.backend.runtime import buffers
from verax.backend.runtime.buffers import Aval
from verax.backend.runtime.client import ClientOptions, local_devices, start_client

STANDARD = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
EXTENDED = (
    *("bfloat16", "int2", "int4", "uint2", "uint4", "float4_e2m1fn"),
    *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn"),
    *("float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
)
SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (3,), (0,), (2, 0, 3), (2, 3))


def dtype_named(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


def sample(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    return (np.arange(np.prod(shape, dtype=int)) % 2).reshape(shape).astype(dtype)


def aligned(count: int) -> NDArray[np.float32]:
    """Memory at an address that the device can alias."""
    memory = np.zeros(count * 4 + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + count * 4].view(np.float32)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", [*STANDARD, *EXTENDED])
@pytest.mark.parametrize("copy", [False, True])
def test_round_trip(name: str, shape: tuple[int, ...], copy: bool) -> None:
    array = sample(shape, dtype_named(name))
    buffer = buffers.from_numpy(array, local_devices()[0], copy=copy)
    result = buffers.to_numpy(buffer)
    assert (result.dtype, result.shape) == (array.dtype, array.shape)
    assert result.tobytes() == array.tobytes()
    assert not result.flags.writeable
    assert (buffer.aval.shape, buffer.aval.dtype) == (array.shape, array.dtype)


def test_aligned_memory_is_shared_both_ways_and_a_copy_is_not() -> None:
    array = aligned(256)
    device = local_devices()[0]
    shared = buffers.from_numpy(array, device, copy=False)
    copied = buffers.from_numpy(array, device, copy=True)
    assert np.shares_memory(buffers.to_numpy(shared), array)
    array[0] = 1.0
    assert buffers.to_numpy(copied)[0] == 0.0
    assert np.shares_memory(buffers.to_numpy(copied), buffers.to_numpy(copied))


@pytest.mark.parametrize(
    "array",
    [
        pytest.param(vector()[::-1], id="negative stride"),
        pytest.param(np.arange(12.0).reshape(3, 4)[::2, 1::2], id="strided"),
        pytest.param(np.asfortranarray(np.arange(6.0).reshape(2, 3)), id="fortran"),
        pytest.param(np.broadcast_to(np.float32(3), (3, 2)), id="broadcast"),
        pytest.param(np.arange(3, dtype=">f4"), id="big endian"),
        pytest.param(np.zeros(33, np.uint8)[1:].view(np.float32), id="misaligned"),
        pytest.param(np.arange(5, dtype=">i8")[::2], id="big endian, strided"),
    ],
)
def test_layouts(array: NDArray[Any]) -> None:
    result = buffers.to_numpy(on_device(array))
    assert np.array_equal(result, array)
    assert result.dtype == array.dtype.newbyteorder("=")


@pytest.mark.parametrize(
    "array",
    [
        np.array([None]),
        np.array(["a"]),
        np.array(["2020-01-01"], "M8[s]"),
        np.zeros(2, "i4,f4"),
        np.ones(2, np.longdouble),
    ],
)
def test_types_without_a_device_representation(array: NDArray[Any]) -> None:
    with pytest.raises(TypeError, match="cannot live on a device"):
        on_device(array)


def test_aval_of_the_caller_is_kept_and_checked() -> None:
    device = local_devices()[0]
    weak = Aval((8,), np.dtype(np.float32), True)
    kept = buffers.from_numpy(vector(), device, copy=True, aval=weak)
    assert kept.aval is weak
    for wrong in (Aval((9,), weak.dtype), Aval((8,), np.dtype(np.int32))):
        with pytest.raises(ValueError, match="does not describe"):
            buffers.from_numpy(vector(), device, copy=True, aval=wrong)


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_deleted_buffer_raises_everywhere(name: str) -> None:
    buffer = on_device(sample((3,), dtype_named(name)))
    assert not buffers.is_deleted(buffer)
    buffers.delete(buffer)
    buffers.delete(buffer)
    assert buffers.is_deleted(buffer)
    for use in (
        buffers.to_numpy,
        buffers.is_ready,
        buffers.to_dlpack,
        lambda each: buffers.block_until_ready([each]),
        lambda each: buffers.copy_to_host_async([each]),
        lambda each: buffers.copy_to_device(each, local_devices()[0]),
    ):
        with pytest.raises(RuntimeError, match="deleted or its memory was donated"):
            use(buffer)


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_values_read_before_a_deletion_stay(name: str) -> None:
    buffer = on_device(sample((64,), dtype_named(name)))
    view = buffers.to_numpy(buffer)
    buffers.delete(buffer)
    assert np.array_equal(view, sample((64,), dtype_named(name)))


def test_waiting_and_prefetching() -> None:
    several = [on_device(vector()), on_device(vector(3))]
    buffers.copy_to_host_async(several)
    buffers.block_until_ready(several)
    assert all(map(buffers.is_ready, several))
    assert np.array_equal(buffers.to_numpy(several[1]), vector(3))


def test_copies_between_devices_and_clients() -> None:
    first, second = start_client(ClientOptions(device_count=2)).devices()
    here = buffers.from_numpy(vector(), first, copy=True)
    there = buffers.copy_to_device(here, second)
    elsewhere = buffers.copy_to_device(here, local_devices()[0])
    assert buffers.copy_to_device(here, first) is here
    assert buffers.device_of(there) is second
    assert buffers.device_of(elsewhere) is local_devices()[0]
    for buffer in (there, elsewhere):
        assert buffer.aval is here.aval
        assert np.array_equal(buffers.to_numpy(buffer), vector())


class Producer:
    """An array of some other library that speaks DLPack."""

    def __init__(self, buffer: buffers.Buffer) -> None:
        self.buffer = buffer

    def __dlpack__(self, **_: Any) -> Any:
        return buffers.to_dlpack(self.buffer)

    def __dlpack_device__(self) -> tuple[int, int]:
        return buffers.to_dlpack_device(self.buffer)


@pytest.mark.parametrize("name", ["bool", "int64", "float32", "complex64", "bfloat16"])
@pytest.mark.parametrize("shape", [(), (3,), (0, 3), (2, 3)])
def test_dlpack_round_trip(name: str, shape: tuple[int, ...]) -> None:
    array = sample(shape, dtype_named(name))
    result = buffers.from_dlpack(Producer(on_device(array)), local_devices()[0])
    assert (result.aval.shape, result.aval.dtype) == (array.shape, array.dtype)
    assert np.array_equal(buffers.to_numpy(result), array)
    assert buffers.device_of(result) is local_devices()[0]


def test_dlpack_shares_memory_with_numpy() -> None:
    buffer = on_device(vector())
    view = np.from_dlpack(Producer(buffer))
    assert np.shares_memory(view, buffers.to_numpy(buffer))


def test_exported_buffer_is_never_deleted_under_its_reader() -> None:
    # Without the refusal the runtime would abort the whole process.
    buffer = on_device(vector())
    view = np.from_dlpack(Producer(buffer))
    with pytest.raises(RuntimeError, match="exported through DLPack"):
        buffers.delete(buffer)
    del buffer
    assert np.array_equal(view, vector())


def test_dlpack_of_what_numpy_cannot_export() -> None:
    device = local_devices()[0]
    frozen = vector()
    frozen.setflags(write=False)
    strided = np.arange(12, dtype=np.float32).reshape(3, 4)[::2]
    for array in (frozen, strided):
        result = buffers.from_dlpack(array, device)
        assert np.array_equal(buffers.to_numpy(result), array)
    copied = buffers.from_dlpack(Producer(on_device(vector())), device, copy=True)
    assert np.array_equal(buffers.to_numpy(copied), vector())
    with pytest.raises(TypeError, match="__dlpack__"):
        buffers.from_dlpack([1.0], device)
    brain = Producer(on_device(vector().astype(ml_dtypes.bfloat16)))
    copied = buffers.from_dlpack(brain, device, copy=True)
    assert np.array_equal(buffers.to_numpy(copied), vector())


def test_dlpack_has_no_four_bit_integers() -> None:
    with pytest.raises(BufferError, match="int4"):
        buffers.to_dlpack(on_device(sample((3,), ml_dtypes.int4)))


def test_single_device_sharding_is_one_object_per_device() -> None:
    device = local_devices()[0]
    assert buffers.single_device(device) is buffers.single_device(device)
    (result,) = compiled().execute([on_device(vector())])
    assert result.aval is VECTOR
