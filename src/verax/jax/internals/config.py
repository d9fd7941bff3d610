"""`jax._src.config`: each option as an object with its value, and a block that sets it.

Reading goes to the options as they are in this thread::

    config.enable_x64.value
    with config.enable_x64(True): ...
"""

from contextlib import AbstractContextManager
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

    def __call__(self, new: Any = True) -> AbstractContextManager[Any]:
        """Set it within a block."""
        manager: Any = getattr(verax, self.name, None)
        if manager is None:
            raise NotImplementedError(f"{self.name} has no block that sets it")
        return manager(new)  # type: ignore[no-any-return]  # one of verax's own


def __getattr__(name: str) -> Any:
    short = name.removeprefix("jax_")
    if short.startswith("_") or short not in dir(config):
        raise AttributeError(name)
    return State(short)


def __dir__() -> list[str]:
    return ["State", "config", "update", *dir(config)]
