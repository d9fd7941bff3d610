"""`jax._src.config`: each option as an object with its value, and a block that sets it.

Reading goes to the options as they are in this thread::

    config.enable_x64.value
    with config.enable_x64(True): ...

A flag that a program makes for itself is a value that it keeps::

    SEED = config.int_flag("my_seed", config.int_env("MY_SEED", 0), help="...")
    SEED.value
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from typing import Any

import verax
from verax import config as config

update = config.update


class State:
    """One option."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def value(self) -> Any:
        """The value that it has in this thread."""
        return getattr(config, self.name)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __call__(self, new: object = True) -> AbstractContextManager[object]:
        """Set it within a block."""
        return block(self, new)


@contextmanager
def block(state: State, new: object) -> Iterator[None]:
    """A value within a block: of an option without blocks, for all threads."""
    manager = getattr(verax, state.name, None)
    if manager is not None:
        with manager(new):
            yield
        return
    old = state.value
    update(state.name, new)
    try:
        yield
    finally:
        update(state.name, old)


class ExplicitX64Mode(StrEnum):
    """The values of the option `explicit_x64_dtypes`."""

    WARN = "warn"
    ERROR = "error"
    ALLOW = "allow"


class Flag:
    """A flag of a program's own: a name, and a value that it may replace."""

    def __init__(
        self, name: str, default: object, *said: object, **more: object
    ) -> None:
        self.name = name
        self.value = default


bool_flag = int_flag = float_flag = string_flag = Flag


def enum_flag(
    name: str, default: str, enum_values: Sequence[str], help: str = ""
) -> Flag:
    """A flag with one of a few values."""
    if default not in enum_values:
        raise ValueError(
            f"{name} must be one of {', '.join(enum_values)}, not {default!r}"
        )
    return Flag(name, default)


def bool_env(varname: str, default: bool) -> bool:
    """An environment variable that says yes or no."""
    text = os.environ.get(varname, str(default)).lower()
    if text in ("y", "yes", "t", "true", "on", "1"):
        return True
    if text in ("n", "no", "f", "false", "off", "0", ""):
        return False
    raise ValueError(f"the environment variable {varname} must be 0 or 1, not {text!r}")


def int_env(varname: str, default: int) -> int:
    """An environment variable that is a number."""
    return int(os.environ.get(varname, default))


def __getattr__(name: str) -> Any:
    short = name.removeprefix("jax_")
    if short.startswith("_") or short not in dir(config):
        raise AttributeError(name)
    own = getattr(type(config), short, None)
    return getattr(config, short) if callable(own) else State(short)


def __dir__() -> list[str]:
    return [name for name in (*globals(), *dir(config)) if name[0] != "_"]
