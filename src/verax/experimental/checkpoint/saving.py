"""Writing a checkpoint: every process its shards, then one of them the manifest.

The order is what makes a save atomic: files with values, on the disk; the manifest,
which names them, in one step; last the former values are removed::

    save("run/step-100", {"params": params, "step": 100})
    saving = save_async("run/step-200", state)   # the step goes on
    saving.wait()
"""

import json
import os
import shutil
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from attrs import evolve, frozen

from verax.api.trees.pytrees import keystr, tree_flatten_with_path
from verax.api.trees.serialization import write_tree
from verax.backend import pytrees
from verax.backend.runtime.client import process_index
from verax.experimental.checkpoint.group import Group
from verax.experimental.checkpoint.leaves import (
    NAME,
    VALUES,
    Json,
    Manifest,
    Part,
    ShardRecord,
    check_covered,
    describe,
    file_name,
    read_manifest,
    shard_records,
    writable,
    write_whole,
)
from verax.experimental.checkpoint.progress import bar
from verax.ir.records import ReprMixin
from verax.ir.system import sync_folder

__all__ = ["Saving", "save", "save_async"]

type Advance = Callable[[int], None]

PARTS: Final = "parts-{}.json"


@frozen(repr=False)
class Run(ReprMixin):
    """A run of which a checkpoint is a step, as process 0 asks for it.

    `order` numbers the save, just before it is complete; `clear` removes former ones.
    """

    order: Callable[[], int]
    clear: Callable[[], None]


ALONE: Final = Run(lambda: 0, lambda: None)
"""For checkpoints that are no steps of a run."""


class Saving:
    """A save under way in a thread; the interpreter waits for it before it exits."""

    __module__ = "verax.experimental.checkpoint"

    def __init__(self, path: Path, work: Callable[[], None]) -> None:
        self.path = path
        self.error: BaseException | None = None
        run = partial(attempt, self, work)
        self.thread = threading.Thread(target=run, name=f"saving {path}")
        self.thread.start()

    @property
    def done(self) -> bool:
        """Whether the save has ended, well or not."""
        return not self.thread.is_alive()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the checkpoint is on the disk.

        Args:
            timeout: seconds; None waits as long as it takes.

        Raises:
            TimeoutError: the save still goes on.
            OSError, CheckpointError: the save failed; what was there before stays.
        """
        self.thread.join(timeout)
        if not self.done:
            raise TimeoutError(f"{self.path} is still being saved after {timeout} s")
        if self.error is not None:
            raise self.error

    def __repr__(self) -> str:
        state = "failed" if self.error else "done" if self.done else "under way"
        return f"Saving({str(self.path)!r}, {state})"


def attempt(saving: Saving, work: Callable[[], None]) -> None:
    """Do the work, and keep what it raises for `wait`."""
    try:
        work()
    except BaseException as error:
        saving.error = error


def save(
    path: str | os.PathLike[str],
    tree: object,
    *,
    overwrite: bool = False,
    metadata: Json = None,
    progress: bool = False,
) -> None:
    """Write a pytree of arrays as the checkpoint `path`, a folder.

    Where there are several processes all of them call this with the same tree and
    `path`, on a file system that they share; each writes the shards on its devices.
    A process that is killed at any time leaves the checkpoint that was there before,
    or the new one. One save at a time may write to a path.

    Args:
        path: the folder; folders above it are made.
        tree: arrays, typed keys, NumPy arrays and Python numbers and strings.
        overwrite: replace the checkpoint that is there.
        metadata: anything that JSON can hold, such as dicts with strings as keys;
            `read_metadata` returns it, with lists for tuples.
        progress: show a bar on the terminal; this needs the package `rich`.

    Raises:
        FileExistsError: there is a checkpoint, and `overwrite` is false.
        TypeError: a leaf cannot be saved, or `metadata` is not JSON.
        OSError: the files cannot be written.

    >>> import tempfile, verax.numpy as vnp
    >>> from verax.experimental import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint.save(f"{folder}/step-1", {"w": vnp.ones(2), "step": 1})
    ...     checkpoint.restore(f"{folder}/step-1")
    {'step': 1, 'w': Array([1., 1.], dtype=float32)}
    """
    prepare(Path(path), tree, overwrite, metadata, progress)()


def save_async(
    path: str | os.PathLike[str],
    tree: object,
    *,
    overwrite: bool = False,
    metadata: Json = None,
    progress: bool = False,
) -> Saving:
    """As `save`, in a thread: returns once the values are computed.

    The arrays may be donated and NumPy arrays written to while the save goes on: it
    writes what they held when it was called.

    Raises:
        FileExistsError, TypeError: as in `save`; what else fails, `wait` raises.

    >>> import tempfile, verax.numpy as vnp
    >>> from verax.experimental import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saving = checkpoint.save_async(f"{folder}/step-1", vnp.ones(2))
    ...     saving.wait()
    ...     checkpoint.restore(f"{folder}/step-1")
    Array([1., 1.], dtype=float32)
    """
    folder = Path(path)
    return Saving(folder, prepare(folder, tree, overwrite, metadata, progress))


def prepare(
    folder: Path,
    tree: object,
    overwrite: bool,
    metadata: Json,
    progress: bool,
    run: Run = ALONE,
) -> Callable[[], None]:
    """Check everything and take hold of the values; the result writes them."""
    if not overwrite and (folder / NAME).exists():
        raise FileExistsError(
            f"there is a checkpoint at {folder}, perhaps of a former run: pass "
            "overwrite=True to replace it, or save to another folder"
        )
    # As it is now: a dict may be written to while a save goes on.
    metadata = json.loads(json.dumps(checked_json(metadata)))
    pairs, structure = tree_flatten_with_path(tree)
    records, parts = [], []
    for number, (path, leaf) in enumerate(pairs):
        record, own = describe(keystr(path), number, leaf)
        records.append(record)
        parts.extend(own)
    written = structure_json(structure)
    manifest = Manifest("", tuple(records), written, metadata, 1)
    sizes = [one.values.nbytes for one in parts]
    show = bar(f"saving {folder.name}", sizes) if progress else quiet
    group = Group.of_save(str(folder))
    return lambda: write(folder, manifest, parts, group, show, run)


def checked_json(metadata: Json) -> Json:
    """The metadata.

    Raises:
        TypeError: it has keys that JSON would make strings, of which two may be one.
    """
    if isinstance(metadata, Mapping):
        for key, value in metadata.items():
            if not isinstance(key, str):
                raise TypeError(
                    f"metadata has the key {key!r:.80}, and JSON has only strings as "
                    f"keys: write {str(key)!r:.80}, and turn it back when you read it"
                )
            checked_json(value)
    elif isinstance(metadata, list | tuple):
        for value in metadata:
            checked_json(value)
    return metadata


def structure_json(structure: pytrees.PyTreeDef) -> Json:
    """The structure as JSON, or why it has none: then `restore` needs `like`."""
    try:
        return write_tree(structure)
    except TypeError as error:
        return str(error)


@contextmanager
def quiet() -> Iterator[Advance]:
    """No bar."""
    yield lambda count: None


def write(
    folder: Path,
    manifest: Manifest,
    parts: Sequence[Part],
    group: Group,
    show: Callable[[], Any],
    run: Run,
) -> None:
    """Write a checkpoint: all processes call this at the same time."""
    name = f"{VALUES}{group.agree(lambda: begin(folder))}"
    target = folder / name
    process = process_index()

    def write_own() -> None:
        with show() as advance:
            write_parts(target / file_name(process), parts, advance)
        own = [[leaf, *shard_json(one)] for leaf, one in shard_records(parts, process)]
        write_whole(target / PARTS.format(process), json.dumps(own).encode())

    def finish() -> None:
        if process == 0:
            whole = evolve(manifest, values=name, processes=group.size)
            commit(folder, whole, run.order())
            run.clear()

    group.together("values", write_own)
    group.together("manifest", finish)


def begin(folder: Path) -> str:
    """Make a folder for the values, and return its number."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = [path.name.removeprefix(VALUES) for path in folder.glob(f"{VALUES}*")]
    last = max([int(text) for text in numbers if text.isdigit()], default=0)
    (folder / f"{VALUES}{last + 1}").mkdir()
    return str(last + 1)


def write_parts(file: Path, parts: Sequence[Part], advance: Advance) -> None:
    """Write arrays as `numpy.savez` does, and wait until they are on the disk."""
    with file.open("wb") as out:
        with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
            for one in parts:
                with archive.open(f"{one.name}.npy", "w", force_zip64=True) as member:
                    values = writable(one.values)
                    np.lib.format.write_array(member, values, allow_pickle=False)
                advance(one.values.nbytes)
        out.flush()
        os.fsync(out.fileno())


def shard_json(shard: ShardRecord) -> list[Json]:
    """A shard as the other processes tell it to the first."""
    return [shard.file, shard.name, list(shard.start), list(shard.shape)]


def commit(folder: Path, manifest: Manifest, order: int) -> None:
    """Replace the manifest, once all the values are there; remove former values."""
    target = folder / manifest.values
    result: list[list[ShardRecord]] = [[] for _ in manifest.leaves]
    for process in range(manifest.processes):
        file = target / PARTS.format(process)
        for leaf, name, key, start, shape in json.loads(file.read_bytes()):
            result[leaf].append(ShardRecord(name, key, tuple(start), tuple(shape)))
        file.unlink()
    leaves = [
        evolve(leaf, shards=tuple(shards))
        for leaf, shards in zip(manifest.leaves, result, strict=True)
    ]
    for leaf in leaves:
        check_covered(leaf)
    sync_folder(target)
    whole = evolve(manifest, leaves=tuple(leaves))
    write_whole(folder / NAME, whole.to_bytes(order))
    for other in folder.glob(f"{VALUES}*"):
        if other != target:
            shutil.rmtree(other, ignore_errors=True)


def read_metadata(path: str | os.PathLike[str]) -> Json:
    """The `metadata` that was given to `save`.

    Raises:
        FileNotFoundError, CheckpointError: as in `restore`.
    """
    return read_manifest(Path(path)).metadata
