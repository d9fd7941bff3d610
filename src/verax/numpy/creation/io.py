"""Floor 6: arrays from files, bytes, text and other libraries, and as text.

NumPy reads and writes, with its own options; what it reads becomes an array::

    save("x.npy", x), load("x.npy"), frombuffer(data, "int32"), from_dlpack(tensor)
    with printoptions(precision=2):
        print(x)
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import IO, Any, Final, Self

import numpy as np

from verax.backend.arrays.concrete import wrapper
from verax.backend.placement.sharding import Sharding, SingleDeviceSharding
from verax.backend.runtime import buffers
from verax.backend.runtime.client import Device, local_devices
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import (
    NUMERIC,
    DTypeLike,
    NumpyDType,
    as_dtype,
    canonical,
    numpy_dtype,
)
from verax.numpy.arguments.arguments import ArrayLike, as_array
from verax.numpy.creation.creation import asarray
from verax.rules.values.array import Array
from verax.rules.values.state import STATE

ComplexWarning = np.exceptions.ComplexWarning

type File = IO[bytes] | str | os.PathLike[Any]


# Dtypes of which the format of NumPy keeps the bytes, or a name that it cannot read.
NAMED: Final[Mapping[str, NumpyDType]] = MappingProxyType(
    {dtype.name: numpy_dtype(dtype) for dtype in NUMERIC if dtype.isbuiltin == 2}
)


def in_file(x: object) -> np.ndarray:
    """An array as it is written: what NumPy has no name for in a field of that name.

    That goes for all but bfloat16, whose two bytes `load` knows, here and in JAX.
    """
    values = np.asarray(x)
    name = values.dtype.name
    if name not in NAMED or name == "bfloat16":
        return values
    return values.view(np.dtype([(name, f"V{values.dtype.itemsize}")]))


def from_file(values: np.ndarray) -> np.ndarray:
    """An array that was read, in the dtype that it was saved in."""
    names = values.dtype.names or ()
    if len(names) == 1 and names[0] in NAMED:
        return values.view(NAMED[names[0]])
    return values.view(NAMED["bfloat16"]) if values.dtype == np.dtype("V2") else values


def save(file: File, arr: object, allow_pickle: bool = True) -> None:
    """Write an array to a file of NumPy's format, from which `load` has it again.

    Dtypes that NumPy does not know, such as float8_e4m3fn, are there as the only field
    of a structured dtype, which `numpy.load` gives.

    Args:
        file: a path, which gets the ending .npy if it lacks it, or a file that is open
            for writing bytes.
        arr: an array, or what NumPy makes one of.
        allow_pickle: whether an array of Python objects may be written, by pickling
            them.

    Returns:
        None; the array is in the file.

    >>> import io
    >>> import verax.numpy as vnp
    >>> file = io.BytesIO()
    >>> vnp.save(file, vnp.array([1.5, 2.5], dtype=vnp.float8_e4m3fn))
    >>> _ = file.seek(0)
    >>> vnp.load(file)
    Array([1.5, 2.5], dtype=float8_e4m3fn)
    """
    np.save(file, in_file(arr), allow_pickle=allow_pickle)


def savez(file: File, *args: object, allow_pickle: bool = True, **kwds: object) -> None:
    """Write several arrays to one archive: the named ones, others as arr_0, arr_1.

    Args:
        file: a path, which gets the ending .npz if it lacks it, or a file that is open
            for writing bytes.
        *args: arrays that are called arr_0, arr_1 and so on.
        allow_pickle: whether arrays of Python objects may be written, by pickling them.
        **kwds: arrays under the names that they get in the archive.

    Returns:
        None; the arrays are in the file.

    >>> import io
    >>> import verax.numpy as vnp
    >>> file = io.BytesIO()
    >>> vnp.savez(file, vnp.arange(2), weights=vnp.ones(3))
    >>> _ = file.seek(0)
    >>> {name: x.tolist() for name, x in vnp.load(file).items()}
    {'weights': [1.0, 1.0, 1.0], 'arr_0': [0, 1]}
    """
    named = {name: in_file(x) for name, x in kwds.items()}
    np.savez(file, *[in_file(x) for x in args], allow_pickle=allow_pickle, **named)


class Archive(Mapping[str, Any]):
    """NumPy's mapping of an archive, with arrays in the dtypes they were saved in."""

    def __init__(self, read: Any) -> None:
        self.read = read

    def __getitem__(self, name: str) -> Any:
        out = self.read[name]
        return from_file(out) if isinstance(out, np.ndarray) else out

    def __iter__(self) -> Iterator[str]:
        return iter(self.read)

    def __len__(self) -> int:
        return len(self.read)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.read, name)

    def __enter__(self) -> Self:
        self.read.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self.read.__exit__(*raised)

    def __repr__(self) -> str:
        return repr(self.read)


def load(file: File, *args: Any, **kwargs: Any) -> Any:
    """The array in a file of NumPy's format; of an archive, a mapping to NumPy arrays.

    What is not an array here, such as text, stays as NumPy reads it.

    Args:
        file: a path, or a file that is open for reading bytes.
        *args: further arguments of `numpy.load`, by position.
        **kwargs: further arguments of `numpy.load`, such as `allow_pickle`.

    Returns:
        an array in the dtype that was saved, in 32 bits unless x64 is on; or a mapping
        from names to arrays of NumPy, which can be closed.

    >>> import io
    >>> import verax.numpy as vnp
    >>> file = io.BytesIO()
    >>> vnp.save(file, vnp.array([1.5, 2.5], dtype=vnp.bfloat16))
    >>> _ = file.seek(0)
    >>> vnp.load(file)
    Array([1.5, 2.5], dtype=bfloat16)
    """
    out = np.load(file, *args, **kwargs)
    if isinstance(out, np.lib.npyio.NpzFile):
        return Archive(out)
    if not isinstance(out, np.ndarray):
        return out
    values = from_file(out)
    try:
        return asarray(values)
    except TypeError:
        return values


def frombuffer(
    buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0
) -> Array:
    r"""The elements that bytes hold, `count` of them from byte `offset` on.

    They are copied, unlike in NumPy.

    Args:
        buffer: bytes, or another object with the buffer protocol.
        dtype: the dtype of the elements in `buffer`; the default, `float`, means 8
            bytes each, even where the result is in float32 since x64 is off.
        count: the number of elements; -1 for all.
        offset: the number of bytes to skip.

    Returns:
        a vector in that dtype, in 32 bits unless x64 is on.

    >>> import verax.numpy as vnp
    >>> vnp.frombuffer(b"\x01\x02\x03\x04", dtype=vnp.uint8, count=2, offset=1)
    Array([2, 3], dtype=uint8)
    >>> vnp.frombuffer(b"\x01\x02\x03\x04", dtype=vnp.int16)
    Array([ 513, 1027], dtype=int16)
    """
    return asarray(np.frombuffer(buffer, numpy_dtype(as_dtype(dtype)), count, offset))


def fromstring(
    string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str
) -> Array:
    """The numbers in a string, separated by `sep`.

    Args:
        string: the text.
        dtype: the dtype of the numbers; float by default.
        count: how many numbers are read; -1 for all.
        sep: what stands between two numbers, not empty; white space around it is
            ignored.

    Returns:
        a vector in that dtype, in 32 bits unless x64 is on.

    >>> import verax.numpy as vnp
    >>> vnp.fromstring("1, 2.5,3", sep=",")
    Array([1. , 2.5, 3. ], dtype=float32)
    >>> vnp.fromstring("4 5 6", dtype=int, count=2, sep=" ")
    Array([4, 5], dtype=int32)
    """
    return asarray(np.fromstring(string, numpy_dtype(as_dtype(dtype)), count, sep=sep))


def fromfile(*args: Any, **kwargs: Any) -> Array:
    r"""`numpy.fromfile`, as an array; under a trace it is read once, as a constant.

    Args:
        *args: the arguments of `numpy.fromfile`: the file, the dtype of its elements,
            their count and, for text, the separator.
        **kwargs: the same arguments by name, and `offset`, the number of bytes to skip.

    Returns:
        a vector in that dtype, in 32 bits unless x64 is on.

    >>> import tempfile
    >>> import verax.numpy as vnp
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"\x01\x02\x03\x04")
    ...     file.flush()
    ...     vnp.fromfile(file.name, dtype="uint8", offset=1)
    Array([2, 3, 4], dtype=uint8)
    """
    return asarray(np.fromfile(*args, **kwargs))


def fromiter(iter: Iterable[object], dtype: DTypeLike, count: int = -1) -> Array:
    """The elements of an iterable, which is used up; under a trace, a constant.

    Args:
        iter: an iterable of numbers.
        dtype: the dtype of the elements.
        count: how many elements are read; -1 for all.

    Returns:
        a vector in that dtype, in 32 bits unless x64 is on.

    >>> import verax.numpy as vnp
    >>> vnp.fromiter((n * n for n in range(10)), dtype=int, count=4)
    Array([0, 1, 4, 9], dtype=int32)
    """
    return asarray(np.fromiter(iter, numpy_dtype(as_dtype(dtype)), count))


def one_device(place: Device | Sharding) -> Device:
    """A device, or that of a sharding.

    Raises:
        ValueError: it has several.
    """
    if not isinstance(place, Sharding):
        return place
    if place.num_devices != 1:
        raise ValueError(
            f"from_dlpack makes an array on one device, but {place} has "
            f"{place.num_devices}"
        )
    (device,) = place.device_set
    return device


def from_dlpack(
    x: object, /, *, device: Device | Sharding | None = None, copy: bool | None = None
) -> Array:
    """The array of another library, sharing its memory where that is possible.

    Without 64-bit types, wide elements are copied to narrow ones. The other library
    must not write to shared memory.

    Args:
        x: an array with a method `__dlpack__`.
        device: a device, or a sharding over one device, to put the result on; None for
            the first local one.
        copy: True to copy always, None to copy where memory cannot be shared; False to
            refuse there.

    Returns:
        an array with the shape and values of `x`, and its dtype, in 32 bits unless x64
        is on.

    Raises:
        TypeError: `x` has no `__dlpack__`.
        ValueError: `copy=False`, but elements have to be narrowed, or the memory is
            strided, not aligned to 64 bytes, or not on the device; a sharding has
            several devices.
        BufferError: the memory is of a kind that the device cannot take.

    >>> import numpy as np
    >>> import verax.numpy as vnp
    >>> vnp.from_dlpack(np.arange(3, dtype="int64"), copy=True)
    Array([0, 1, 2], dtype=int32)
    """
    place = local_devices()[0] if device is None else one_device(device)
    buffer = buffers.from_dlpack(x, place, copy=copy)
    dtype = as_dtype(buffer.aval.dtype)
    if canonical(dtype, STATE.enable_x64) == dtype:
        aval = ShapedArray(tuple(buffer.aval.shape), dtype)
        where = SingleDeviceSharding(place)
        return wrapper(aval, where, device is not None)(buffer)
    if copy is False:
        raise ValueError(
            f"from_dlpack: narrowing {dtype} to 32 bits needs a copy; leave copy at "
            'None, or turn 64-bit types on with verax.config.update("enable_x64", '
            "True)"
        )
    return asarray(buffers.to_numpy(buffer))


def chosen(
    max_line_width: int | None, precision: int | None, suppress_small: bool | None
) -> AbstractContextManager[Any]:
    """NumPy's options with those that are given."""
    given = {
        "linewidth": max_line_width,
        "precision": precision,
        "suppress": suppress_small,
    }
    return printoptions(**{k: v for k, v in given.items() if v is not None})


def array_repr(
    arr: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The string of an array with its dtype, as in `repr`.

    Args:
        arr: an array or scalar.
        max_line_width: the number of characters of a line; None for the option
            `linewidth`.
        precision: the number of digits after the point; None for the option.
        suppress_small: whether numbers that round to 0 are printed as such, not with
            exponents; None for the option `suppress`.

    Returns:
        a string.

    >>> import verax.numpy as vnp
    >>> vnp.array_repr(vnp.array([1.23456, 2e-9]), precision=2, suppress_small=True)
    'Array([1.23, 0.  ], dtype=float32)'
    """
    with chosen(max_line_width, precision, suppress_small):
        return repr(as_array("array_repr", arr))


def array_str(
    a: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The string of an array's elements, as in `str`.

    Args:
        a: an array or scalar.
        max_line_width: the number of characters of a line; None for the option
            `linewidth`.
        precision: the number of digits after the point; None for the option.
        suppress_small: whether numbers that round to 0 are printed as such, not with
            exponents; None for the option `suppress`.

    Returns:
        a string.

    >>> import verax.numpy as vnp
    >>> vnp.array_str(vnp.array([1.23456, 2e-9]), precision=2)
    '[1.23e+00 2.00e-09]'
    """
    with chosen(max_line_width, precision, suppress_small):
        return str(as_array("array_str", a))


def get_printoptions() -> dict[str, Any]:
    """The options by which NumPy, and so verax, prints arrays.

    Returns:
        a dictionary of the options by name: `precision`, `threshold`, `edgeitems`,
        `linewidth`, `suppress` and others.

    >>> import verax.numpy as vnp
    >>> with vnp.printoptions(precision=3):
    ...     vnp.get_printoptions()["precision"]
    3
    """
    return dict(np.get_printoptions())


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Set NumPy's options of printing, which are those of verax too.

    Args:
        *args: the options of `numpy.set_printoptions` by position, `precision` first.
        **kwargs: the options by name.

    Returns:
        None; the options hold until they are set again.

    >>> import verax.numpy as vnp
    >>> before = vnp.get_printoptions()
    >>> vnp.set_printoptions(precision=3)
    >>> vnp.array([2 / 3])
    Array([0.667], dtype=float32)
    >>> vnp.set_printoptions(**before)
    """
    np.set_printoptions(*args, **kwargs)


def printoptions(*args: Any, **kwargs: Any) -> AbstractContextManager[Any]:
    """NumPy's options of printing, set within a block.

    Args:
        *args: the options of `numpy.set_printoptions` by position, `precision` first.
        **kwargs: the options by name.

    Returns:
        a context manager; it gives the options as a dictionary.

    >>> import verax.numpy as vnp
    >>> with vnp.printoptions(precision=2, suppress=True):
    ...     print(vnp.array([1.23456, 2e-9]))
    [1.23 0.  ]
    """
    return np.printoptions(*args, **kwargs)
