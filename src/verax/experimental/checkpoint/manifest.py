"""What a checkpoint holds, as one JSON file that is replaced in one step.

The manifest names the folder with the values. Until it is replaced, the former values
are the checkpoint; afterwards the new ones are, so a save that is killed at any time
leaves one of the two::

    path/manifest.json                  leaves, their shards, checksums, user's metadata
    path/values-1/process-0.npz         the shards that process 0 wrote

`np.load` opens the files with values; each array in them has a checksum (CRC-32).
"""

import json
import os
import zlib
from pathlib import Path
from typing import Any, Final

from attrs import asdict, frozen

from verax.ir.records import ReprMixin

__all__ = ["CheckpointError"]

FORMAT: Final = "verax.checkpoint"
VERSION: Final = 1
NAME: Final = "manifest.json"
VALUES: Final = "values-"

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

    def to_bytes(self) -> bytes:
        """The file: a JSON object with a checksum of its contents."""
        contents = json.dumps(asdict(self), separators=(",", ":"))
        head = {
            "format": FORMAT,
            "version": VERSION,
            "checksum": zlib.crc32(contents.encode()),
        }
        return f'{json.dumps(head)[:-1]}, "contents": {contents}}}\n'.encode()


def leaf_record(data: dict[str, Json]) -> LeafRecord:
    """A leaf from its JSON."""
    shards = [
        ShardRecord(s["file"], s["name"], tuple(s["start"]), tuple(s["shape"]))
        for s in data["shards"]
    ]
    shape = tuple(data["shape"])
    return LeafRecord(**{**data, "shape": shape, "shards": tuple(shards)})


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the checkpoint in a folder.

    Raises:
        FileNotFoundError: there is no complete checkpoint.
        CheckpointError: the file is damaged, or of a later version.
    """
    file = folder / NAME
    try:
        data = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise FileNotFoundError(missing(folder)) from None
    except ValueError as error:
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
    leaves = tuple([leaf_record(leaf) for leaf in contents["leaves"]])
    return Manifest(**{**contents, "leaves": leaves})


def missing(folder: Path) -> str:
    """Why there is nothing to restore."""
    if not folder.exists():
        return f"there is no checkpoint at {folder}: no such folder"
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
