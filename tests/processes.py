"""Processes that tests start."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process whose output is text, and which has ended after the block.

    `with subprocess.Popen(...)` waits for the end: a failed assertion in such a block
    would wait for ever for a process that serves until it is interrupted.
    """
    with subprocess.Popen(command, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()
