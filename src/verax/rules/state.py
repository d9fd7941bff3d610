"""Floor 1: the state of a thread: its current interpreter and its configuration.

One idea: a class attribute of a `threading.local` is the default of every thread and
an instance attribute is this thread's own, so a global update and a context manager
are one mechanism::

    STATE.interpreter.bind(sin_p, NO_PARAMS, (x,))
"""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, ClassVar, Final, Protocol

from attrs import frozen

from verax.ir.dtypes import DType, canonical
from verax.ir.jaxpr import Params, Primitive
from verax.ir.records import Shown
from verax.rules.array import Array

type Staging = tuple[object, ...]


class Interpreter(Protocol):
    """What gives an operation its meaning: compute it now, or write it down.

    `immediate` says which: only what computes can use programs made earlier.
    """

    immediate: ClassVar[bool]

    def bind(
        self, primitive: Primitive, params: Params, args: Sequence[object]
    ) -> tuple[Array, ...]:
        """The results of `primitive` on `args`: arrays, scalars or tracers."""
        ...


class NoInterpreter:
    """The interpreter of a process that imported floors without the roof."""

    immediate: ClassVar[bool] = False

    def bind(
        self, primitive: Primitive, params: Params, args: Sequence[object]
    ) -> tuple[Array, ...]:
        raise RuntimeError(
            f"{primitive.name}: no eager interpreter is installed; import verax"
        )


@frozen(eq=False, repr=False)
class Mode(Shown):
    """What decides about a call besides its arguments; one object for equal ones."""

    interpreter: Interpreter
    enable_x64: bool
    staging: Staging


UNKEPT: Final = "a trace"
"""What stands for a mode during traces, whose calls are never kept."""


class State(threading.local):
    """One thread's interpreter and configuration; see `verax.config` for the names.

    `default_device` is where arrays go that nobody placed, None for the first device;
    `meshes` are those of the `with` blocks around, `axes` the named axes of the
    transformations around, with their sizes; `forked` says that the devices belong to
    the process from which this one was forked. `staging` repeats the options
    besides `enable_x64` that calls of jit depend on; `refresh_staging` keeps it up to
    date.

    Calls that are counted in microseconds are looked up by one object in place of all
    that: `current_mode()`, or its first line, since what belongs to a thread takes 0.2
    us to read. `shared` is the mode of every thread that has nothing of its own,
    `owners` are the numbers of the threads that have, and `own` is what this one has.
    """

    interpreter: Interpreter = NoInterpreter()
    eager: Interpreter = NoInterpreter()
    enable_x64: bool = False
    disable_jit: bool = False
    numpy_dtype_promotion: str = "standard"
    default_matmul_precision: str | None = None
    default_prng_impl: str | None = "threefry2x32"
    threefry_partitionable: bool = True
    enable_compilation_cache: bool = True
    compilation_cache_dir: str | None = None
    compilation_cache_key: str | None = None
    compilation_cache_max_size: int = -1
    persistent_cache_min_compile_time_secs: float = 1.0
    persistent_cache_min_entry_size_bytes: int = 0
    default_device: Any = None
    debug_nans: bool = False
    debug_infs: bool = False
    explain_cache_misses: bool = False
    check_tracer_leaks: bool = False
    compile_effort: str = "auto"
    meshes: tuple[Any, ...] = ()
    axes: tuple[tuple[str, int], ...] = ()
    forked: bool = False
    staging: Staging = (
        "standard",
        None,
        False,
        "threefry2x32",
        None,
        False,
        False,
        False,
        (),
        (),
        False,
        "auto",
    )
    own: object = None
    shared: ClassVar[Mode] = Mode(interpreter, enable_x64, staging)
    owners: ClassVar[set[int]] = set()


STATE = State()


# What messages call `enable_x64` and the entries of `staging_of`, in order.
STAGED: Final = (
    "config.enable_x64",
    "config.numpy_dtype_promotion",
    "config.default_matmul_precision",
    "config.disable_jit",
    "config.default_prng_impl",
    "config.default_device",
    "config.debug_nans",
    "config.debug_infs",
    "config.check_tracer_leaks",
    "the mesh of the block around",
    "the named axes around",
    "the process was forked",
    "config.compile_effort",
)


def staging_of(state: Any) -> Staging:
    """What besides `enable_x64` decides which trace, or none, a call leads to."""
    return (
        state.numpy_dtype_promotion,
        state.default_matmul_precision,
        state.disable_jit,
        state.default_prng_impl,
        state.default_device,
        state.debug_nans,
        state.debug_infs,
        state.check_tracer_leaks,
        state.meshes[-1:],
        state.axes,
        state.forked,
        state.compile_effort,
    )


class Fresh(str):
    """A configuration word that equals no other: caches of traces miss."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


def is_fresh(staging: Staging) -> bool:
    """Whether what is traced now is traced anew on purpose, and never found again."""
    return isinstance(staging[0], Fresh)


def refresh_staging() -> None:
    """Bring the summary in `State.staging` up to date, globally and in this thread."""
    State.staging = staging_of(State)
    vars(STATE).pop("staging", None)
    own = staging_of(STATE)
    if own != State.staging:
        STATE.staging = own
    State.shared = mode_of(State)
    refresh_own()


@lru_cache(maxsize=1 << 10)
def mode(interpreter: Interpreter, enable_x64: bool, staging: Staging) -> Mode:
    """The one mode of these fields."""
    return Mode(interpreter, enable_x64, staging)


def mode_of(state: Any) -> Mode:
    """The mode that a state asks for."""
    return mode(state.interpreter, state.enable_x64, state.staging)


def refresh_own() -> None:
    """Bring `STATE.own` up to date with what this thread has of its own."""
    own = vars(STATE)
    if "interpreter" in own or "enable_x64" in own or "staging" in own:
        own["own"] = mode_of(STATE) if STATE.interpreter.immediate else UNKEPT
        State.owners.add(threading.get_ident())
    else:
        own.pop("own", None)
        State.owners.discard(threading.get_ident())


def current_mode() -> object:
    """What decides in this thread what a call does, besides its arguments."""
    shared = State.shared
    if not State.owners or (own := STATE.own) is None:
        return shared
    # Another thread may change for all what this one has not set.
    return own, shared


class Interpreting:
    """What `interpreting` gives; a class, since a generator takes twice the time."""

    __slots__ = ("interpreter", "outer")

    def __init__(self, interpreter: Interpreter) -> None:
        self.interpreter = interpreter

    def __enter__(self) -> None:
        self.outer = STATE.interpreter
        vars(STATE)["interpreter"] = self.interpreter
        refresh_own()

    def __exit__(self, *error: object) -> None:
        own = vars(STATE)
        if self.outer is State.interpreter:
            # What is true everywhere is not repeated, so that it can still change.
            own.pop("interpreter", None)
        else:
            own["interpreter"] = self.outer
        refresh_own()


def interpreting(interpreter: Interpreter) -> Interpreting:
    """Make `interpreter` the current one of this thread within the block."""
    return Interpreting(interpreter)


@contextmanager
def staged(staging: Staging) -> Iterator[None]:
    """Have `staging` in this thread within the block."""
    own = vars(STATE)
    outer = own.get("staging")
    own["staging"] = staging
    refresh_own()
    try:
        yield
    finally:
        if outer is None:
            own.pop("staging", None)
        else:
            own["staging"] = outer
        refresh_own()


@contextmanager
def widths_of(dtypes: Iterable[DType], x64: bool = False) -> Iterator[None]:
    """Have x64 on within the block where one of `dtypes` has 64 bits, or `x64` says so.

    Functions that are traced later than the program in which their operands were made
    mean what they would have meant there, whatever this thread has chosen since.
    """
    own = vars(STATE)
    outer = own.get("enable_x64")
    own["enable_x64"] = x64 or any([canonical(d, False) != d for d in dtypes])
    refresh_own()
    try:
        yield
    finally:
        if outer is None:
            own.pop("enable_x64", None)
        else:
            own["enable_x64"] = outer
        refresh_own()
