"""A folder with checkpoints by step, of which the last few are kept.

A training loop saves while it goes on, and starts again where it was::

    kept = Checkpoints("run", keep=3)
    step, state = kept.restore(like=state) if kept.latest() is not None else (0, state)
    kept.save(step, state)
"""

import operator
import os
import re
import shutil
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from verax.backend.runtime.client import process_index
from verax.experimental.checkpoint.leaves import NAME, Json, saved_order
from verax.experimental.checkpoint.restoring import restore
from verax.experimental.checkpoint.saving import Run, Saving, prepare

__all__ = ["Checkpoints"]

STEP: Final = re.compile(r"step-(0|[1-9][0-9]*)")


class Checkpoints:
    """The checkpoints of a run, one for each step that was saved.

    The latest is the one that was saved last, whatever its number: a run that goes back
    to a step and on from there leaves the steps above it behind. Each checkpoint has
    its place in the order of saving; clocks do not matter.

    Args:
        path: the folder; it is made by the first save.
        keep: how many are kept, those saved last; None keeps all.

    >>> import tempfile, verax.numpy as vnp
    >>> from verax.experimental.checkpoint import Checkpoints
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = Checkpoints(folder, keep=2)
    ...     for step in (10, 20, 30):
    ...         kept.save(step, {"w": vnp.ones(1) * step})
    ...     kept.steps(), kept.restore()
    ([20, 30], (30, {'w': Array([30.], dtype=float32)}))
    """

    __module__ = "verax.experimental.checkpoint"

    def __init__(
        self, path: str | os.PathLike[str], *, keep: int | None = None
    ) -> None:
        if keep is not None and keep < 1:
            raise ValueError(f"keep must be at least 1 or None, got {keep}")
        self.path = Path(path)
        self.keep = keep
        self.saving: Saving | None = None

    def __repr__(self) -> str:
        return f"Checkpoints({str(self.path)!r}, keep={self.keep})"

    def steps(self) -> list[int]:
        """The steps of which there is a complete checkpoint, by their numbers."""
        out = [STEP.fullmatch(file.parent.name) for file in self.path.glob(f"*/{NAME}")]
        return sorted([int(match[1]) for match in out if match])

    def latest(self) -> int | None:
        """The step that was saved last, of those of which there is a checkpoint."""
        return max(self.orders().items(), key=last, default=(None, 0))[0]

    def orders(self) -> dict[int, int]:
        """For each step, which save of the run wrote it: 1 for the first.

        0 is for those that a former version of verax wrote.
        """
        out = {}
        for step in self.steps():
            with suppress(FileNotFoundError):  # another process is removing it
                out[step] = saved_order(self.folder(step))
        return out

    def folder(self, step: int) -> Path:
        """The folder of a step."""
        return self.path / f"step-{step}"

    def save(
        self,
        step: int,
        tree: object,
        *,
        wait: bool = True,
        overwrite: bool = False,
        metadata: Json = None,
        progress: bool = False,
    ) -> None:
        """Save a step; then remove the steps that are not kept.

        Unless `wait`, the values are written while the program goes on, and the next
        call of `save` or `wait` raises what failed. Every process calls this.

        A step below the latest one becomes the latest, with a warning: a run that went
        back does so once, another one has its numbers wrong. What it comes to again
        is there already, and `overwrite` replaces it.

        Raises:
            TypeError: `step` is not an integer, or as in `checkpoint.save`.
            ValueError: `step` is negative.
            FileExistsError, OSError: as in `checkpoint.save`.
        """
        step = operator.index(step)
        if step < 0:
            raise ValueError(f"step must not be negative, got {step}")
        self.wait()
        path = self.folder(step)
        run = Run(self.next_order, self.clear)
        write = prepare(path, tree, overwrite, metadata, progress, run)
        latest = self.latest()
        if wait:
            write()
        else:
            self.saving = Saving(path, write)
        # Last, so that a filter that makes an error of it leaves the checkpoint.
        if latest is not None and step < latest and process_index() == 0:
            warnings.warn(
                f"step {step} is saved below step {latest}, the latest in {self.path}, "
                "and is the latest now; steps above it are those of a run that went "
                "back, and the first that `keep` removes",
                stacklevel=2,
            )

    def wait(self) -> None:
        """Wait for the save under way, if there is one.

        Raises:
            OSError, CheckpointError: it failed.
        """
        saving, self.saving = self.saving, None
        if saving is not None:
            saving.wait()

    def next_order(self) -> int:
        """The number of the next save."""
        return 1 + max(self.orders().values(), default=0)

    def clear(self) -> None:
        """Remove the steps that are not kept: their manifests first."""
        if self.keep is None:
            return
        for step, _ in sorted(self.orders().items(), key=last)[: -self.keep]:
            (self.folder(step) / NAME).unlink(missing_ok=True)
            shutil.rmtree(self.folder(step), ignore_errors=True)

    def restore(
        self,
        step: int | None = None,
        like: object = None,
        *,
        sharding: object = None,
        partial: bool = False,
    ) -> tuple[int, Any]:
        """A step, by default the latest (see there), and its tree.

        Raises:
            FileNotFoundError: there is none.
            CheckpointError: as in `checkpoint.restore`.
        """
        out = self.latest() if step is None else step
        if out is None:
            raise FileNotFoundError(f"there is no complete checkpoint in {self.path}")
        options: dict[str, Any] = {"sharding": sharding, "partial": partial}
        return out, restore(self.folder(out), like, **options)


def last(saved: tuple[int, int]) -> tuple[int, int]:
    """The order of saves: by place, then by number."""
    step, order = saved
    return order, step
