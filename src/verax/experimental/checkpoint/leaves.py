"""Leaves of a pytree as records and parts to write.

Each process writes the parts that are on its devices; of the copies of a part one is
written, and what is no array over devices is written by process 0::

    record, parts = describe("['w']", 0, w, process=0)
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from attrs import frozen

from verax.backend.arrays.concrete import ConcreteArray
from verax.backend.runtime.client import process_index
from verax.experimental.checkpoint.manifest import LeafRecord, ShardRecord
from verax.ir.dtypes import as_dtype, is_extended
from verax.ir.records import ReprMixin
from verax.random import key_data, key_impl
from verax.rules.values.array import Array

type Index = tuple[slice, ...]

UNSIGNED: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
PYTHON: Final = (bool, int, float, complex, str)


@frozen(eq=False, repr=False)
class Part(ReprMixin):
    """Values that this process writes: of which leaf, and from which index on."""

    leaf: int
    name: str
    start: tuple[int, ...]
    values: np.ndarray


def file_name(process: int) -> str:
    """The file with the values that a process wrote."""
    return f"process-{process}.npz"


def describe(path: str, number: int, leaf: object) -> tuple[LeafRecord, list[Part]]:
    """The record of a leaf, without shards, and the parts that this process writes.

    Raises:
        TypeError: the leaf is of a class that cannot be saved.
    """
    if type(leaf) in PYTHON:
        return LeafRecord(path, "python", type(leaf).__name__, (), value=put(leaf)), []
    if isinstance(leaf, ConcreteArray):
        return describe_array(path, number, leaf)
    if isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.hasobject is False:
        values = np.asarray(leaf)
        kind = "numpy" if isinstance(leaf, np.ndarray) else "scalar"
        record = LeafRecord(path, kind, dtype_name(values.dtype), values.shape)
        mine = process_index() == 0
        start = (0,) * values.ndim
        # A copy: NumPy arrays may be written to while a save goes on.
        return record, [part(number, start, values.copy())] if mine else []
    what = "a traced value" if isinstance(leaf, Array) else f"{type(leaf).__name__}"
    raise TypeError(
        f"a checkpoint holds arrays, NumPy arrays and Python numbers and strings, but "
        f"the leaf {path or 'itself'} is {what}: {leaf!r:.100}"
    )


def describe_array(
    path: str, number: int, leaf: ConcreteArray
) -> tuple[LeafRecord, list[Part]]:
    """The record and the parts of an array on devices."""
    impl = named_impl(path, leaf) if is_extended(leaf.dtype) else None
    stored = key_data(leaf) if impl else leaf
    assert isinstance(stored, ConcreteArray)
    assert isinstance(stored.dtype, np.dtype)
    record = LeafRecord(path, "array", dtype_name(stored.dtype), stored.shape, impl)
    if stored.is_fully_addressable and process_index() != 0:
        return record, []
    shards = [shard for shard in stored.addressable_shards if shard.replica_id == 0]
    parts = []
    for shard in shards:
        sizes = zip(shard.index, stored.shape, strict=True)
        start = tuple([index.indices(size)[0] for index, size in sizes])
        parts.append(part(number, start, np.asarray(shard.data)))
    return record, parts


def named_impl(path: str, keys: ConcreteArray) -> str:
    """The name of the generator of keys.

    Raises:
        TypeError: it is one of the user's, which a file cannot name.
    """
    impl = key_impl(keys)
    if not isinstance(impl, str):
        raise TypeError(
            f"the keys at {path} belong to a generator of your own, which a file "
            "cannot name: save random.key_data(keys) and wrap it again"
        )
    return impl


def part(number: int, start: tuple[int, ...], values: np.ndarray) -> Part:
    """A part with the name it has in its file."""
    name = f"{number}:{','.join(map(str, start))}"
    return Part(number, name, start, values)


def put(value: object) -> Any:
    """A Python number or string as JSON, exactly."""
    if isinstance(value, complex):
        return [value.real.hex(), value.imag.hex()]
    return value.hex() if isinstance(value, float) else value


def taken(record: LeafRecord) -> Any:
    """The Python number or string that `put` wrote."""
    if record.dtype == "complex":
        return complex(*map(float.fromhex, record.value))
    return float.fromhex(record.value) if record.dtype == "float" else record.value


def dtype_name(dtype: np.dtype) -> str:
    """The name of a dtype, such as "bfloat16", or the string that NumPy writes."""
    return dtype.name if dtype.isbuiltin == 2 or dtype.kind in "biufc" else dtype.str


def writable(values: np.ndarray) -> np.ndarray:
    """The values in a dtype that files of NumPy know: bfloat16 as words."""
    if values.dtype.isbuiltin != 2:
        return values
    return np.ascontiguousarray(values).view(UNSIGNED[values.dtype.itemsize])


def readable(values: np.ndarray, name: str) -> np.ndarray:
    """The values as they were before `writable`."""
    dtype = as_dtype(name) if name[0].isalpha() else None
    if not isinstance(dtype, np.dtype) or dtype.isbuiltin != 2:
        return values
    return values.astype(values.dtype.newbyteorder("="), copy=False).view(dtype)


def shard_records(
    parts: Sequence[Part], process: int
) -> Iterator[tuple[int, ShardRecord]]:
    """For each part the number of its leaf and where it is written."""
    file = file_name(process)
    for one in parts:
        yield one.leaf, ShardRecord(file, one.name, one.start, one.values.shape)
