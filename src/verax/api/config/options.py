"""Floor 5: the table of options: JAX's names, their values, and what they do here.

An option is a row. One without an effect here takes only the value that is true here,
so that a program which asks for something else is told::

    option("jax_numpy_rank_promotion").choices      # ("allow", "warn", "raise")
    option("jax_use_shardy_partitioner").check(False)    # ValueError
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import IntEnum
from itertools import takewhile
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from attrs import frozen

from verax.backend.runtime.client import Device, local_devices
from verax.backend.xla.compile_options import (
    CALLS,
    CPU_LOWERINGS,
    EFFORT_OF_LEVEL,
    EFFORTS,
    CompilerEffortLevel,
)
from verax.ir.records import ReprMixin
from verax.rules.values.lazy import LazyMapping

PREFIXES: Final = ("jax_", "verax_")
GUARDS: Final = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")


@frozen(repr=False)
class Option(ReprMixin):
    """A row: name, type and default of an option, and what it does.

    `choices` are all its values, if they are few. `optional` options may be None.
    `fixed` ones have one value here, the default, and `idle` ones have no effect. One
    that `covers` others sets those too, and one with `efforts` the option
    `compile_effort`. `client` names the argument of `ClientOptions` that an option
    sets before the client starts.
    """

    name: str
    kind: type
    default: object
    does: str
    choices: Collection[str] = ()
    optional: bool = False
    fixed: bool = False
    idle: bool = False
    client: str = ""
    covers: tuple[str, ...] = ()
    efforts: Mapping[Any, str] | None = None

    def check(self, value: object) -> Any:
        """The value as it is kept.

        Raises:
            TypeError: it has the wrong type.
            ValueError: the option does not take this value.
        """
        if value is None and self.optional:
            return value
        if self.kind is Device:
            return as_device(value)
        if self.kind is CompilerEffortLevel:
            value = as_level(value)
        if self.refuses(value):
            raise ValueError(self.refusal)
        if isinstance(value, IntEnum) and self.kind is str:
            value = value.name.lower()
        value = getattr(value, "value", value) if self.choices else value
        if self.choices and value not in self.choices:
            raise ValueError(
                f"{self.name} must be one of {', '.join(self.choices)}, not {value!r}"
            )
        return converted(self, value)

    def refuses(self, value: object) -> bool:
        """Whether the option has one value here, which is another."""
        level = self.kind is CompilerEffortLevel
        return self.fixed and (as_level(value) if level else value) != self.default

    @property
    def refusal(self) -> str:
        """What is said to those who would change a fixed option."""
        return (
            f"{self.name} is always {self.default!r} in verax and cannot be changed: "
            f"{self.does}"
        )

    def parse(self, variable: str, text: str) -> Any:
        """The value from an environment variable or a flag, checked.

        Raises:
            ValueError: the text is not such a value.
        """
        if self.kind is bool:
            return self.check(text.lower() in ("1", "true", "yes", "y", "on", "t"))
        if self.kind in (str, Device, CompilerEffortLevel):
            return self.check(text or None if self.optional else text)
        try:
            return self.check(self.kind(text))
        except ValueError:
            raise ValueError(
                f"{variable} takes {self.kind.__name__}, not {text!r}"
            ) from None


def converted(option: Option, value: object) -> Any:
    """A value in the type of its option; numbers of NumPy's and paths are taken.

    Raises:
        TypeError: it is of another kind.
        ValueError: it is not a level.
    """
    kind = option.kind
    if kind is CompilerEffortLevel:
        if isinstance(value, CompilerEffortLevel):
            return value
        names = ", ".join(CompilerEffortLevel.__members__)
        raise ValueError(f"{option.name} must be one of {names}, not {value!r}")
    if kind is bool and (isinstance(value, np.bool_) or value in (0, 1)):
        return bool(value)
    if kind is str and isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, int | float | np.integer) and not isinstance(value, bool):
        if kind is float:
            return float(value)
        if kind is int and int(value) == value:
            return int(value)
    if kind is str and isinstance(value, str):
        return value
    raise TypeError(f"option {option.name} takes {kind.__name__}, not {value!r}")


def as_device(value: object) -> Device:
    """A device, from itself or from the name of its platform."""
    if isinstance(value, str):
        return local_devices(value)[0]
    if isinstance(value, Device):
        return value
    raise TypeError(
        "option default_device takes one of verax.devices(), the name of a platform or "
        f"None, not {value!r}"
    )


def as_level(value: object) -> object:
    """A level from its name or number; anything else as it is."""
    try:
        return CompilerEffortLevel(value)
    except ValueError:
        return value


def flag(name: str, default: bool, does: str) -> Option:
    """An option that is on or off."""
    return Option(name, bool, default, does)


def always(name: str, value: object, why: str) -> Option:
    """An option of JAX's that has one value here."""
    return Option(name, type(value), value, why, optional=value is None, fixed=True)


def idle(name: str, default: object, why: str, choices: tuple[str, ...] = ()) -> Option:
    """An option of JAX's that makes no difference here, whatever its value."""
    return Option(name, type(default), default, why, choices, idle=True)


def guard(direction: str, way: str) -> Option:
    """An option about transfers."""
    does = f"what to do about transfers {way}"
    return Option(f"transfer_guard_{direction}", str, None, does, GUARDS, optional=True)


ROWS: Final = (
    # What programs mean.
    flag("enable_x64", False, "dtypes may have 64 bits"),
    Option(
        "explicit_x64_dtypes",
        str,
        "warn",
        "what to do about a 64-bit dtype that is asked for while `enable_x64` is off: "
        "narrow it with a warning, raise, or keep it",
        ("warn", "error", "allow"),
    ),
    Option(
        "numpy_dtype_promotion",
        str,
        "standard",
        '"strict" raises where two different dtypes meet, unless one is weak',
        ("standard", "strict"),
    ),
    Option(
        "numpy_rank_promotion",
        str,
        "allow",
        "what to do where arrays of different ranks broadcast together",
        ("allow", "warn", "raise"),
    ),
    flag("check_static_indices", False, "reading at an int out of bounds raises"),
    Option(
        "default_matmul_precision",
        str,
        None,
        "the precision of matrix products that specify none",
        LazyMapping("verax.ops.contraction.precision", "CONFIGURED"),
        optional=True,
    ),
    Option(
        "default_prng_impl",
        str,
        "threefry2x32",
        "the generator of new random keys",
        LazyMapping("verax.ops.random.generators", "TAGS"),
        optional=True,
    ),
    flag("enable_custom_prng", False, "`random.PRNGKey` makes typed keys"),
    flag(
        "auto_pcast",
        True,
        "within `shard_map` operands that vary along fewer axes than others are cast; "
        "False: they are refused",
    ),
    flag(
        "remove_size_one_mesh_axis_from_type",
        False,
        "types do not name explicit mesh axes of size 1, which split nothing",
    ),
    flag(
        "threefry_partitionable",
        True,
        "the random bits of an element depend only on its key and place; False: on how "
        "many there are, too, as in JAX before 0.5",
    ),
    Option(
        "legacy_prng_key",
        str,
        "allow",
        "what to do where a random function gets a raw key, uint32[2]",
        ("allow", "warn", "error"),
    ),
    Option("random_seed_offset", int, 0, "is added to the seeds of all new keys"),
    # Where programs run, and how they are compiled.
    Option(
        "default_device",
        Device,
        None,
        "where arrays go that have no other place",
        optional=True,
    ),
    Option(
        "num_cpu_devices",
        int,
        -1,
        "how many CPU devices there are; before the client starts",
        client="device_count",
    ),
    Option(
        "platforms",
        str,
        None,
        "the platform of the client; before it starts",
        optional=True,
        client="platform",
    ),
    Option(
        "platform_name",
        str,
        "",
        "another name of `platforms`",
        optional=True,
        client="platform",
    ),
    Option(
        "compile_effort",
        str,
        "auto",
        "how much XLA optimises programs for the CPU (only in verax)",
        EFFORTS,
    ),
    Option(
        "calls",
        str,
        "auto",
        "whether functions of a program that are called often stay functions for XLA "
        "(only in verax)",
        CALLS,
    ),
    Option(
        "cpu_lowerings",
        str,
        "auto",
        "whether functions of large arrays are written out for the CPU (auto), or left "
        "to XLA (only in verax)",
        CPU_LOWERINGS,
    ),
    Option(
        "optimization_level",
        CompilerEffortLevel,
        CompilerEffortLevel.UNKNOWN,
        "sets `compile_effort`: O0 fast, O1 light, O2 and O3 full, UNKNOWN auto",
        efforts=EFFORT_OF_LEVEL,
    ),
    Option(
        "disable_most_optimizations",
        bool,
        False,
        "sets `compile_effort` to fast if it is on, else to auto",
        efforts=MappingProxyType({True: "fast", False: "auto"}),
    ),
    flag(
        "keep_cpu_memory",
        True,
        "the memory of freed arrays stays with the process, for the next ones; before "
        "the client starts (only in verax)",
    ),
    flag("disable_jit", False, "jitted functions run as plain Python"),
    flag("no_tracing", False, "raise where a jitted function would be traced again"),
    flag("no_execution", False, "raise where a compiled program would run"),
    flag("enable_compilation_cache", True, "compiled programs are kept on disk"),
    Option(
        "compilation_cache_dir",
        str,
        "auto",
        "the folder of compiled programs; auto for the user's cache, None for none",
        optional=True,
    ),
    Option(
        "compilation_cache_key",
        str,
        None,
        "is a part of all keys of the disk cache (only in verax)",
        optional=True,
    ),
    Option(
        "compilation_cache_max_size",
        int,
        1 << 30,
        "the size in bytes of the disk cache; -1 for no limit, 0 for no cache",
    ),
    Option(
        "persistent_cache_min_compile_time_secs",
        float,
        0.05,
        "programs that compile faster are not stored",
    ),
    Option(
        "persistent_cache_min_entry_size_bytes",
        int,
        0,
        "smaller programs are not stored",
    ),
    # What is checked and told.
    flag("debug_nans", False, "raise where a NaN appears"),
    flag("debug_infs", False, "raise where an infinity appears"),
    flag("check_tracer_leaks", False, "raise where a trace leaves a tracer behind"),
    flag("debug_key_reuse", False, "raise where a random key is used twice"),
    flag(
        "experimental_unsafe_xla_runtime_errors",
        False,
        "`checkify.check` raises from compiled programs, too",
    ),
    flag("enable_checks", False, "check the types of each traced program"),
    flag("explain_cache_misses", False, "log why a call of a jitted function misses"),
    flag(
        "compare_programs",
        False,
        "processes compare what they compile together, and raise where it differs",
    ),
    flag("log_compiles", False, "log each trace and each compilation"),
    flag(
        "compile_progress",
        False,
        "show on standard error what is traced or compiled for more than a second",
    ),
    Option(
        "logging_level",
        str,
        "NOTSET",
        "the level of the logger `verax`",
        ("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
        optional=True,
    ),
    Option(
        "captured_constants_warn_bytes",
        int,
        64_000_000,
        "warn where a program has more bytes of constants; -1 for never",
    ),
    Option(
        "programs_warn_count",
        int,
        10,
        "warn once where more programs are compiled of one function; -1 for never",
    ),
    Option(
        "traceback_filtering",
        str,
        "auto",
        "what tracebacks do with frames of verax: show them, mark them as hidden, "
        "leave them out with the whole traceback as the cause or with a note, or auto: "
        "tracebackhide in IPython, else quiet_remove_frames",
        ("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto"),
    ),
    Option(
        "docs_url",
        str,
        None,
        "where the documentation is: errors end with the address of their page",
        optional=True,
    ),
    Option(
        "transfer_guard",
        str,
        None,
        "what to do about transfers: it sets the three options below",
        GUARDS,
        optional=True,
        covers=(
            "transfer_guard_host_to_device",
            "transfer_guard_device_to_device",
            "transfer_guard_device_to_host",
        ),
    ),
    guard("host_to_device", "from NumPy and Python to devices"),
    guard("device_to_device", "between devices"),
    guard("device_to_host", "from devices other than CPUs to NumPy"),
    # What makes no difference here.
    idle("softmax_custom_jvp", False, "the derivative of softmax is always stable"),
    idle("remat3", False, "`checkpoint` has one implementation, for all options"),
    idle("pprint_use_color", True, "jaxprs are printed without colour"),
    idle("tracer_error_num_traceback_frames", 5, "errors name one line"),
    idle("traceback_in_locations_limit", 100, "programs hold no lines"),
    idle("include_full_tracebacks_in_locations", True, "programs hold no lines"),
    idle("cpu_enable_async_dispatch", True, "the CPU client decides"),
    idle("use_simplified_jaxpr_constants", False, "constants are values of jaxprs"),
    idle("embedded_constants_max_bytes", 32, "large constants are arguments of XLA's"),
    idle("custom_jvp3", False, "`custom_jvp` has one implementation"),
    idle("custom_vjp3", False, "`custom_vjp` has one implementation"),
    idle("scan3", False, "`scan` has one implementation"),
    idle("use_rgv3", True, "programs are partitioned by Shardy"),
    idle("use_magma", "auto", "LAPACK of a GPU is the one of its vendor"),
    idle("threefry_gpu_kernel_lowering", False, "threefry is written out everywhere"),
    idle("remat_barrier_no_cotangents", False, "barriers stand where they are needed"),
    idle("disable_vmap_shmap_error", False, "`vmap` of `shard_map` is not an error"),
    idle("disable_bwd_checks", False, "types of cotangents are always checked"),
    idle("export_calling_convention_version", 10, "verax has a convention of its own"),
    idle("export_ignore_forward_compatibility", False, "see verax.export"),
    idle("pgle_profiling_runs", 3, "programs are not profiled to be compiled again"),
    # What is always so here.
    always("use_shardy_partitioner", True, "Shardy partitions all programs"),
    always("use_direct_linearize", True, "linearize has one implementation"),
    always("allow_f16_reductions", True, "sums over narrow floats accumulate wider"),
    always("high_dynamic_range_gumbel", False, "`gumbel` has a mode argument"),
    always("debug_log_modules", "", "there is one logger, `verax`: see logging_level"),
    always("array_garbage_collection_guard", None, "arrays are freed by references"),
    always("thread_guard", False, "arrays may be used by all threads"),
    always("mutable_array_checks", True, "arrays are immutable"),
    always("jax2tf_associative_scan_reductions", False, "there is no jax2tf"),
    always("raise_persistent_cache_errors", False, "faults of the disk cache warn"),
    always("compilation_cache_include_metadata_in_key", False, "keys hold no lines"),
    always(
        "persistent_cache_enable_xla_caches",
        "",
        "XLA's own caches are not kept on disk",
    ),
    always("dump_ir_to", "", "`jit(f).lower(...).as_text()` is the program"),
    always(
        "dump_ir_modes", "stablehlo", "`jit(f).lower(...).as_text()` is the program"
    ),
    always("memory_fitting_level", CompilerEffortLevel.O2, "XLA's default"),
    always("mock_gpu_topology", "", "there is no GPU that is not there"),
    always("enable_pgle", False, "programs are not profiled to be compiled again"),
    always("cpu_collectives_implementation", "gloo", "the only one of jaxlib's"),
    always("error_checking_behavior_nan", "ignore", "see debug_nans"),
    always("error_checking_behavior_divide", "ignore", "see debug_infs"),
    always("error_checking_behavior_oob", "ignore", "indices follow `mode=`"),
    always("eager_constant_folding", False, "tracing computes nothing"),
    always("bcoo_cusparse_lowering", False, "there are no sparse arrays"),
    always("hlo_source_file_canonicalization_regex", None, "programs hold no lines"),
    always("compiler_enable_remat_pass", True, "XLA's default"),
    always("distributed_debug", False, "there is nothing to log"),
)
"""All options, by what they are about."""
OPTIONS: Final[Mapping[str, Option]] = MappingProxyType({row.name: row for row in ROWS})
EAGER: Final = frozenset(
    [
        "default_device",
        "debug_nans",
        "debug_infs",
        "debug_key_reuse",
        "no_execution",
        "transfer_guard_host_to_device",
        "transfer_guard_device_to_device",
    ]
)
"""Options that choose the eager interpreter."""


def jax_name(name: str) -> str:
    """The name of an option with JAX's prefix."""
    return name if name.startswith("jax") else f"jax_{name}"


def option(name: str) -> Option:
    """The option of a name, with or without JAX's prefix.

    Raises:
        AttributeError: there is no such option.
    """
    for prefix in PREFIXES:
        name = name.removeprefix(prefix)
    entry = OPTIONS.get(name)
    if entry is None:
        from difflib import get_close_matches

        close = get_close_matches(name, OPTIONS, 4)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        raise AttributeError(
            f"there is no option {name!r}; {hint}dir(verax.config) lists all of them"
        )
    return entry


def flags_of(arguments: Iterable[str]) -> Iterator[tuple[Option, object]]:
    """The options that arguments of a program set, as in `--jax_enable_x64=true`.

    Raises:
        AttributeError: there is no such option.
        ValueError: an option does not take its value, or lacks one.
    """
    for argument in takewhile(lambda text: text != "--", arguments):
        flag, given, text = argument.partition("=")
        if flag.startswith("--nojax_") and not given:
            yield option(flag.removeprefix("--no")), False
        elif flag.startswith("--jax_"):
            row = option(flag.removeprefix("--"))
            if not given and row.kind is not bool:
                raise ValueError(f"{flag} needs a value: write {flag}=value")
            yield row, row.parse(flag, text if given else "true")
