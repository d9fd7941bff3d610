"""Logging of traces and compilations (floor 4).

The lines are JAX's, for programs that look for them. The logger is `verax`, the level
DEBUG, or WARNING while `log_compiles` is on::

    log_stage("Finished tracing %s for jit in %.9f sec", name, seconds)
"""

import logging
from typing import Final

from verax.rules.values.state import STATE

LOGGER: Final = logging.getLogger("verax")
HANDLER: Final = logging.StreamHandler()
FORMAT: Final = logging.Formatter("{levelname}:{asctime}:{name}: {message}", style="{")


def log_stage(text: str, *args: object) -> None:
    """Log what a stage of the way to a program has done."""
    level = logging.WARNING if STATE.log_compiles else logging.DEBUG
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, text, *args)


def log_detail(text: str, *args: object) -> None:
    """Log what explains something to those who look for it."""
    LOGGER.debug(text, *args)


def log_warning(text: str, *args: object) -> None:
    """Log what the user has asked to be told."""
    LOGGER.warning(text, *args)


def set_level(level: str | None) -> None:
    """Log from `level` on to standard error; None and NOTSET leave that to `logging`.

    Whoever has configured `logging` for the process gets the messages from it, too.
    """
    if level is None or level == "NOTSET":
        LOGGER.removeHandler(HANDLER)
        LOGGER.setLevel(logging.NOTSET)
        return
    HANDLER.setFormatter(FORMAT)
    LOGGER.addHandler(HANDLER)
    LOGGER.setLevel(level)
