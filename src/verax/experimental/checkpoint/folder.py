"""A folder with checkpoints by step, of which the last few are kept.

A training loop saves while it goes on, and starts again where it was::

    kept = Checkpoints("run", keep=3)
    step, state = kept.restore(like=state) if kept.latest() is not None else (0, state)
    kept.save(step, state)
"""

import os
import re
import shutil
from pathlib import Path
from typing import Any, Final

from verax.experimental.checkpoint.manifest import NAME, Json
from verax.experimental.checkpoint.restoring import restore
from verax.experimental.checkpoint.saving import Saving, prepare

__all__ = ["Checkpoints"]

STEP: Final = re.compile(r"step-(\d+)")


class Checkpoints:
    """The checkpoints of a run, one for each step that was saved.

    Args:
        path: the folder; it is made by the first save.
        keep: how many are kept, the latest ones; None keeps all.

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
        """The steps of which there is a complete checkpoint, in order."""
        found = [
            STEP.fullmatch(file.parent.name) for file in self.path.glob(f"*/{NAME}")
        ]
        return sorted([int(match[1]) for match in found if match])

    def latest(self) -> int | None:
        """The last step of which there is a complete checkpoint."""
        return max(self.steps(), default=None)

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

        Raises:
            ValueError: `step` is negative.
            FileExistsError, TypeError, OSError: as in `checkpoint.save`.
        """
        if step < 0:
            raise ValueError(f"step must not be negative, got {step}")
        self.wait()
        path = self.folder(step)
        write = prepare(path, tree, overwrite, metadata, progress, self.clear)
        if wait:
            write()
        else:
            self.saving = Saving(path, write)

    def wait(self) -> None:
        """Wait for the save under way, if there is one.

        Raises:
            OSError, CheckpointError: it failed.
        """
        saving, self.saving = self.saving, None
        if saving is not None:
            saving.wait()

    def clear(self) -> None:
        """Remove the steps that are not kept: their manifests first."""
        if self.keep is None:
            return
        for step in self.steps()[: -self.keep]:
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
        """A step, by default the latest, and its tree.

        Raises:
            FileNotFoundError: there is none.
            CheckpointError: as in `checkpoint.restore`.
        """
        found = self.latest() if step is None else step
        if found is None:
            raise FileNotFoundError(f"there is no complete checkpoint in {self.path}")
        options: dict[str, Any] = {"sharding": sharding, "partial": partial}
        return found, restore(self.folder(found), like, **options)
