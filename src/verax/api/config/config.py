"""Floor 5: configuration: global values, and this thread's own within a block.

One idea: an option is an attribute of the thread's state; the class holds what is true
everywhere, the instance what a block has set::

    verax.config.update("enable_x64", True)
    with verax.enable_x64(): ...
"""

import os
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import wraps
from types import SimpleNamespace
from typing import Any, Final, Protocol

from verax.api.config.options import EAGER, OPTIONS, Option, flags_of, jax_name, option
from verax.api.config.tracebacks import watch
from verax.api.tracing.apply import ENGINE
from verax.backend.eager.interpreter import eager_interpreter
from verax.backend.runtime.client import (
    ClientOptions,
    Device,
    configure_client,
    default_client,
)
from verax.rules.guards import Block
from verax.rules.rows.builder import Builder
from verax.rules.values.state import (
    LIBRARY,
    STATE,
    Interpreter,
    State,
    changing,
    refresh,
)

PREFIXES: Final = ("JAX_", "VERAX_")


class Config:
    """The options; read them as attributes, change them with `update`.

    >>> import verax
    >>> verax.config.enable_x64, verax.config.jax_enable_x64
    (False, False)
    """

    def __getattr__(self, name: str) -> Any:
        return self.read(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *OPTIONS]

    @property
    def values(self) -> dict[str, Any]:
        """The options and their values in this thread, under JAX's names.

        Those of the client are not among them: reading them starts it.

        >>> import verax
        >>> verax.config.values["jax_enable_x64"]
        False
        """
        live = [name for name, row in OPTIONS.items() if not row.client]
        return {jax_name(name): self.read(name) for name in live}

    @property
    def x64_enabled(self) -> bool:
        """Whether dtypes may have 64 bits in this thread."""
        return STATE.enable_x64

    def parse_flags_with_absl(self) -> None:
        """Set options from the arguments of the program that start with `--jax_`.

        They are `--jax_name=value`, for booleans also `--jax_name` and `--nojax_name`,
        before the first `--`. Despite its name, which is JAX's, this does not need
        absl, and leaves the arguments where they are. If the program has loaded absl,
        its other flags are parsed afterwards, with their default values: tests that
        are not run by absl rely on it.

        Raises:
            AttributeError: there is no such option.
            ValueError: an option does not take the value.
        """
        for row, value in flags_of(sys.argv[1:]):
            self.update(row.name, value)
        absl = sys.modules.get("absl.flags")
        if absl is not None and not absl.FLAGS.is_parsed():
            absl.FLAGS([""], known_only=True)

    def config_with_absl(self) -> None:
        """Define absl's flags `--jax_...`, which set the options when absl parses them.

        For programs that start with `absl.app.run`.

        Raises:
            ModuleNotFoundError: the program has not imported `absl.app`.
        """
        if "absl.app" not in sys.modules:
            raise ModuleNotFoundError("import absl.app first", name="absl.app")
        app = sys.modules["absl.app"]
        flags = sys.modules["absl.flags"]
        for name, row in OPTIONS.items():
            if jax_name(name) not in flags.FLAGS:
                default = None if row.client else str(row.default)
                flags.DEFINE_string(jax_name(name), default, row.does)

        def complete() -> None:
            for name, row in OPTIONS.items():
                flag = flags.FLAGS[jax_name(name)]
                if flag.present:
                    self.update(name, row.parse(f"--{flag.name}", flag.value))

        app.call_after_init(complete)

    def update(self, name: str, val: Any) -> None:
        """Set an option for every thread that has not set its own.

        `num_cpu_devices` and `platforms` are for the client: they must be set before
        the first array or device is asked for.

        Raises:
            AttributeError: there is no such option.
            RuntimeError: the client is already running with other options.
            TypeError: the value has the wrong type.
            ValueError: the option does not have this value.

        What is always so in verax stays so, with a warning: programs set options that
        mean nothing here.
        """
        row = option(name)
        if row.client:
            try:
                configure_client(ClientOptions(**{row.client: val}))
            except RuntimeError as error:
                raise RuntimeError(
                    f"{name} config should be updated before backends are "
                    f"initialized. {error}"
                ) from None
            return
        if row.refuses(val):
            warnings.warn(row.refusal, stacklevel=2, skip_file_prefixes=(LIBRARY,))
            return
        set_for_all(settings(row, val))
        refresh()

    def read(self, name: str) -> Any:
        """The value of an option in this thread."""
        row = option(name)
        if row.client:
            client = default_client()
            platform = row.client == "platform"
            return client.platform if platform else len(client.local_devices())
        return getattr(STATE, row.name, row.default)


def settings(row: Option, value: object) -> dict[str, Any]:
    """The options that an option sets: itself, or those that it stands for."""
    value = row.check(value)
    efforts = {} if row.efforts is None else {"compile_effort": row.efforts[value]}
    return {**dict.fromkeys((row.name, *row.covers), value), **efforts}


def set_for_all(values: Mapping[str, Any]) -> None:
    """Set options for all threads; the caller refreshes the contexts."""
    for name, value in values.items():
        setattr(State, name, value)
    if not EAGER.isdisjoint(values):
        State.interpreter = State.eager = eager_of(State)
    if "logging_level" in values:
        from verax.backend.runtime.log import set_level

        set_level(values["logging_level"])
    if "traceback_filtering" in values:
        watch(values["traceback_filtering"] != "off")


class OptionBlock(Protocol):
    """A `with` block in which options have other values, or a decorator.

    A decorated function runs in a block of its own each time.
    """

    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...
    def __call__[F: Callable[..., Any]](self, function: F, /) -> F:
        """`function`, called within such a block."""
        ...


class Setting(Block):
    """Makes an `OptionBlock`: a block of C, and how to make another."""

    __slots__ = ("again",)
    again: Callable[[], AbstractContextManager[None, None]]

    def __call__(self, function: Callable[..., object]) -> Callable[..., Any]:
        again = self.again

        @wraps(function)
        def call(*args: object, **kwargs: object) -> Any:
            with again():
                return function(*args, **kwargs)

        return call


def block_of(values: Mapping[str, object]) -> AbstractContextManager[None, None]:
    """A block in which this thread has `values`, and the interpreter they ask for."""
    if EAGER.isdisjoint(values):
        return changing(values)
    now = {name: getattr(STATE, name) for name in EAGER}
    eager = eager_of(SimpleNamespace(**(now | dict(values))))
    traced = isinstance(STATE.interpreter, Builder)
    current = {} if traced else {"interpreter": eager}
    return changing({**values, "eager": eager, **current})


def override(name: str, value: object) -> OptionBlock:
    """Set an option for this thread within the block.

    What it gives is a context manager and a decorator.
    """
    return option_block(settings(option(name), value))


def option_block(values: Mapping[str, object]) -> OptionBlock:
    """A block or decorator that sets attributes of this thread's state."""
    made: Any = block_of(values)
    out: Any = Setting()
    out.entered, out.exited = made.entered, made.exited
    out.again = lambda: block_of(values)
    block: OptionBlock = out  # whose methods its slots hold
    return block


def eager_of(state: Any) -> Interpreter:
    """The eager interpreter that the options of a state ask for."""
    plain = eager_interpreter(ENGINE, state.default_device, State.accelerated)
    eager: Interpreter = plain
    if state.debug_nans or state.debug_infs:
        from verax.backend.eager.nan_checks import checking

        eager = checking(plain, state.debug_nans, state.debug_infs)
    if state.debug_key_reuse:
        from verax.backend.eager.key_checks import key_checking

        eager = key_checking(eager)
    levels = (
        state.transfer_guard_host_to_device,
        state.transfer_guard_device_to_device,
    )
    if state.no_execution or levels != (None, None):
        from verax.backend.eager.guarded import guarded

        eager = guarded(eager)
    return eager


def compute_on_devices() -> None:
    """From now on eager operations are programs on the default device.

    So no array leaves its memory unless its values are asked for.
    """
    State.accelerated = True
    State.interpreter = State.eager = eager_of(State)
    refresh()


def enable_x64(new_val: bool = True) -> OptionBlock:
    """Allow 64-bit dtypes within the block.

    >>> import verax, verax.numpy as vnp
    >>> with verax.enable_x64():
    ...     print(vnp.zeros(2).dtype)
    float64
    """
    return override("enable_x64", new_val)


def disable_jit(disable: bool = True) -> OptionBlock:
    """Run jitted functions as plain Python within the block, for debugging."""
    return override("disable_jit", disable)


def default_device(new_val: Device | str | None) -> OptionBlock:
    """Within the block, make and compute on a device what has no other place.

    Such arrays are not committed: they follow committed ones.

    >>> import verax, verax.numpy as vnp
    >>> with verax.default_device(verax.devices()[0]):
    ...     print(vnp.zeros(2).devices() == {verax.devices()[0]})
    True
    """
    return override("default_device", new_val)


def debug_nans(new_val: bool = True) -> OptionBlock:
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
    verax.errors.NonFinite: invalid value (nan) encountered in log
    ...
    """
    return override("debug_nans", new_val)


def debug_infs(new_val: bool = True) -> OptionBlock:
    """As `debug_nans`, for infinite results of finite operands.

    What comes from an infinite operand or constant, such as a mask, is intended.
    """
    return override("debug_infs", new_val)


def check_tracer_leaks(new_val: bool = True) -> OptionBlock:
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
    verax.errors.LeakedTracer: Leaked trace: a tracer has left <lambda>, which was ...
      type ~f32[], an input of that trace (argument x of <lambda>), held by ...
    """
    return override("check_tracer_leaks", new_val)


def explain_cache_misses(new_val: bool = True) -> OptionBlock:
    """Within the block, log each call of a jitted function that misses its caches.

    The logger is `verax`, the level WARNING. The message names the function and the
    line of the call, says how the call differs from the most similar one before, and
    how long it took; see `jit(f).explain`. A call that hits costs nothing extra.

    >>> import verax
    >>> with verax.explain_cache_misses():
    ...     print(verax.config.explain_cache_misses)
    True
    """
    return override("explain_cache_misses", new_val)


def numpy_dtype_promotion(new_val: str) -> OptionBlock:
    """Promote dtypes as usual ("standard"), or only weak ones ("strict")."""
    return override("numpy_dtype_promotion", new_val)


def default_matmul_precision(new_val: str | None) -> OptionBlock:
    """Within the block, the precision of matrix products that do not specify one."""
    return override("default_matmul_precision", new_val)


def default_prng_impl(new_val: str) -> OptionBlock:
    """Within the block, keys are of a generator such as "rbg"; see `random.key`.

    >>> import verax
    >>> with verax.default_prng_impl("rbg"):
    ...     print(verax.random.key(0).dtype)
    key<rbg>
    """
    return override("default_prng_impl", new_val)


def numpy_rank_promotion(new_val: str) -> OptionBlock:
    """Within the block, what to do where arrays of different ranks broadcast together.

    "allow" does as NumPy does, "warn" gives a warning too, and "raise" is an error.

    >>> import verax, verax.numpy as vnp
    >>> with verax.numpy_rank_promotion("raise"):
    ...     vnp.ones((2, 3)) + vnp.ones(3)
    Traceback (most recent call last):
    ...
    ValueError: Operands could not be broadcast together for add ...
    """
    return override("numpy_rank_promotion", new_val)


def no_tracing(new_val: bool = True) -> OptionBlock:
    """Within the block, raise RuntimeError where a jitted function would be traced.

    >>> import verax
    >>> double = verax.jit(lambda x: 2 * x)
    >>> double(1.0)
    Array(2., dtype=float32, weak_type=True)
    >>> with verax.no_tracing():
    ...     double(2.0)
    Array(4., dtype=float32, weak_type=True)
    """
    return override("no_tracing", new_val)


def no_execution(new_val: bool = True) -> OptionBlock:
    """Within the block, raise RuntimeError where something would be computed.

    Tracing, lowering and compiling still work.

    >>> import verax
    >>> with verax.no_execution():
    ...     print(verax.make_jaxpr(lambda x: 2 * x)(1.0).out_avals)
    (~f32[],)
    """
    return override("no_execution", new_val)


def debug_key_reuse(new_val: bool = True) -> OptionBlock:
    """Within the block, raise KeyReuseError where a typed random key is used twice.

    Eager operations remember which keys they have used; programs are checked when they
    are first called, with their loops and branches. Raw keys are not checked.

    >>> import verax
    >>> key = verax.random.key(0)
    >>> with verax.debug_key_reuse():
    ...     x, y = verax.random.normal(key), verax.random.uniform(key)
    Traceback (most recent call last):
    ...
    verax.errors.KeyReuseError: Previously-consumed key passed to random_bits ...
    """
    return override("debug_key_reuse", new_val)


def enable_checks(new_val: bool = True) -> OptionBlock:
    """Within the block, check that each traced program is well typed.

    A fault is an error of verax, or of a rule of yours: `verax.errors.IllTyped`.
    """
    return override("enable_checks", new_val)


def log_compiles(new_val: bool = True) -> OptionBlock:
    """Within the block, log each trace, lowering and compilation, and how long it took.

    The logger is `verax` and the level WARNING; it is DEBUG outside such a block.
    """
    return override("log_compiles", new_val)


def enable_custom_prng(new_val: bool = True) -> OptionBlock:
    """Within the block, `random.PRNGKey` makes typed keys, as `random.key` does.

    >>> import verax
    >>> with verax.enable_custom_prng():
    ...     print(verax.random.PRNGKey(0).dtype)
    key<fry>
    """
    return override("enable_custom_prng", new_val)


def legacy_prng_key(new_val: str) -> OptionBlock:
    """Within the block, "allow" raw random keys, "warn" of them, or make an "error".

    >>> import verax
    >>> with verax.legacy_prng_key("error"):
    ...     verax.random.normal(verax.random.PRNGKey(0))
    Traceback (most recent call last):
    ...
    ValueError: Legacy uint32 key array passed as key to ...
    """
    return override("legacy_prng_key", new_val)


def auto_pcast(new_val: bool = True) -> OptionBlock:
    """Whether operands are cast where others vary along more axes of a `shard_map`.

    Where they are not, the program says it itself, with `lax.pcast`.

    Raises:
        TypeError: `new_val` is not a bool.

    >>> import numpy as np, verax
    >>> from verax.sharding import PartitionSpec as P
    >>> mesh = verax.make_mesh((1,), ("x",))
    >>> f = verax.shard_map(
    ...     lambda x, y: x * y, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x")
    ... )
    >>> with verax.auto_pcast(False):
    ...     f(np.ones(2), np.ones(2))
    Traceback (most recent call last):
    ...
    ValueError: an operation requires varying manual axes to match, but got ...
    """
    return override("auto_pcast", new_val)


def remove_size_one_mesh_axis_from_type(new_val: bool = True) -> OptionBlock:
    """Within the block, have types name no explicit mesh axis of size 1.

    Such an axis splits nothing, so that types that differ by it alone are one, and
    within `shard_map` no value varies along it. Where an array lies, and its sharding,
    name it as before.

    Raises:
        TypeError: `new_val` is not a bool.

    >>> import numpy as np, verax
    >>> from verax.sharding import PartitionSpec as P
    >>> with verax.set_mesh(verax.make_mesh((1,), ("x",))):
    ...     with verax.remove_size_one_mesh_axis_from_type(True):
    ...         y = verax.device_put(np.ones(2, np.float32), P("x"))
    ...     z = verax.device_put(np.ones(2, np.float32), P("x"))
    >>> print(verax.typeof(y), verax.typeof(z), y.sharding == z.sharding)
    f32[2] f32[2@x] True
    """
    return override("remove_size_one_mesh_axis_from_type", new_val)


def threefry_partitionable(new_val: bool = True) -> OptionBlock:
    """Whether random bits of an element depend only on its key and place.

    Otherwise they depend on the size of the array, too, as in JAX before 0.5, and an
    array that is split over devices is drawn whole on each.

    >>> import verax
    >>> key = verax.random.key(0)
    >>> with verax.threefry_partitionable(False):
    ...     verax.random.bits(key, 2)
    Array([ 928981903, 3453687069], dtype=uint32)
    """
    return override("threefry_partitionable", new_val)


def explicit_x64_dtypes(new_val: str) -> OptionBlock:
    """Within the block, "warn" or "error" where a 64-bit dtype is asked for.

    That is while `enable_x64` is off: such dtypes are narrowed then. "allow" keeps
    them, though Python numbers stay 32 bits wide.

    >>> import verax
    >>> with verax.explicit_x64_dtypes("error"):
    ...     verax.numpy.zeros(2, "float64")
    Traceback (most recent call last):
    ...
    ValueError: zeros: Explicitly requested dtype float64, but 64-bit types are off; ...
    """
    return override("explicit_x64_dtypes", new_val)


def transfer_guard(new_val: str | None) -> OptionBlock:
    """Within the block, what to do about transfers between host and devices.

    "allow" allows all, "log" logs implicit ones and "disallow" makes them an error;
    "log_explicit" and "disallow_explicit" mean those of `device_put` and `device_get`,
    too. What eager operations compute in NumPy is not transferred, nor is memory of
    the processor that a CPU device shares.

    >>> import numpy, verax
    >>> with verax.transfer_guard("disallow"):
    ...     verax.jit(verax.numpy.sin)(numpy.ones(3))
    Traceback (most recent call last):
    ...
    verax.errors.JaxRuntimeError: INVALID_ARGUMENT: Disallowed host-to-device ...
    """
    return override("transfer_guard", new_val)


def transfer_guard_host_to_device(new_val: str | None) -> OptionBlock:
    """`transfer_guard` for what goes from NumPy and Python to devices."""
    return override("transfer_guard_host_to_device", new_val)


def transfer_guard_device_to_device(new_val: str | None) -> OptionBlock:
    """`transfer_guard` for what goes from one device to another."""
    return override("transfer_guard_device_to_device", new_val)


def transfer_guard_device_to_host(new_val: str | None) -> OptionBlock:
    """`transfer_guard` for what goes from devices other than CPUs to NumPy."""
    return override("transfer_guard_device_to_host", new_val)


class UserContext:
    """A value of the user's on which what jitted functions do may depend.

    `my_context(value)` is a block, or a decorator, in which `my_context.value` is that
    value in this thread.
    """

    def __init__(self, default_value: object = None) -> None:
        self.default = default_value

    @property
    def value(self) -> Any:
        """The value of the innermost block, else the default."""
        for context, value in reversed(STATE.user_contexts):
            if context is self:
                return value
        return self.default

    def __call__(self, new_value: object) -> OptionBlock:
        outer = [(c, v) for c, v in STATE.user_contexts if c is not self]
        return option_block({"user_contexts": (*outer, (self, new_value))})


def make_user_context(default_value: object = None) -> UserContext:
    """A context in which jitted functions are traced again for each new value.

    Values must be hashable.

    >>> import verax
    >>> scale = verax.make_user_context(1.0)
    >>> times = verax.jit(lambda x: x * scale.value)
    >>> with scale(3.0):
    ...     print(times(2.0))
    6.0
    >>> print(times(2.0))
    2.0
    """
    return UserContext(default_value)


def from_environment() -> None:
    """Set options from `VERAX_ENABLE_X64` and its kin, else from `JAX_...`.

    Options of the client are read when it starts.
    """
    result = [name for name in os.environ if name.startswith(PREFIXES)]
    for variable in sorted(result):  # so that VERAX_... comes after JAX_...
        row = OPTIONS.get(variable.partition("_")[2].lower())
        if row is None or row.client:
            continue
        try:
            value = row.parse(variable, os.environ[variable])
        except ValueError as error:
            if not row.fixed or variable.startswith("VERAX_"):
                raise
            warnings.warn(f"{variable} is ignored: {error}", stacklevel=2)
            continue
        set_for_all(settings(row, value))
    watch(State.traceback_filtering != "off")
    State.interpreter = State.eager = eager_of(State)
    refresh()


config = Config()
