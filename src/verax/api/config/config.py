"""Floor 5: configuration: global values, and this thread's own within a block.

One idea: an option is an attribute of the thread's state; the class holds what is true
everywhere, the instance what a block has set::

    verax.config.update("enable_x64", True)
    with verax.enable_x64(): ...
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from verax.api.tracing.apply import ENGINE
from verax.backend.eager.interpreter import eager_interpreter
from verax.backend.runtime.client import (
    ClientOptions,
    Device,
    configure_client,
    default_client,
    local_devices,
)
from verax.backend.xla.compile_options import EFFORTS
from verax.rules.rows.builder import Builder
from verax.rules.values.lazy import LazyModule
from verax.rules.values.state import (
    STATE,
    Interpreter,
    State,
    changing,
    interpreting,
    refresh,
)

# What looks for NaNs is loaded when it is first asked for.
checking = LazyModule("verax.backend.eager.nan_checks").checking

OPTIONS: dict[str, type] = {
    "enable_x64": bool,
    "disable_jit": bool,
    "debug_nans": bool,
    "debug_infs": bool,
    "explain_cache_misses": bool,
    "check_tracer_leaks": bool,
    "compile_effort": str,
    "numpy_dtype_promotion": str,
    "default_matmul_precision": str,
    "default_prng_impl": str,
    "threefry_partitionable": bool,
    "enable_compilation_cache": bool,
    "compilation_cache_dir": str,
    "compilation_cache_key": str,
    "compilation_cache_max_size": int,
    "persistent_cache_min_compile_time_secs": float,
    "persistent_cache_min_entry_size_bytes": int,
}
# Options with few values.
CHOICES: Mapping[str, tuple[str, ...]] = MappingProxyType({"compile_effort": EFFORTS})
# Options of JAX's that have one value here.
FIXED: dict[str, bool] = {"threefry_partitionable": True}
CLIENT_OPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "num_cpu_devices": "device_count",
        "platforms": "platform",
        "platform_name": "platform",
    }
)
"""Options of the client, which are fixed when it starts."""
EAGER_OPTIONS = ("default_device", "debug_nans", "debug_infs")
"""Options that choose the eager interpreter."""
PREFIXES = ("jax_", "verax_")


def option_name(name: str) -> str:
    """The name of an option, without the prefix that JAX programs write.

    Raises:
        AttributeError: there is no such option.
    """
    for prefix in PREFIXES:
        name = name.removeprefix(prefix)
    known = (*OPTIONS, *CLIENT_OPTIONS, "default_device")
    if name not in known:
        raise AttributeError(
            f"there is no option {name!r}; the options are {', '.join(sorted(known))}"
        )
    return name


class Config:
    """The options; read them as attributes, change them with `update`.

    >>> import verax
    >>> verax.config.enable_x64
    False
    """

    def __getattr__(self, name: str) -> Any:
        return self.read(name)

    def update(self, name: str, value: Any) -> None:
        """Set an option for every thread that has not set its own.

        `num_cpu_devices` and `platforms` are for the client: they must be set before
        the first array or device is asked for.

        Raises:
            AttributeError: there is no such option.
            RuntimeError: the client is already running with other options.
            TypeError: the value has the wrong type.
            ValueError: the option does not have this value, or cannot be changed.
        """
        option = option_name(name)
        if option in CLIENT_OPTIONS:
            configure_client(ClientOptions(**{CLIENT_OPTIONS[option]: value}))
            return
        setattr(State, option, checked(option, value))
        if option in EAGER_OPTIONS:
            State.interpreter = State.eager = eager_of(State)
        refresh()

    def read(self, name: str) -> Any:
        """The value of an option in this thread."""
        option = option_name(name)
        if option in CLIENT_OPTIONS:
            client = default_client()
            platform = client.platform
            return platform if "platform" in option else len(client.local_devices())
        return getattr(STATE, option)


def checked(option: str, value: Any) -> Any:
    if option == "default_device":
        return as_device(value)
    kind = OPTIONS[option]
    if option in FIXED and value != FIXED[option]:
        raise ValueError(
            f"{option} is always {FIXED[option]} in verax and cannot be changed"
        )
    choices = CHOICES.get(option)
    if choices is not None and value not in choices:
        raise ValueError(f"{option} must be one of {', '.join(choices)}, not {value!r}")
    numeric = kind in (int, float) and not isinstance(value, bool)
    if value is None and kind is str:
        return value
    if isinstance(value, kind) and (numeric or kind in (bool, str)):
        return value
    if numeric and isinstance(value, int):
        return float(value)
    if option == "compilation_cache_dir" and isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"option {option} takes {kind.__name__}, not {value!r}")


def as_device(value: object) -> Device | None:
    """A device, from itself or from the name of its platform."""
    if isinstance(value, str):
        return local_devices(value)[0]
    if value is None or isinstance(value, Device):
        return value
    raise TypeError(
        "option default_device takes one of verax.devices(), the name of a platform or "
        f"None, not {value!r}"
    )


@contextmanager
def override(name: str, value: Any) -> Iterator[None]:
    """Set an option for this thread within the block."""
    option = option_name(name)
    with changing({option: checked(option, value)}):
        yield


def eager_of(state: Any) -> Interpreter:
    """The eager interpreter that the options of a state ask for."""
    eager = eager_interpreter(ENGINE, state.default_device)
    if not (state.debug_nans or state.debug_infs):
        return eager
    looking: Interpreter = checking(eager, state.debug_nans, state.debug_infs)
    return looking


@contextmanager
def override_eager(name: str, value: Any) -> Iterator[None]:
    """Set an option that chooses the eager interpreter, within the block."""
    with override(name, value):
        eager = eager_of(STATE)
        own = vars(STATE)
        had, before = "eager" in own, STATE.eager
        STATE.eager = eager
        traced = isinstance(STATE.interpreter, Builder)
        try:
            with interpreting(STATE.interpreter if traced else eager):
                yield
        finally:
            if had:
                STATE.eager = before
            else:
                own.pop("eager", None)


@contextmanager
def enable_x64(new_value: bool = True) -> Iterator[None]:
    """Allow 64-bit dtypes within the block.

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
def default_device(device: Device | str | None) -> Iterator[None]:
    """Within the block, make and compute on `device` what has no other place.

    Such arrays are not committed: they follow committed ones.

    >>> import verax, verax.numpy as vnp
    >>> with verax.default_device(verax.devices()[0]):
    ...     print(vnp.zeros(2).devices() == {verax.devices()[0]})
    True
    """
    with override_eager("default_device", device):
        yield


@contextmanager
def debug_nans(new_value: bool = True) -> Iterator[None]:
    """Within the block, raise FloatingPointError where a NaN appears.

    An eager operation raises at once. A jitted function is checked when it returns; if
    an output is NaN, its program runs again with a flag at each equation, and the error
    names the equation, the line, its operands, and the transformation that made it
    (`verax.debug.find_nans`); the report is also its `finding`. Arguments that are
    donated are copied first.

    >>> import verax, verax.numpy as vnp
    >>> with verax.debug_nans():
    ...     vnp.log(-1.0)
    Traceback (most recent call last):
    ...
    verax.errors.NonFinite: NaN in log: made by log
    ...
    """
    with override_eager("debug_nans", new_value):
        yield


@contextmanager
def debug_infs(new_value: bool = True) -> Iterator[None]:
    """As `debug_nans`, for infinite results of finite operands.

    What comes from an infinite operand or constant, such as a mask, is intended.
    """
    with override_eager("debug_infs", new_value):
        yield


@contextmanager
def check_tracer_leaks(new_value: bool = True) -> Iterator[None]:
    """Within the block, raise at the end of a trace that leaves a tracer behind.

    Using a tracer after its trace is always an error. Within the block, keeping one is
    an error too: in a list, an attribute, a cache. The error says which. Functions are
    traced again in the block, and each trace ends with a full garbage collection, so
    use this only to look for a leak.

    >>> import verax
    >>> seen = []
    >>> with verax.checking_leaks():
    ...     verax.jit(lambda x: seen.append(x))(1.0)
    Traceback (most recent call last):
    ...
    verax.errors.LeakedTracer: a tracer has left <lambda>, which was traced:
      type ~f32[], an input of that trace (argument 0 of <lambda>), held by ...
    """
    with override("check_tracer_leaks", new_value):
        yield


@contextmanager
def explain_cache_misses(new_value: bool = True) -> Iterator[None]:
    """Within the block, log each call of a jitted function that misses its caches.

    The logger is `verax`, the level WARNING. The message names the function and the
    line of the call, says how the call differs from the most similar one before, and
    how long it took; see `jit(f).explain`. A call that hits costs nothing extra.

    >>> import verax
    >>> with verax.explain_cache_misses():
    ...     print(verax.config.explain_cache_misses)
    True
    """
    with override("explain_cache_misses", new_value):
        yield


@contextmanager
def numpy_dtype_promotion(mode: str) -> Iterator[None]:
    """Promote dtypes as usual ("standard"), or only weak ones ("strict")."""
    with override("numpy_dtype_promotion", mode):
        yield


@contextmanager
def default_matmul_precision(precision: str | None) -> Iterator[None]:
    """Within the block, the precision of matrix products that do not specify one."""
    with override("default_matmul_precision", precision):
        yield


@contextmanager
def default_prng_impl(impl: str) -> Iterator[None]:
    """Within the block, random keys are of `impl`: "threefry2x32", "rbg", "unsafe_rbg".

    >>> import verax
    >>> with verax.default_prng_impl("rbg"):
    ...     print(verax.random.key(0).dtype)
    key<rbg>
    """
    with override("default_prng_impl", impl):
        yield


@contextmanager
def threefry_partitionable(new_value: bool = True) -> Iterator[None]:
    """Random bits of an element depend only on its key and place: always so in verax.

    Raises:
        ValueError: `new_value` is False.
    """
    with override("threefry_partitionable", new_value):
        yield


def from_environment() -> None:
    """Set options from `VERAX_ENABLE_X64` and its kin, else from `JAX_...`."""
    for option, kind in OPTIONS.items():
        for prefix in ("VERAX_", "JAX_"):
            text = os.environ.get(prefix + option.upper())
            if text is None:
                continue
            value = from_text(prefix + option.upper(), kind, text)
            setattr(State, option, checked(option, value))
            break
    State.interpreter = State.eager = eager_of(State)
    refresh()


def from_text(variable: str, kind: type, text: str) -> Any:
    """The value of an option from an environment variable."""
    if kind is bool:
        return text.lower() in ("1", "true", "yes", "on")
    if kind is str:
        return text or None
    try:
        return kind(text)
    except ValueError:
        raise ValueError(
            f"the environment variable {variable} takes {kind.__name__}, not {text!r}"
        ) from None


config = Config()
