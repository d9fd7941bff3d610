"""Options for XLA's compilation, and its errors about them (floor 4).

One idea: options are a value that keys can hold, and become jaxlib's own object only
where something is compiled or loaded::

    CompileOptions(overrides={"xla_cpu_enable_fast_math": True}.items())
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from math import prod
from types import MappingProxyType
from typing import ClassVar, Final

import jaxlib.version
import numpy as np
from attrs import evolve, field, frozen
from jaxlib import _jax

from verax.backend.runtime.errors import CompileError, trimmed
from verax.backend.xla.machine import compiler_flags, has_wide_vectors
from verax.ir.records import ReprMixin
from verax.rules.values.state import STATE

type OptionValue = str | bool | int | float
type Overrides = tuple[tuple[str, OptionValue], ...]

JAXLIB: Final[tuple[int, ...]] = jaxlib.version.__version_info__
"""The version of jaxlib."""

# What XLA says of options, and what users are told.
OPTION_FAULTS: Final = (
    (
        re.compile(r"No such compile option: '(.*)'"),
        "No such compile option: {0!r}. The XLA of jaxlib {version} has no option of "
        "that name: check it in compiler_options.",
    ),
    (
        re.compile(r"While setting option (\S+), '(.*)' is not a valid (\w+) value"),
        "While setting option {0} in compiler_options, {1!r} is not a valid {2} value.",
    ),
)

# How much XLA shall do about the machine code of a program for the CPU: the option
# `compile_effort`, and XLA's optimisation level; "auto" is one of the others.
EFFORTS: Final = ("auto", "full", "light", "fast")
# Which calls of a program XLA keeps: the option `calls`.
CALLS: Final = ("auto", "inline", "keep")
# Who writes functions of large arrays out for the CPU: the option `cpu_lowerings`.
CPU_LOWERINGS: Final = ("auto", "xla")
LEVELS: Final[Mapping[str, int]] = MappingProxyType({"light": 1, "fast": 0})


class CompilerEffortLevel(Enum):
    """Levels of a compiler's effort, as the option `optimization_level` says it.

    A level is found by its name, too.

    >>> CompilerEffortLevel("O1")
    <CompilerEffortLevel.O1: 19>
    """

    __module__ = "verax"

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39

    @classmethod
    def _missing_(cls, value: object) -> "CompilerEffortLevel | None":
        return next((level for level in cls if level.name == value), None)


EFFORT_OF_LEVEL: Final[Mapping[CompilerEffortLevel, str]] = MappingProxyType(
    dict(
        zip(CompilerEffortLevel, ("auto", "fast", "light", "full", "full"), strict=True)
    )
)

# XLA's library for sums on a CPU takes numbers as whole arrays, which are stored for as
# long as the program runs; without it, sums that are not products are slower.
LEAN: Final[tuple[str, str]] = (
    "xla_cpu_experimental_ynn_fusion_type",
    "LIBRARY_FUSION_TYPE_DOT,LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT",
)

# XLA's own choice is 256 bits, with which what computes takes up to a third longer.
WIDE: Final[tuple[str, int]] = ("xla_cpu_prefer_vector_width", 512)
# But a transpose of many elements ends each row with a loop over what is left of it.
LANES: Final = 16
TRANSPOSED: Final = 1 << 16
TRANSPOSE: Final = re.compile(r"stablehlo\.transpose\b[^\n]*-> tensor<([\dx]+)x")

# One object, so that the most frequent call passes it without building anything.
NO_OVERRIDES: Final[Overrides] = ()


def as_overrides(pairs: Iterable[tuple[str, OptionValue]]) -> Overrides:
    """The pairs as a tuple, so that options are hashable."""
    return tuple(pairs)


def typed_overrides(overrides: Overrides) -> object:
    """The options as they are compared: XLA tells True and 1 apart."""
    return overrides and tuple(
        [(type(value), name, value) for name, value in overrides]
    )


@frozen(repr=False)
class CompileOptions(ReprMixin):
    """Options for XLA's compilation.

    Attributes:
        num_partitions: over how many devices one program is partitioned.
        effort: what to do about the machine code of a program for the CPU: "full"
            is XLA's default, "light" neither unrolls loops nor packs scalars, "fast"
            hardly optimises, "auto" is "light" for programs that are `small`; None is
            what the option `compile_effort` of the configuration says.
        overrides: further XLA options, by name, each with a value of its type.
        free_outputs: for each output of a partitioned program, whether the compiler
            chooses how it is spread.
        calls: which functions of the program stay functions for XLA, after equations
            that occur again have become functions: "auto" is those through which a
            value streams, such as the blocks of a residual network; "keep" is all that
            are large and called several times, "inline" none; None is what the option
            `calls` of the configuration says.
        cpu_lowerings: "auto" writes functions of large arrays, such as sines, out in
            operations that a CPU has; "xla" leaves all to the compiler; None is what
            the option `cpu_lowerings` of the configuration says.

    >>> CompileOptions(effort="fast")
    CompileOptions(num_partitions=1, effort='fast', overrides=(), free_outputs=(), \
calls=None, cpu_lowerings=None)
    """

    transient: ClassVar[bool] = False

    num_partitions: int = 1
    effort: str | None = None
    overrides: Overrides = field(
        default=NO_OVERRIDES, converter=as_overrides, eq=typed_overrides
    )
    free_outputs: tuple[bool, ...] = ()
    calls: str | None = None
    cpu_lowerings: str | None = None

    def configured(self) -> "CompileOptions":
        """The same with what the configuration says where it says nothing itself."""
        if self.effort and self.calls and self.cpu_lowerings:
            return self
        effort, calls = self.effort, self.calls
        return evolve(
            self,
            effort=effort or STATE.compile_effort,
            calls=calls or STATE.calls,
            cpu_lowerings=self.cpu_lowerings or STATE.cpu_lowerings,
        )

    @property
    def kernels(self) -> bool:
        """Whether functions are written out for a CPU."""
        return self.cpu_lowerings != "xla"

    def lean(self, platform: str) -> "CompileOptions":
        """The same, for programs whose memory counts more than the time of sums.

        >>> options = CompileOptions()
        >>> len(options.lean("cpu").overrides), options.lean("cuda") is options
        (1, True)
        """
        name, _ = LEAN
        if platform != "cpu" or name in dict(self.overrides):
            return self
        return evolve(self, overrides=(*self.overrides, LEAN))

    def settled(self, small: bool = False) -> "CompileOptions":
        """The same with the effort that a program gets, which is `small` or not.

        >>> CompileOptions(effort="auto").settled(small=True).effort
        'light'
        """
        given = self.configured()
        if given.effort != "auto":
            return given
        return evolve(given, effort="light" if small else "full")

    def __attrs_post_init__(self) -> None:
        """Refuse what jaxlib would refuse later and less clearly."""
        if self.effort is not None and self.effort not in EFFORTS:
            raise ValueError(f"effort must be one of {EFFORTS}, not {self.effort!r}.")
        if self.calls is not None and self.calls not in CALLS:
            raise ValueError(f"calls must be one of {CALLS}, not {self.calls!r}.")
        chosen = self.cpu_lowerings
        if chosen is not None and chosen not in CPU_LOWERINGS:
            raise ValueError(
                f"cpu_lowerings must be one of {CPU_LOWERINGS}, not {chosen!r}."
            )
        if self.num_partitions < 1:
            raise ValueError(
                f"num_partitions must be at least 1, got {self.num_partitions}."
            )
        for name, value in self.overrides:
            if not isinstance(name, str) or not isinstance(value, str | int | float):
                raise TypeError(
                    f"The XLA option {name!r} must have a string as its name and a "
                    f"string, boolean or number as its value, got {value!r}."
                )


LEVELLED: Final = ("optimization_level", "memory_fitting_level")
"""Options that take a level of effort, by name or number, and are no flags of XLA."""


def vectors(options: CompileOptions, text: str) -> Overrides:
    """The width of vectors in a module for the CPU, if it is another than XLA's.

    >>> turned = "%1 = stablehlo.transpose %0, dims = [1, 0] : ..."
    >>> vectors(CompileOptions(), turned + " -> tensor<999x999xf32>")
    ()
    """
    name, _ = WIDE
    if not options.kernels or not has_wide_vectors():
        return NO_OVERRIDES
    if name in compiler_flags() or name in dict(options.overrides):
        return NO_OVERRIDES
    shapes = [[int(n) for n in shape.split("x")] for shape in TRANSPOSE.findall(text)]
    left = any([prod(shape) >= TRANSPOSED and shape[-1] % LANES for shape in shapes])
    return NO_OVERRIDES if left else (WIDE,)


def jaxlib_options(
    devices: Sequence[_jax.Device], options: CompileOptions, text: str
) -> _jax.CompileOptions:
    """The same options as jaxlib takes them, for a module; for code it is empty."""
    result = _jax.CompileOptions()
    build = result.executable_build_options
    result.num_replicas = build.num_replicas = 1
    result.num_partitions = build.num_partitions = options.num_partitions
    build.use_spmd_partitioning = options.num_partitions > 1
    build.use_shardy_partitioner = True
    ids = np.array([[device.id for device in devices]], np.int32)
    build.device_assignment = _jax.DeviceAssignment.create(ids)
    if options.num_partitions > 1 and any(options.free_outputs):
        build.allow_spmd_sharding_propagation_to_output = options.free_outputs
    given, on_cpu = options.settled(), devices[0].platform == "cpu"
    level = LEVELS.get(given.effort or "")
    if level is not None and on_cpu:
        build.debug_options.xla_backend_optimization_level = level
    for name in LEVELLED:
        for value in [value for key, value in options.overrides if key == name]:
            setattr(build, name, CompilerEffortLevel(value).value)
    rest = [pair for pair in options.overrides if pair[0] not in LEVELLED]
    if on_cpu:
        rest += vectors(given, text)
    if rest:
        result.env_option_overrides = rest
    return result


def compile_error(error: Exception, options: CompileOptions) -> CompileError:
    """The same failure, with advice where an option is to blame."""
    message = trimmed(str(error).removeprefix("Bad StatusOr access: "))
    if "overflow in static extent" in message:
        message = f"An array is too large for any memory: {message}."
    for pattern, told in OPTION_FAULTS:
        if match := pattern.search(message):
            version = jaxlib.version.__version__
            return CompileError(told.format(*match.groups(), version=version))
    if options.overrides:
        names = ", ".join(name for name, _ in options.overrides)
        message += f" The compiler_options were: {names}."
    return CompileError(message)
