"""Floor 6: a loop of training steps that goes on where it was when it was cut short.

One idea: a run is a fold of `step` over the batches 0, 1, 2, ..., and a batch depends
on its number alone; so the state after n steps, on the disk, is all that a run needs to
go on, with any number of processes and on any mesh::

    state = train(step, state, batch_of, steps=1000, directory="run", every=100)
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from verax.experimental.checkpoint import Checkpoints
from verax.rules.values.conversions import check_callable

__all__ = ["train"]


def train[S, B, A](
    step: Callable[[S, B], tuple[S, A]],
    state: S,
    batches: Callable[[int], B],
    *,
    steps: int,
    directory: str | os.PathLike[str],
    every: int = 100,
    keep: int | None = 2,
    report: Callable[[int, A], object] | None = None,
) -> S:
    """The state after all steps; a run that was cut short goes on from its last save.

    If the folder has checkpoints, the latest one is restored to where the arrays of
    `state` lie: on this mesh, over these processes, whatever wrote it. Then step n is
    `step(state, batches(n))`. Saves go on in a thread while the next steps run; the
    last one is waited for. Where there are several processes, all of them call this,
    with a folder that they share.

    The result is that of an undisturbed run: bit for bit, if each step is the same
    program on the same number of devices; within rounding if sums are taken over
    others. What is random must come from `state` or from the number of the step.

    Args:
        step: takes the state and a batch, and returns the next state and what is to be
            reported, such as the loss. It may donate the state.
        state: what the run starts with, a tree of arrays. Its structure, types and
            shardings are those of what is restored.
        batches: makes the batch of a step from its number, 0 for the first.
        steps: how many steps the whole run has.
        directory: the folder of the checkpoints; the number of each is that of the
            steps before it.
        every: how many steps lie between saves.
        keep: how many checkpoints are kept; None keeps all.
        report: called after each step with its number and what `step` returned. Steps
            after the last save are run, and reported, again.

    Returns:
        The state after the last step.

    Raises:
        ValueError: `steps` is negative, or `every` or `keep` is not positive.
        CheckpointError: the checkpoint does not fit `state`, or is damaged.
        OSError: a save failed.

    >>> import tempfile, verax
    >>> @verax.jit
    ... def step(w, x):
    ...     loss, slope = verax.value_and_grad(lambda w: (w * x - 1) ** 2)(w)
    ...     return w - 0.1 * slope, loss
    >>> def run(steps):
    ...     return verax.distributed.train(
    ...         step, verax.numpy.zeros(()), lambda n: 1.0 + n % 2,
    ...         steps=steps, directory=folder, every=5,
    ...         report=lambda n, loss: print(n, f"{loss:.2f}"),
    ...     )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = run(2)
    ...     _ = run(3)
    0 1.00
    1 0.36
    2 0.31
    """
    for name, function in (("step", step), ("batches", batches)):
        check_callable(f"train ({name})", function)
    if steps < 0:
        raise ValueError(f"train: steps must not be negative, got {steps}")
    if every < 1:
        raise ValueError(f"train: every must be at least 1, got {every}")
    kept = Checkpoints(directory, keep=keep)
    done, state = restored(kept, state)
    with finished(kept):
        for number in range(done, steps):
            state, told = step(state, batches(number))
            if report is not None:
                report(number, told)
            if (number + 1) % every == 0 or number + 1 == steps:
                kept.save(number + 1, state, wait=False)
    return state


@contextmanager
def finished(kept: Checkpoints) -> Iterator[None]:
    """Wait for the save under way, also after an error: the next run may come at once.

    What a step raised says more than what a save raises then.
    """
    try:
        yield
    except BaseException:
        with suppress(Exception):
            kept.wait()
        raise
    kept.wait()


def restored(kept: Checkpoints, state: object) -> tuple[int, Any]:
    """The steps that were done before the latest save, and the state after them."""
    return (0, state) if kept.latest() is None else kept.restore(like=state)
