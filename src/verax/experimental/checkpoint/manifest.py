"""What a checkpoint holds, as one JSON file that is replaced in one step.

The manifest names the folder with the values. Until it is replaced, the former values
are the checkpoint; afterwards the new ones are, so a save that is killed at any time
leaves one of the two::

    path/manifest.json                  leaves, their shards, checksums, user's metadata
    path/values-1/process-0.npz         the shards that process 0 wrote

`np.load` opens the files with values; each array in them has a checksum (CRC-32).
"""

import json
import math
import os
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import asdict, frozen

from verax.ir.forms.frames import WRONG
from verax.ir.records import ReprMixin

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
    """Where a part of an array is: its name in a file, its first index, its shape."""

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
    """Which save of its run a checkpoint is: 1 for the first.

    0 is that of a checkpoint without a number, as former versions of verax wrote them,
    or with a damaged one.
    """
    with (folder / NAME).open("rb") as file:
        found = ORDER.search(file.read(HEAD_BYTES))
    if found is None or head_checksum(int(found[1])) != int(found[2]):
        return 0
    return int(found[1])


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
    begun = [found.name for found in folder.glob(f"{VALUES}*")]
    if begun:
        return (
            f"there is no complete checkpoint in {folder}: the save that wrote "
            f"{', '.join(sorted(begun))} did not finish"
        )
    return f"there is no checkpoint in {folder}: it has no {NAME}"


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system can."""
    if os.name != "posix":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def write_whole(file: Path, contents: bytes) -> None:
    """Write a file such that readers see the former or the new one, never a part."""
    partial = file.with_name(f"{file.name}.partial")
    with partial.open("wb") as out:
        out.write(contents)
        out.flush()
        os.fsync(out.fileno())
    os.replace(partial, file)
    sync_folder(file.parent)
