"""Floor 5: configuration: global values, and this thread's own within a block.

One idea: an option is an attribute of the thread's state; the class holds what is true
everywhere, the instance what a block has set::

    verax.config.update("enable_x64", True)
    with verax.enable_x64(): ...
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from verax.rules.state import STATE, Staging, State

OPTIONS: dict[str, type] = {
    "enable_x64": bool,
    "disable_jit": bool,
    "numpy_dtype_promotion": str,
    "default_matmul_precision": str,
    "default_prng_impl": str,
    "threefry_partitionable": bool,
}
# Options of JAX's that have one value here.
FIXED: dict[str, bool] = {"threefry_partitionable": True}
PREFIXES = ("jax_", "verax_")


def option_name(name: str) -> str:
    """The name of an option, without the prefix that JAX programs write.

    Raises:
        AttributeError: there is no such option.
    """
    for prefix in PREFIXES:
        name = name.removeprefix(prefix)
    if name not in OPTIONS:
        raise AttributeError(
            f"no option {name!r}; there are {', '.join(sorted(OPTIONS))}"
        )
    return name


class Config:
    """The options; read them as attributes, change them with `update`.

    >>> import verax
    >>> verax.config.enable_x64
    False
    """

    def __getattr__(self, name: str) -> bool | str | None:
        value: bool | str | None = getattr(STATE, option_name(name))
        return value

    def update(self, name: str, value: bool | str | None) -> None:
        """Set an option for every thread that has not set its own.

        Raises:
            AttributeError: there is no such option.
            TypeError: the value has the wrong type.
            ValueError: the option has one value, and this is another.
        """
        option = option_name(name)
        setattr(State, option, checked(option, value))
        refresh_staging()

    def read(self, name: str) -> bool | str | None:
        """The value of an option in this thread."""
        value: bool | str | None = getattr(STATE, option_name(name))
        return value


def checked(option: str, value: bool | str | None) -> bool | str | None:
    kind = OPTIONS[option]
    if option in FIXED and value != FIXED[option]:
        raise ValueError(f"{option} is {FIXED[option]} here and cannot be changed")
    if isinstance(value, kind) or (value is None and kind is str):
        return value
    raise TypeError(f"option {option} takes {kind.__name__}, not {value!r}")


def refresh_staging() -> None:
    """Bring the summary in `State.staging` up to date, globally and in this thread."""
    State.staging = staging(State)
    vars(STATE).pop("staging", None)
    own = staging(STATE)
    if own != State.staging:
        STATE.staging = own


def staging(state: State | type[State]) -> Staging:
    """What besides `enable_x64` decides which trace, or none, a call leads to."""
    return (
        state.numpy_dtype_promotion,
        state.default_matmul_precision,
        state.disable_jit,
        state.default_prng_impl,
    )


@contextmanager
def override(name: str, value: bool | str | None) -> Iterator[None]:
    """Set an option for this thread within the block."""
    option = option_name(name)
    new = checked(option, value)
    own = vars(STATE)
    had, before = option in own, own.get(option)
    own[option] = new
    refresh_staging()
    try:
        yield
    finally:
        if had:
            own[option] = before
        else:
            del own[option]
        refresh_staging()


@contextmanager
def enable_x64(new_value: bool = True) -> Iterator[None]:
    """Let dtypes have 64 bits within the block.

    >>> import verax, verax.numpy as vnp
    >>> with verax.enable_x64():
    ...     print(vnp.zeros(2).dtype)
    float64
    """
    with override("enable_x64", new_value):
        yield


@contextmanager
def disable_jit(disable: bool = True) -> Iterator[None]:
    """Run jitted functions as plain Python within the block, for debugging."""
    with override("disable_jit", disable):
        yield


@contextmanager
def numpy_dtype_promotion(mode: str) -> Iterator[None]:
    """Promote dtypes as usual ("standard"), or only weak ones ("strict")."""
    with override("numpy_dtype_promotion", mode):
        yield


@contextmanager
def default_matmul_precision(precision: str | None) -> Iterator[None]:
    """The precision of matrix products that do not say one themselves."""
    with override("default_matmul_precision", precision):
        yield


def from_environment() -> None:
    """Set options from `VERAX_ENABLE_X64` and its kin, else from `JAX_...`."""
    for option, kind in OPTIONS.items():
        for prefix in ("VERAX_", "JAX_"):
            text = os.environ.get(prefix + option.upper())
            if text is None:
                continue
            if kind is bool:
                setattr(State, option, text.lower() in ("1", "true", "yes", "on"))
            else:
                setattr(State, option, text)
            break
    refresh_staging()


config = Config()
