"""Floor 1: the state of a thread: its current interpreter and its configuration.

One idea: a class attribute of a `threading.local` is the default of every thread and
an instance attribute is this thread's own, so a global update and a context manager
are one mechanism::

    STATE.interpreter.bind(sin_p, NO_PARAMS, (x,))
"""

import os
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, lru_cache
from itertools import repeat
from operator import attrgetter
from typing import Any, ClassVar, Final, Protocol

from attrs import frozen

from verax.ir.dtypes import DType, DTypeLike, canonical
from verax.ir.jaxpr import UNKNOWN_SOURCE, Eqn, Jaxpr, Params, Primitive, Source
from verax.ir.records import ReprMixin
from verax.rules.guards import block
from verax.rules.values.array import Array


class Interpreter(Protocol):
    """Gives an operation its meaning: computes it now, or writes it down.

    `immediate` says which: only what computes can use programs made earlier.
    """

    immediate: ClassVar[bool]

    def bind(
        self, primitive: Primitive, params: Params, args: Sequence[object]
    ) -> tuple[Array, ...]:
        """The results of `primitive` on `args`: arrays, scalars or tracers."""
        ...


class NoInterpreter:
    """The interpreter of a process that imported floors without `verax.wiring`."""

    immediate: ClassVar[bool] = False

    def bind(
        self, primitive: Primitive, params: Params, args: Sequence[object]
    ) -> tuple[Array, ...]:
        raise RuntimeError(
            f"{primitive.name}: no eager interpreter is installed; import verax"
        )


class Observer(Protocol):
    """An observer of what transformations of functions make of programs."""

    def traced(
        self,
        jaxpr: Jaxpr,
        function: str,
        seconds: float,
        scope: object,
        describe: Callable[[], Sequence[str]] | None,
        captured: Sequence[tuple[object, object]],
    ) -> None:
        """A function of this name was traced.

        `scope` stands for the trace, and `captured` are the atoms of other traces that
        the program takes first, each with its scope; `describe` names the rest.
        """
        ...

    def rewrite[E](
        self, name: str, jaxpr: Jaxpr, make: Callable[[Jaxpr], tuple[Jaxpr, E]]
    ) -> tuple[Jaxpr, E]:
        """Applies `make` to `jaxpr`; sources of both may differ, nothing else."""
        ...

    def part[E](
        self, name: str, jaxpr: Jaxpr, make: Callable[[Jaxpr], tuple[Jaxpr, Jaxpr, E]]
    ) -> tuple[Jaxpr, Jaxpr, E]:
        """`rewrite` for what makes two programs of one."""
        ...


@frozen(eq=False, repr=False)
class Context(ReprMixin):
    """All that a trace, a rule or a template may read besides its arguments.

    There is one object for equal values (`context_of`), so a memo compares contexts by
    identity. `values` are those of the attributes in `TRACED`, in order. A `fresh`
    context equals no other: what is traced under it is never found again. So it may
    have an `observer`, whom no other trace sees.
    """

    transient: ClassVar[bool] = False

    values: tuple[object, ...]
    fresh: bool = False
    observer: Observer | None = None

    @property
    def enable_x64(self) -> bool:
        """Whether dtypes may have 64 bits."""
        return bool(self.values[0])

    @cached_property
    def axis_names(self) -> frozenset[str]:
        """The names of the axes of enclosing transformations."""
        axes: Any = self.values[NAMES.index("axes")]
        return frozenset([name for name, _ in axes])


TRACED: Final = (
    ("enable_x64", "config.enable_x64"),
    ("numpy_dtype_promotion", "config.numpy_dtype_promotion"),
    ("default_matmul_precision", "config.default_matmul_precision"),
    ("disable_jit", "config.disable_jit"),
    ("default_prng_impl", "config.default_prng_impl"),
    ("default_device", "config.default_device"),
    ("debug_nans", "config.debug_nans"),
    ("debug_infs", "config.debug_infs"),
    ("check_tracer_leaks", "config.check_tracer_leaks"),
    ("mesh", "the mesh of the enclosing block"),
    ("axes", "the enclosing named axes"),
    ("tracked", "the axes along which types say that values vary"),
    ("forked", "whether the process was forked"),
    ("compile_effort", "config.compile_effort"),
    ("calls", "config.calls"),
    ("cpu_lowerings", "config.cpu_lowerings"),
    ("numpy_rank_promotion", "config.numpy_rank_promotion"),
    ("check_static_indices", "config.check_static_indices"),
    ("explicit_x64_dtypes", "config.explicit_x64_dtypes"),
    ("legacy_prng_key", "config.legacy_prng_key"),
    ("threefry_partitionable", "config.threefry_partitionable"),
    ("enable_custom_prng", "config.enable_custom_prng"),
    ("auto_pcast", "config.auto_pcast"),
    (
        "remove_size_one_mesh_axis_from_type",
        "config.remove_size_one_mesh_axis_from_type",
    ),
    ("random_seed_offset", "config.random_seed_offset"),
    ("debug_key_reuse", "config.debug_key_reuse"),
    ("no_execution", "config.no_execution"),
    ("user_contexts", "the user contexts of the enclosing blocks"),
    ("xla_metadata", "the XLA metadata of the enclosing blocks"),
    (
        "experimental_unsafe_xla_runtime_errors",
        "config.experimental_unsafe_xla_runtime_errors",
    ),
    ("checking", "whether checkify, with automatic checks, traces the function"),
)
"""The attributes of the state that a context holds, and what messages call them.

The options of the disk cache change no program, so they are not here. `enable_x64`
comes first.
"""
NAMES: Final = tuple([name for name, _ in TRACED])
read_traced: Final = attrgetter(*NAMES)


@lru_cache(maxsize=1 << 10)
def context_of(values: tuple[object, ...]) -> Context:
    """The one context of these values."""
    return Context(values)


@frozen(eq=False, repr=False)
class Mode(ReprMixin):
    """All that decides about a call besides its arguments; one object if equal."""

    transient: ClassVar[bool] = False

    interpreter: Interpreter
    context: Context


UNKEPT: Final = "a trace"
"""The mode of calls during traces, which are never kept."""


class State(threading.local):
    """One thread's interpreter and configuration; see `verax.config` for the names.

    `default_device` is where arrays go without a requested placement, None for the
    first device; `meshes` are those of the enclosing `with` blocks, `mesh` holds the
    last; `axes` are the named axes of the enclosing transformations, with their sizes;
    `tracked` those of them, of `shard_map`, along which types say that values vary;
    `fetching` says that the user has asked for values on the host; `forked` says that
    the devices belong to the process from which this one was forked, `joined` that
    other processes run the same program, `accelerated` that the devices have memory of
    their own, of which `accelerate` tells this class once.
    `context` sums up those that traces may read; `refresh` keeps it up to date.

    Calls that are counted in microseconds are looked up by one object instead of all
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
    compilation_cache_dir: str | None = "auto"
    compilation_cache_key: str | None = None
    compilation_cache_max_size: int = 1 << 30
    persistent_cache_min_compile_time_secs: float = 0.05
    persistent_cache_min_entry_size_bytes: int = 0
    default_device: Any = None
    debug_nans: bool = False
    debug_infs: bool = False
    explain_cache_misses: bool = False
    check_tracer_leaks: bool = False
    compile_effort: str = "auto"
    calls: str = "auto"
    cpu_lowerings: str = "auto"
    keep_cpu_memory: bool = True
    numpy_rank_promotion: str = "allow"
    check_static_indices: bool = False
    explicit_x64_dtypes: str = "warn"
    legacy_prng_key: str = "allow"
    enable_custom_prng: bool = False
    auto_pcast: bool = True
    remove_size_one_mesh_axis_from_type: bool = False
    random_seed_offset: int = 0
    debug_key_reuse: bool = False
    experimental_unsafe_xla_runtime_errors: bool = False
    enable_checks: bool = False
    log_compiles: bool = False
    compare_programs: bool = False
    compile_progress: bool = False
    no_tracing: bool = False
    no_execution: bool = False
    captured_constants_warn_bytes: int = 64_000_000
    programs_warn_count: int = 10
    traceback_filtering: str = "auto"
    docs_url: str | None = None
    transfer_guard_host_to_device: str | None = None
    transfer_guard_device_to_device: str | None = None
    transfer_guard_device_to_host: str | None = None
    fetching: bool = False
    user_contexts: tuple[tuple[object, object], ...] = ()
    xla_metadata: tuple[tuple[str, str], ...] = ()
    checking: bool = False
    meshes: tuple[Any, ...] = ()
    mesh: tuple[Any, ...] = ()
    axes: tuple[tuple[str, int], ...] = ()
    tracked: tuple[str, ...] = ()
    forked: bool = False
    joined: bool = False
    accelerated: bool = False
    accelerate: ClassVar[Callable[[], None]]
    context: Context
    own: object = None
    base: object = None
    shared: ClassVar[Mode]
    owners: ClassVar[set[int]] = set()


STATE: Final = State()
NEUTRAL: Final = context_of(read_traced(State))
"""The context of a thread that has chosen nothing."""
State.context = NEUTRAL
State.shared = Mode(State.interpreter, NEUTRAL)


def refresh() -> None:
    """Bring `context` and `own` up to date, for all threads and for this one."""
    State.context = context_of(read_traced(State))
    State.shared = mode_of(State)
    refresh_own()


@lru_cache(maxsize=1 << 10)
def mode(interpreter: Interpreter, context: Context) -> Mode:
    """The one mode of these fields."""
    return Mode(interpreter, context)


def mode_of(state: Any) -> Mode:
    """The mode that a state asks for."""
    return mode(state.interpreter, state.context)


def refresh_own() -> None:
    """Bring what this thread has of its own up to date: its context and its mode."""
    own = vars(STATE)
    fresh = "context" in own and own["context"].fresh
    own["base"] = State.shared
    if not own.keys().isdisjoint(NAMES):
        values = read_traced(STATE)
        observer = own["context"].observer if fresh else None
        context = Context(values, True, observer) if fresh else context_of(values)
        own["context"] = context
    elif not fresh:
        own.pop("context", None)
    refresh_mode()


def refresh_mode() -> None:
    """Bring `STATE.own` up to date with the interpreter and the context."""
    own = vars(STATE)
    if "interpreter" in own or "context" in own:
        State.owners.add(threading.get_ident())  # first: `own` counts for owners only
        own["own"] = mode_of(STATE) if STATE.interpreter.immediate else UNKEPT
    else:
        own.pop("own", None)
        State.owners.discard(threading.get_ident())


def current_context() -> Context:
    """All that a trace in this thread may read besides its arguments."""
    context = STATE.context
    if context is State.context or STATE.base is State.shared:
        return context
    refresh_own()  # since then another thread has changed what this one has not set
    return STATE.context


def current_mode() -> object:
    """All that decides in this thread what a call does, besides its arguments."""
    shared = State.shared
    if not State.owners or (own := STATE.own) is None:
        return shared
    # Another thread may change for all what this one has not set.
    return own, shared


@block
def interpreting(interpreter: Interpreter) -> Generator[None]:
    """Make `interpreter` the current one of this thread within the block."""
    own, owners = STATE.__dict__, State.owners
    outer, mode = own.get("interpreter"), own.get("own")
    ident = threading.get_ident()
    added = () if ident in owners else (ident,)
    try:
        own["interpreter"] = interpreter
        owners.update(added)
        if interpreter.immediate:
            refresh_mode()
        else:
            own["own"] = UNKEPT
        yield
    finally:
        if outer is None:
            # What is true everywhere is not repeated, so that it can still change.
            del own["interpreter"]
        else:
            own["interpreter"] = outer
        own["own"] = mode
        if added:
            owners -= {ident}


def entered(context: Context) -> AbstractContextManager[None]:
    """Have the values of `context` in this thread within the block."""
    if current_context() is context:
        return UNCHANGED
    changed = {
        name: value
        for name, value in zip(NAMES, context.values, strict=True)
        if getattr(STATE, name) is not value
    }
    return changing(changed, context if context.fresh else None)


def own_options() -> dict[str, object]:
    """The options of this thread's own, for a thread that goes on with its work.

    That thread enters them with `changing`; it computes eagerly as this one does, also
    if this one is tracing.
    """
    derived = ("interpreter", "context", "base", "own")
    out = {name: x for name, x in vars(STATE).items() if name not in derived}
    return out | ({"interpreter": out["eager"]} if "eager" in out else {})


def fresh_context(
    observer: Observer | None = None,
) -> AbstractContextManager[None]:
    """Have what is configured in a context that no memo has seen."""
    return changing({}, Context(current_context().values, True, observer))


def widths_of(
    dtypes: Iterable[DType], x64: bool = False
) -> AbstractContextManager[None]:
    """Have x64 on within the block where one of `dtypes` has 64 bits, or `x64` says so.

    Functions that are traced later than the program in which their operands were made
    mean what they would have meant there, whatever this thread has chosen since.
    """
    wide = x64 or any([canonical(d, False) != d for d in dtypes])
    return UNCHANGED if STATE.enable_x64 == wide else changing({"enable_x64": wide})


UNCHANGED: Final = nullcontext()


def asked_dtype(dtype: DTypeLike) -> DType:
    """The dtype that a caller asks for by name: in 32 bits while x64 is off.

    Where `explicit_x64_dtypes` is "allow" it keeps its 64 bits, but the classes `int`,
    `float` and `complex` mean the default width all the same.

    Raises:
        TypeError: there is no such dtype.

    >>> print(asked_dtype("float64"), asked_dtype(int))
    float32 int32
    """
    x64 = STATE.enable_x64
    if not x64 and STATE.explicit_x64_dtypes == "allow" and not is_python(dtype):
        return canonical(dtype, True)
    return canonical(dtype, x64)


def is_python(dtype: object) -> bool:
    """Whether this is one of Python's classes, to which dtypes of NumPy are equal."""
    return isinstance(dtype, type) and dtype in (bool, int, float, complex)


@block
def changing(
    options: Mapping[str, object], context: Context | None = None
) -> Generator[None]:
    """Have options of this thread's own within the block; `context` if it is fresh.

    What changed for all threads meanwhile is seen by `current_context`.
    """
    own, owners = vars(STATE), State.owners
    names = (*options, "context", "base", "own")
    outer = {name: own[name] for name in names if name in own}
    new = map(own.pop, [name for name in names if name not in own], repeat(None))
    added = frozenset((threading.get_ident(),)) - owners
    try:
        own.update(options)
        if context is not None:
            own["context"] = context
        refresh_own()
        yield
    finally:
        [*new]  # noqa: B018  # calls it in one step
        own |= outer
        owners -= added


# -----------------------------------------------------------------------------
# Which line of the user's an operation comes from.
#
# Walk up the frames until one is outside the library, keep its code object
# and instruction, and work out the line only when it is needed::
#
#     source = user_source()
#     print(source.file, source.line)


LIBRARY = (
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    + os.sep
)
SKIPPED = (LIBRARY, "<attrs ", "<string>")
CACHE_SIZE = 1 << 16


class ElementError(FloatingPointError):
    """An error about the elements that one operation computed."""

    def at(self, eqn: Eqn) -> "ElementError":  # for those who need it
        """The error, where the operation that was run is `eqn` of a program."""
        return self


class SourceCache:
    """One `Source` per place, and which files belong to the library.

    The key of a place is the identity of its code object, which the source keeps alive.
    """

    def __init__(self) -> None:
        self.places: dict[tuple[int, int], Source] = {}
        self.skipped: dict[str, bool] = {}

    def add(self, source: Source) -> Source:
        """Keep a source; all are forgotten when there are too many."""
        if len(self.places) >= CACHE_SIZE:
            self.places.clear()
        self.places[id(source.code), source.instruction] = source
        return source

    def is_library(self, file: str) -> bool:
        """Whether frames of `file` are passed over."""
        out = self.skipped[file] = file.startswith(SKIPPED)
        return out


SOURCES = SourceCache()


def user_source(depth: int = 2) -> Source:
    """The innermost place outside verax, at least `depth` frames up."""
    frame = sys._getframe(depth)
    skipped = SOURCES.skipped
    while True:
        code = frame.f_code
        file = code.co_filename
        library = skipped.get(file)
        if library is None:
            library = SOURCES.is_library(file)
        if not library:
            break
        outer = frame.f_back
        if outer is None:
            return UNKNOWN_SOURCE
        frame = outer
    entry = SOURCES.places.get((id(code), frame.f_lasti))
    return SOURCES.add(Source(code, frame.f_lasti)) if entry is None else entry
