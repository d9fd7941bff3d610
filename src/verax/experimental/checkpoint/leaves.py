"""Leaves of a pytree as records and parts to write.

Each process writes the parts that are on its devices; of the copies of a part one is
written, and what is no array over devices is written by process 0::

    record, parts = describe("['w']", 0, w, process=0)
"""

import json
import math
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from attrs import asdict, frozen

from verax.api.parallel.device_put import device_put
from verax.backend.arrays.concrete import ConcreteArray
from verax.backend.placement.mesh import PartitionSpec
from verax.backend.placement.sharding import NamedSharding, Sharding
from verax.backend.runtime.client import process_index
from verax.ir.dtypes import is_extended
from verax.ir.forms.values import WRONG
from verax.ir.records import ReprMixin
from verax.ir.system import sync_folder
from verax.random import key_data, key_impl
from verax.rules.values.array import Array

# -----------------------------------------------------------------------------
# What a checkpoint holds, as one JSON file that is replaced in one step.
#
# The manifest names the folder with the values. Until it is replaced, the former values
# are the checkpoint; afterwards the new ones are, so a save that is killed at any time
# leaves one of the two::
#
#     path/manifest.json                  leaves, shards, checksums, user's metadata
#     path/values-1/process-0.npz         the shards that process 0 wrote
#
# `np.load` opens the files with values; each array in them has a checksum (CRC-32).


__all__ = ["CheckpointError"]

FORMAT: Final = "verax.checkpoint"
VERSION: Final = 1
NAME: Final = "manifest.json"
VALUES: Final = "values-"
KINDS: Final = ("array", "numpy", "scalar", "python")
PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
"""Names of files that lie in the folder of the checkpoint and nowhere else."""

ORDER: Final = re.compile(rb'"order": ([0-9]{1,18}), "head": ([0-9]{1,10}), ')
HEAD_BYTES: Final = 200

type Json = Any


class CheckpointError(ValueError):
    """A checkpoint is damaged, or does not hold what was asked for."""

    __module__ = "verax.experimental.checkpoint"


@frozen(repr=False)
class ShardRecord(ReprMixin):
    """The record of a part of an array: name in a file, first index, shape."""

    file: str
    name: str
    start: tuple[int, ...]
    shape: tuple[int, ...]


@frozen(repr=False)
class LeafRecord(ReprMixin):
    """A leaf of the tree.

    `kind` is "array", "numpy", "scalar" (of NumPy) or "python", whose `value` is here;
    `impl` is the generator of keys. `shape` and `dtype` are those of what is written:
    the words of keys, unsigned integers for dtypes that NumPy cannot write.
    """

    path: str
    kind: str
    dtype: str
    shape: tuple[int, ...]
    impl: str | None = None
    value: Json = None
    shards: tuple[ShardRecord, ...] = ()


@frozen(repr=False)
class Manifest(ReprMixin):
    """All that a checkpoint says about itself.

    `tree` is the structure, or a string that says why it could not be written.
    """

    values: str
    leaves: tuple[LeafRecord, ...]
    tree: Json
    metadata: Json
    processes: int

    def to_bytes(self, order: int = 0) -> bytes:
        """The file: a JSON object with a checksum of its contents.

        `order` numbers the saves of a run; it has a checksum of its own, since it is
        read without the rest.
        """
        contents = json.dumps(asdict(self), separators=(",", ":"))
        head = {
            "format": FORMAT,
            "version": VERSION,
            "order": order,
            "head": head_checksum(order),
            "checksum": zlib.crc32(contents.encode()),
        }
        return f'{json.dumps(head)[:-1]}, "contents": {contents}}}\n'.encode()


def head_checksum(order: int) -> int:
    """The checksum of the number of a save."""
    return zlib.crc32(f"{FORMAT} {VERSION} {order}".encode())


def saved_order(folder: Path) -> int:
    """The number of a checkpoint among the saves of its run: 1 for the first.

    0 is that of a checkpoint without a number, as former versions of verax wrote them,
    or with a damaged one.
    """
    with (folder / NAME).open("rb") as file:
        match = ORDER.search(file.read(HEAD_BYTES))
    if match is None or head_checksum(int(match[1])) != int(match[2]):
        return 0
    return int(match[1])


def leaf_record(data: Mapping[str, Json]) -> LeafRecord:
    """A leaf from its JSON.

    Raises:
        CheckpointError, and any of `WRONG`: it does not describe a leaf.
    """
    shards = [
        ShardRecord(
            plain(s["file"]), text(s["name"]), sizes(s["start"]), sizes(s["shape"])
        )
        for s in data["shards"]
    ]
    shape, kind, impl = sizes(data["shape"]), data["kind"], data["impl"]
    leaf = LeafRecord(
        path=text(data["path"]),
        kind=text(kind),
        dtype=text(data["dtype"]),
        shape=shape,
        impl=None if impl is None else text(impl),
        value=data["value"],
        shards=tuple(shards),
    )
    if kind not in KINDS:
        raise CheckpointError(f"{kind!r:.80} is no kind of leaf")
    check_covered(leaf)
    return leaf


def check_covered(leaf: LeafRecord) -> None:
    """Raise CheckpointError unless the shards are the whole array.

    They do not overlap, being shards of one array, so their sizes add up.
    """
    if leaf.kind == "python":
        return
    count = sum([math.prod(shard.shape) for shard in leaf.shards])
    inside = [
        all(map(end_inside, shard.start, shard.shape, leaf.shape))
        and len(shard.start) == len(shard.shape) == len(leaf.shape)
        for shard in leaf.shards
    ]
    if count != math.prod(leaf.shape) or not leaf.shards or not all(inside):
        raise CheckpointError(
            f"the processes wrote {count} elements of the leaf {leaf.path} of shape "
            f"{leaf.shape}: every process must save the same tree"
        )


def end_inside(start: int, size: int, whole: int) -> bool:
    """Whether a shard ends inside the array."""
    return start + size <= whole


def plain(name: Json) -> str:
    """The name of a file next to the others: no folder, absolute or upwards.

    Raises:
        CheckpointError: it could lead elsewhere.
    """
    if not isinstance(name, str) or not PLAIN.fullmatch(name):
        raise CheckpointError(
            f"{name!r:.80} is not the name of a file inside the checkpoint"
        )
    return name


def text(data: Json) -> str:
    """The data, which must be a string."""
    if not isinstance(data, str):
        raise CheckpointError(f"{data!r:.80} is not a string")
    return data


def sizes(data: Json) -> tuple[int, ...]:
    """A shape or an index: integers that are not negative."""
    if not all(type(size) is int and size >= 0 for size in data):
        raise CheckpointError(f"{data!r:.80} is not a shape")
    return tuple(data)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the checkpoint in a folder.

    Raises:
        FileNotFoundError: there is no complete checkpoint.
        CheckpointError: the file is damaged, or of a later version.
    """
    file = folder / NAME
    try:
        data = json.loads(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(missing(folder)) from None
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{file} is damaged: {error}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise CheckpointError(f"{file} is not the manifest of a checkpoint of verax")
    if data.get("version") != VERSION:
        raise CheckpointError(
            f"{file} has version {data.get('version')} of the format, but this verax "
            f"reads version {VERSION}: restore it with the verax that wrote it"
        )
    contents: dict[str, Json] = data.get("contents", {})
    written = json.dumps(contents, separators=(",", ":")).encode()
    if zlib.crc32(written) != data.get("checksum"):
        raise CheckpointError(f"{file} is damaged: its checksum does not agree")
    try:
        leaves = tuple([leaf_record(leaf) for leaf in contents["leaves"]])
        plain(contents["values"])
        return Manifest(**{**contents, "leaves": leaves})
    except WRONG as error:
        raise CheckpointError(
            f"{file} does not describe a checkpoint ({type(error).__name__}): {error}"
        ) from error


def missing(folder: Path) -> str:
    """Why there is nothing to restore."""
    if not folder.exists():
        return f"there is no checkpoint at {folder}: no such folder"
    if not folder.is_dir():
        return f"there is no checkpoint at {folder}: it is a file, not a folder"
    begun = [path.name for path in folder.glob(f"{VALUES}*")]
    if begun:
        return (
            f"there is no complete checkpoint in {folder}: the save that wrote "
            f"{', '.join(sorted(begun))} did not finish"
        )
    return f"there is no checkpoint in {folder}: it has no {NAME}"


def write_whole(file: Path, contents: bytes) -> None:
    """Write a file such that readers see the former or the new one, never a part."""
    partial = file.with_name(f"{file.name}.partial")
    with partial.open("wb") as out:
        out.write(contents)
        out.flush()
        os.fsync(out.fileno())
    os.replace(partial, file)
    sync_folder(file.parent)


type Index = tuple[slice, ...]

UNSIGNED: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
PYTHON: Final = (bool, int, float, complex, str)
LONG: Final = 10_000
"""Bits from which on integers are written in hexadecimal: Python limits decimals."""


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
        check_kept(path, leaf)
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


def check_kept(path: str, leaf: np.ndarray | np.generic) -> None:
    """Raise TypeError for a NumPy array of which a part would be lost."""
    if isinstance(leaf, np.ma.MaskedArray):
        raise TypeError(
            f"the leaf {path or 'itself'} is a masked array, and its mask would be "
            "lost: save its data and its mask"
        )
    if not is_kept(leaf.dtype):
        raise TypeError(
            f"the leaf {path or 'itself'} has the dtype {leaf.dtype}, which a file of "
            "NumPy does not keep: convert the array first"
        )


def is_kept(dtype: np.dtype) -> bool:
    """Whether values of a dtype return from a file with that dtype."""
    if dtype.isbuiltin == 2:
        return np.dtype(dtype.name) == dtype
    described = np.lib.format.dtype_to_descr(dtype)
    return np.lib.format.descr_to_dtype(described) == dtype


def describe_array(
    path: str, number: int, leaf: ConcreteArray
) -> tuple[LeafRecord, list[Part]]:
    """The record and the parts of an array on devices."""
    impl = named_impl(path, leaf) if is_extended(leaf.dtype) else None
    place = leaf.sharding
    whole = summed(place)
    # Terms alone mean nothing; all other arrays are written from where they are.
    stored = leaf if whole is place else device_put(leaf, whole)
    stored = key_data(stored) if impl else stored
    assert isinstance(stored, ConcreteArray)
    assert isinstance(stored.dtype, np.dtype)
    record = LeafRecord(path, "array", dtype_name(stored.dtype), stored.shape, impl)
    if stored.is_fully_addressable and process_index() != 0:
        return record, []
    shards = [shard for shard in stored.addressable_shards if shard.replica_id == 0]
    parts = {}
    for shard in shards:
        sizes = zip(shard.index, stored.shape, strict=True)
        start = tuple([index.indices(size)[0] for index, size in sizes])
        # Those of an array without elements begin at one place: one is enough.
        parts[start] = part(number, start, np.asarray(shard.data))
    return record, [*parts.values()]


def summed(place: Sharding) -> Sharding:
    """The sharding of an array whose terms are added up; itself if it has none."""
    if not isinstance(place, NamedSharding) or not place.spec.unreduced:
        return place
    return place.update(spec=PartitionSpec(*place.spec, reduced=place.spec.reduced))


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
    if type(value) is int and value.bit_length() > LONG:
        return hex(value)
    return value.hex() if isinstance(value, float) else value


def taken(record: LeafRecord) -> Any:
    """The Python number or string that `put` wrote.

    Raises:
        CheckpointError: the value is none of that class.
    """
    kind, value = record.dtype, record.value
    try:
        if kind == "complex":
            real, imag = map(float.fromhex, value)
            return complex(real, imag)
        if kind == "float":
            return float.fromhex(value)
        if kind == "int" and isinstance(value, str):
            return int(value, 16)
    except (TypeError, ValueError) as error:
        raise unlike(record) from error
    if kind not in ("bool", "int", "str") or type(value).__name__ != kind:
        raise unlike(record)
    return value


def unlike(record: LeafRecord) -> CheckpointError:
    """The error for a value that is not of its class."""
    return CheckpointError(
        f"the leaf {record.path} cannot be read: {record.value!r:.80} is no Python "
        f"{record.dtype:.80}"
    )


def dtype_name(dtype: np.dtype) -> str:
    """The name of a dtype, such as "bfloat16", or the string that NumPy writes."""
    return dtype.name if dtype.isbuiltin == 2 or dtype.kind in "biufc" else dtype.str


def writable(values: np.ndarray) -> np.ndarray:
    """The values in a dtype that files of NumPy know: bfloat16 as words."""
    if values.dtype.isbuiltin != 2:
        return values
    words = UNSIGNED[values.dtype.itemsize]
    # ascontiguousarray alone would make a vector of what has no axes.
    return np.ascontiguousarray(values).reshape(values.shape).view(words)


def readable(values: np.ndarray, record: LeafRecord) -> np.ndarray:
    """The values as they were before `writable`.

    Raises:
        CheckpointError: they are not of the dtype that the record names.
    """
    if dtype_name(values.dtype) == record.dtype:
        return values
    dtype = named_dtype(record.dtype)
    words = UNSIGNED[dtype.itemsize] if dtype and dtype.isbuiltin == 2 else None
    if dtype is None or words is None or values.dtype.newbyteorder("=") != words:
        raise CheckpointError(
            f"the leaf {record.path} cannot be read: its values are {values.dtype} in "
            f"the file, which are none of {record.dtype:.80}"
        )
    return values.astype(words, copy=False).view(dtype)


def named_dtype(name: str) -> np.dtype | None:
    """The dtype of a name that `dtype_name` gave."""
    try:
        return np.dtype(name)
    except (TypeError, ValueError):
        return None


def shard_records(
    parts: Sequence[Part], process: int
) -> Iterator[tuple[int, ShardRecord]]:
    """For each part the number of its leaf and where it is written."""
    file = file_name(process)
    for one in parts:
        yield one.leaf, ShardRecord(file, one.name, one.start, one.values.shape)
