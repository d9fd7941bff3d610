"""Reading a checkpoint onto the devices that there are now.

Each process reads the shards that its devices need parts of, however many processes
wrote them and on whatever mesh::

    restore("run/step-100")                                   # as it was saved
    restore("run/step-100", like=state)                       # as the arrays of `state`
    restore("run/step-100", sharding=NamedSharding(mesh, P("x")))
"""

import math
import os
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format

from verax.api.parallel.device_put import device_put, make_array_from_callback
from verax.api.sharding_args import place_leaves
from verax.api.trees.pytrees import keystr, tree_flatten_with_path
from verax.api.trees.serialization import read_tree
from verax.backend import pytrees
from verax.backend.placement.sharding import Sharding
from verax.experimental.checkpoint.leaves import (
    CheckpointError,
    Index,
    LeafRecord,
    Manifest,
    ShardRecord,
    dtype_name,
    named_dtype,
    read_manifest,
    readable,
    summed,
    taken,
)
from verax.ir.dtypes import canonical
from verax.ir.forms.values import WRONG
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
        self.leaf: LeafRecord | None = None
        self.recent: dict[ShardRecord, np.ndarray] = {}

    def values(self, leaf: LeafRecord, shard: ShardRecord) -> np.ndarray:
        """The values of a shard."""
        if self.leaf is not leaf:
            self.leaf, self.recent = leaf, {}
        if shard not in self.recent:
            self.recent[shard] = readable(self.read(leaf, shard), leaf)
        return self.recent[shard]

    def read(self, leaf: LeafRecord, shard: ShardRecord) -> np.ndarray:
        """The values of a shard, as they are written.

        Raises:
            CheckpointError: the file is missing or damaged.
            MemoryError: the shard does not fit.
        """
        try:
            if shard.file not in self.files:
                file = zipfile.ZipFile(self.folder / shard.file)
                self.files[shard.file] = self.stack.enter_context(file)
            archive = self.files[shard.file]
            info = archive.getinfo(f"{shard.name}.npy")
            return read_shard(archive, info, shard)
        except MemoryError:
            raise
        # A damaged file makes zipfile and NumPy raise nearly every class that there is.
        except Exception as error:
            raise CheckpointError(
                f"the leaf {leaf.path} cannot be read, since {self.folder / shard.file}"
                f" is damaged: {error}"
            ) from error


def read_shard(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, shard: ShardRecord
) -> np.ndarray:
    """The array of a file in an archive.

    Raises:
        ValueError: it is not the shard; and whatever a damaged file leads to.
    """
    with archive.open(info) as member:
        check_head(member, info.file_size, shard)
    with archive.open(info) as member:
        values = format.read_array(member, allow_pickle=False)
        # The end of the member is where its checksum is compared.
        member.read()
    return values.reshape(shard.shape)


def check_head(member: IO[bytes], size: int, shard: ShardRecord) -> None:
    """Raise ValueError unless a file of so many bytes can hold the shard.

    NumPy gets memory for what the head says before the checksum is compared.
    """
    version = format.read_magic(member)
    first = version == (1, 0)
    read = format.read_array_header_1_0 if first else format.read_array_header_2_0
    shape, _, dtype = read(member)
    # Former versions of verax wrote scalars of dtypes that NumPy lacks as vectors.
    if shape not in (shard.shape, shard.shape or (1,)):
        raise ValueError(f"it holds a shard of shape {shape}, not {shard.shape}")
    if math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"{size} bytes are too few for {dtype}{list(shape)}")


@contextmanager
def opened(folder: Path) -> Iterator[Archives]:
    """The files with values, closed at the end."""
    with ExitStack() as stack:
        yield Archives(folder, stack)


def restore(
    path: str | os.PathLike[str],
    like: object = None,
    *,
    sharding: object = None,
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
        targets: list[object] = [None] * len(records)
    else:
        pairs, structure = tree_flatten_with_path(like)
        targets = [target for _, target in pairs]
        paths = [keystr(key) for key, _ in pairs]
        records = matched(folder, manifest, paths, partial)
    if structure.num_leaves != len(records):
        raise CheckpointError(
            f"the checkpoint at {folder} is damaged: {len(records)} leaves do not make "
            f"a tree of {structure.num_leaves}"
        )
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
    try:
        structure = read_tree(manifest.tree)
        structure.unflatten([0] * structure.num_leaves)  # by the user's classes, too
        return structure
    except ValueError as error:
        raise CheckpointError(f"the checkpoint at {folder}: {error}") from error
    except WRONG as error:
        raise CheckpointError(
            f"the checkpoint at {folder} describes no tree ({type(error).__name__}): "
            f"{error}"
        ) from error


def matched(
    folder: Path, manifest: Manifest, paths: Sequence[str], partial: bool
) -> list[LeafRecord]:
    """The records of the leaves of `like`, by their paths.

    Of leaves with one path, which classes of containers with careless keys have, the
    first belongs to the first, the second to the second.

    Raises:
        CheckpointError: one is missing, on either side.
    """
    saved = turns([record.path for record in manifest.leaves])
    out = dict(zip(saved, manifest.leaves, strict=True))
    asked = list(turns(paths))
    absent = [
        path or "the tree itself" for path, turn in asked if (path, turn) not in out
    ]
    left = [] if partial else sorted(out.keys() - set(asked))
    if absent or left:
        lines = [f"`like` and the checkpoint at {folder} have different leaves."]
        if absent:
            lines.append(f"Missing in the checkpoint: {some(absent)}.")
        if left:
            lines.append(
                f"Missing in `like`: {some([path for path, _ in left])}; partial=True "
                "drops these."
            )
        raise CheckpointError(" ".join(lines))
    return [out[one] for one in asked]


def turns(paths: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Each path with how many equal ones come before it."""
    seen: Counter[str] = Counter()
    for path in paths:
        yield path, seen[path]
        seen[path] += 1


def some(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


def restored(
    files: Archives, record: LeafRecord, target: object, place: Sharding | None
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


def python_leaf(record: LeafRecord, target: object) -> object:
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


def check_type(record: LeafRecord, target: object) -> None:
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
    words = np.zeros((0, *record.shape[-1:]), np.uint32)
    return record.shape[:-1], str(as_array(record, words).dtype)


def target_place(target: object) -> Sharding | None:
    """The place of an array of `like`, if it has one."""
    place = getattr(target, "sharding", None)
    if isinstance(target, Array) and not getattr(target, "committed", False):
        return None
    return place if isinstance(place, Sharding) else None


def array_leaf(files: Archives, record: LeafRecord, place: Sharding | None) -> Array:
    """An array on devices; without a place, on the default device."""
    check_width(record)
    shape, _ = saved_type(record)
    if place is None:
        index = tuple([slice(0, size) for size in shape])
        return as_array(record, gathered(files, record, whole_words(record, index)))
    whole = make_array_from_callback(
        shape,
        summed(place),
        lambda index: as_array(
            record, gathered(files, record, whole_words(record, index))
        ),
    )
    return whole if summed(place) is place else device_put(whole, place)


def check_width(record: LeafRecord) -> None:
    """Raise CheckpointError for 64 bits where arrays have 32.

    Without an error the values would be rounded.
    """
    if record.impl is None and record.dtype.endswith(("64", "128")):
        dtype = named_dtype(record.dtype)
        if dtype is not None and canonical(dtype, STATE.enable_x64) != dtype:
            raise CheckpointError(
                f"the leaf {record.path} was saved as {dtype}, and arrays have 32 bits:"
                " set verax.config.enable_x64, or put a NumPy array there in `like`"
            )


def whole_words(record: LeafRecord, index: Index) -> Index:
    """An index into the words of keys; of other arrays, the index itself."""
    return index if record.impl is None else (*index, slice(0, record.shape[-1]))


def as_array(record: LeafRecord, values: np.ndarray) -> Array:
    """Values as an array: keys for the words of keys.

    Raises:
        CheckpointError: they are not values of arrays, or not words of keys.
    """
    try:
        if record.impl is None:
            return asarray(values)
        return wrap_key_data(asarray(values), impl=record.impl)
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f"the leaf {record.path} cannot be read as an array: {error}"
        ) from error


def gathered(files: Archives, record: LeafRecord, index: Index) -> np.ndarray:
    """A part of a leaf, from the shards that overlap it.

    Raises:
        CheckpointError: they are damaged, or leave a gap.
    """
    limits = [part.indices(n) for part, n in zip(index, record.shape, strict=True)]
    starts = [start for start, _, _ in limits]
    stops = [stop for _, stop, _ in limits]
    shape = tuple([stop - start for start, stop in zip(starts, stops, strict=True)])
    if 0 in shape:
        return np.empty(shape, files.values(record, record.shards[0]).dtype)
    out: np.ndarray | None = None
    count = 0
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
        box = values[slices(low, high, shard.start)]
        out[slices(low, high, starts)] = box
        count += box.size
    if out is None or count != out.size:
        raise CheckpointError(f"no shard holds the leaf {record.path} at {index}")
    return out


def slices(low: Iterable[int], high: Iterable[int], origin: Sequence[int]) -> Index:
    """The box from `low` to `high` in an array that starts at `origin`."""
    pairs = zip(low, high, origin, strict=True)
    return tuple([slice(int(a - o), int(b - o)) for a, b, o in pairs])
