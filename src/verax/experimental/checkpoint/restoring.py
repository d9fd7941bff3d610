"""Reading a checkpoint onto the devices that there are now.

Each process reads the shards that its devices need parts of, however many processes
wrote them and on whatever mesh::

    restore("run/step-100")                                   # as it was saved
    restore("run/step-100", like=state)                       # as the arrays of `state`
    restore("run/step-100", sharding=NamedSharding(mesh, P("x")))
"""

import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from verax.api.parallel.device_put import make_array_from_callback
from verax.api.sharding_args import place_leaves
from verax.api.trees.pytrees import keystr, tree_flatten_with_path
from verax.api.trees.serialization import read_tree
from verax.backend import pytrees
from verax.backend.placement.sharding import Sharding
from verax.experimental.checkpoint.leaves import Index, dtype_name, readable, taken
from verax.experimental.checkpoint.manifest import (
    CheckpointError,
    LeafRecord,
    Manifest,
    ShardRecord,
    read_manifest,
)
from verax.ir.dtypes import canonical
from verax.numpy import asarray
from verax.random import wrap_key_data
from verax.rules.values.array import Array
from verax.rules.values.state import STATE

__all__ = ["restore"]


class Archives:
    """The files with values, each opened once; shards of one leaf are read once."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.stack = stack
        self.files: dict[str, zipfile.ZipFile] = {}
        self.leaf = ""
        self.recent: dict[ShardRecord, np.ndarray] = {}

    def values(self, leaf: LeafRecord, shard: ShardRecord) -> np.ndarray:
        """The values of a shard."""
        if self.leaf != leaf.path:
            self.leaf, self.recent = leaf.path, {}
        if shard not in self.recent:
            self.recent[shard] = readable(self.read(leaf, shard), leaf.dtype)
        return self.recent[shard]

    def read(self, leaf: LeafRecord, shard: ShardRecord) -> np.ndarray:
        """The values of a shard, as they are written.

        Raises:
            CheckpointError: the file is missing or damaged.
        """
        try:
            if shard.file not in self.files:
                file = zipfile.ZipFile(self.folder / shard.file)
                self.files[shard.file] = self.stack.enter_context(file)
            with self.files[shard.file].open(f"{shard.name}.npy") as member:
                values = np.lib.format.read_array(member, allow_pickle=False)
                # The end of the member is where its checksum is compared.
                member.read()
        except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise CheckpointError(
                f"the leaf {leaf.path} cannot be read, since {self.folder / shard.file}"
                f" is damaged: {error}"
            ) from error
        if values.shape != shard.shape:
            raise CheckpointError(
                f"the leaf {leaf.path} cannot be read: {self.folder / shard.file} holds"
                f" a shard of shape {values.shape}, not {shard.shape}"
            )
        return values


@contextmanager
def opened(folder: Path) -> Iterator[Archives]:
    """The files with values, closed at the end."""
    with ExitStack() as stack:
        yield Archives(folder, stack)


def restore(
    path: str | os.PathLike[str],
    like: Any = None,
    *,
    sharding: Any = None,
    partial: bool = False,
) -> Any:
    """The pytree that was saved at `path`.

    Args:
        path: the folder of the checkpoint.
        like: a pytree of the same structure, of arrays or `ShapeDtypeStruct`s; leaves
            are restored as what stands there: on the same devices, NumPy arrays as
            such. None restores what was saved, which takes containers that
            `verax.export` can write.
        sharding: where the arrays are put, for leaves of which `like` does not say; one
            for all, or a prefix tree. None is the default device.
        partial: leave out leaves of the checkpoint that `like` does not have.

    Raises:
        FileNotFoundError: there is no complete checkpoint.
        CheckpointError: it is damaged, or a leaf has another shape or dtype than in
            `like`, or is missing.

    >>> import tempfile, verax, verax.numpy as vnp
    >>> from verax.experimental import checkpoint
    >>> like = {"w": verax.ShapeDtypeStruct((3,), vnp.int32)}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint.save(folder, {"w": vnp.arange(3)})
    ...     checkpoint.restore(folder, like)
    {'w': Array([0, 1, 2], dtype=int32)}
    """
    folder = Path(path)
    manifest = read_manifest(folder)
    if like is None:
        structure = saved_structure(folder, manifest)
        records: Sequence[LeafRecord] = manifest.leaves
        targets: list[Any] = [None] * len(records)
    else:
        pairs, structure = tree_flatten_with_path(like)
        targets = [target for _, target in pairs]
        paths = [keystr(key) for key, _ in pairs]
        records = matched(folder, manifest, paths, partial)
    tree = structure.unflatten(list(range(len(records))))
    places = place_leaves("restore sharding", sharding, tree)
    with opened(folder / manifest.values) as files:
        leaves = [
            restored(files, record, target, place)
            for record, target, place in zip(
                records, targets, places or [None] * len(records), strict=True
            )
        ]
    return structure.unflatten(leaves)


def saved_structure(folder: Path, manifest: Manifest) -> pytrees.PyTreeDef:
    """The structure of the tree that was saved.

    Raises:
        CheckpointError: it could not be written.
    """
    if isinstance(manifest.tree, str) and manifest.tree != "*":
        raise CheckpointError(
            f"the checkpoint at {folder} does not hold the structure of its tree "
            f"({manifest.tree}): pass `like`, a tree of that structure"
        )
    return read_tree(manifest.tree)


def matched(
    folder: Path, manifest: Manifest, paths: Sequence[str], partial: bool
) -> list[LeafRecord]:
    """The records of the leaves of `like`, by their paths.

    Raises:
        CheckpointError: one is missing, on either side.
    """
    found = {record.path: record for record in manifest.leaves}
    absent = [path or "the tree itself" for path in paths if path not in found]
    left = [] if partial else sorted(found.keys() - set(paths))
    if absent or left:
        lines = [f"`like` and the checkpoint at {folder} have different leaves."]
        if absent:
            lines.append(f"Missing in the checkpoint: {some(absent)}.")
        if left:
            lines.append(f"Missing in `like`: {some(left)}; partial=True drops these.")
        raise CheckpointError(" ".join(lines))
    return [found[path] for path in paths]


def some(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


def restored(
    files: Archives, record: LeafRecord, target: Any, place: Sharding | None
) -> Any:
    """One leaf, as `target` wants it."""
    if record.kind == "python":
        return python_leaf(record, target)
    check_type(record, target)
    as_numpy = record.kind in ("numpy", "scalar")
    if target is not None:
        as_numpy = isinstance(target, np.ndarray | np.generic)
    if as_numpy:
        whole = tuple([slice(0, size) for size in record.shape])
        values = gathered(files, record, whole)
        scalar = record.kind == "scalar" and target is None
        return values[()] if scalar or isinstance(target, np.generic) else values
    return array_leaf(files, record, target_place(target) or place)


def python_leaf(record: LeafRecord, target: Any) -> Any:
    """A Python number or string.

    Raises:
        CheckpointError: `target` is of another class.
    """
    if target is not None and type(target).__name__ != record.dtype:
        raise CheckpointError(
            f"the leaf {record.path} was saved as a Python {record.dtype}, but `like` "
            f"has {type(target).__name__} there"
        )
    return taken(record)


def check_type(record: LeafRecord, target: Any) -> None:
    """Raise CheckpointError unless a leaf has the shape and dtype of `target`."""
    if target is None:
        return
    shape, dtype = getattr(target, "shape", None), getattr(target, "dtype", None)
    if shape is None or dtype is None:
        raise CheckpointError(
            f"the leaf {record.path} was saved as an array, but `like` has "
            f"{type(target).__name__} there"
        )
    saved = saved_type(record)
    dtype = dtype_name(dtype) if isinstance(dtype, np.dtype) else str(dtype)
    if saved != (tuple(shape), dtype):
        raise CheckpointError(
            f"the leaf {record.path} was saved as {saved[1]}{list(saved[0])}, but "
            f"`like` has {dtype}{list(shape)} there"
        )


def saved_type(record: LeafRecord) -> tuple[tuple[int, ...], str]:
    """The shape and the name of the dtype of a leaf; those of keys, not their words."""
    if record.impl is None:
        return record.shape, record.dtype
    words = np.zeros((0, record.shape[-1]), np.uint32)
    return record.shape[:-1], str(wrap_key_data(words, impl=record.impl).dtype)


def target_place(target: Any) -> Sharding | None:
    """Where an array of `like` is, if somebody said so."""
    place = getattr(target, "sharding", None)
    if isinstance(target, Array) and not getattr(target, "committed", False):
        return None
    return place if isinstance(place, Sharding) else None


def array_leaf(files: Archives, record: LeafRecord, place: Sharding | None) -> Array:
    """An array on devices; without a place, on the default device."""
    check_width(record)
    shape, _ = saved_type(record)
    if place is None:
        whole = tuple([slice(0, size) for size in shape])
        return as_array(record, gathered(files, record, whole_words(record, whole)))
    return make_array_from_callback(
        shape,
        place,
        lambda index: as_array(
            record, gathered(files, record, whole_words(record, index))
        ),
    )


def check_width(record: LeafRecord) -> None:
    """Raise CheckpointError for 64 bits where arrays have 32.

    Without an error the values would be rounded.
    """
    if record.impl is None and record.dtype.endswith(("64", "128")):
        dtype = np.dtype(record.dtype)
        if canonical(dtype, STATE.enable_x64) != dtype:
            raise CheckpointError(
                f"the leaf {record.path} was saved as {dtype}, and arrays have 32 bits:"
                " set verax.config.enable_x64, or put a NumPy array there in `like`"
            )


def whole_words(record: LeafRecord, index: Index) -> Index:
    """An index into the words of keys; of other arrays, the index itself."""
    return index if record.impl is None else (*index, slice(0, record.shape[-1]))


def as_array(record: LeafRecord, values: np.ndarray) -> Array:
    """Values as an array: keys for the words of keys."""
    if record.impl is None:
        return asarray(values)
    return wrap_key_data(asarray(values), impl=record.impl)


def gathered(files: Archives, record: LeafRecord, index: Index) -> np.ndarray:
    """A part of a leaf, from the shards that overlap it."""
    limits = [part.indices(n) for part, n in zip(index, record.shape, strict=True)]
    starts = [start for start, _, _ in limits]
    stops = [stop for _, stop, _ in limits]
    shape = tuple([stop - start for start, stop in zip(starts, stops, strict=True)])
    out: np.ndarray | None = None
    for shard in record.shards:
        low = np.maximum(starts, shard.start) if shape else np.zeros(0, int)
        ends = np.add(shard.start, shard.shape)
        high = np.minimum(stops, ends) if shape else np.zeros(0, int)
        same = shard.start == tuple(starts) and shard.shape == shape
        if not same and np.any(low >= high):
            continue
        values = files.values(record, shard)
        if same:
            return values
        if out is None:
            out = np.empty(shape, values.dtype)
        out[slices(low, high, starts)] = values[slices(low, high, shard.start)]
    if out is None:
        raise CheckpointError(f"no shard holds the leaf {record.path} at {index}")
    return out


def slices(low: Any, high: Any, origin: Sequence[int]) -> Index:
    """The box from `low` to `high` in an array that starts at `origin`."""
    pairs = zip(low, high, origin, strict=True)
    return tuple([slice(int(a - o), int(b - o)) for a, b, o in pairs])
