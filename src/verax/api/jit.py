"""Floor 5: `jit`: the decorator, the function that it makes, and its lock.

One idea: what such a function was made from is copied, its caches are not; one that a
module holds under its own name is pickled as that name, as Python's functions are::

    class PjitFunction(Copyable): ...
    copy.deepcopy(model)                  # whose method is behind jit
"""

import copy
import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from types import FrameType, MethodType
from typing import Any, Literal, Self, SupportsIndex, overload

from attrs import evolve, frozen

from verax.api.arguments.call_keys import (
    AvalsOf,
    Hashes,
    Key,
    Names,
    Numbers,
    Signature,
    Statics,
    leaf_kinds,
    resolve_statics,
    signature,
    warn_changed,
    watch,
)
from verax.api.arguments.direct_calls import (
    CACHE_SIZE,
    DirectCalls,
    Entry,
    Maker,
    Settings,
    TreeCalls,
    debugged,
    watching,
)
from verax.api.arguments.jit_options import (
    Inline,
    as_inline,
    check_flags,
    check_function,
    check_outermost,
    checked_options,
    usable,
    warn_unusable,
)
from verax.api.arguments.typed_leaves import traced_avals, without_types
from verax.api.explain.report import Explanation, Logged, log_failure, uses_of
from verax.api.memory.budgets import Budget, check_budget
from verax.api.sharding_args import Shardings, constrained, resolve_shardings
from verax.api.stages.compilation import Compilation, start_compiling
from verax.api.stages.interfaces import Interface
from verax.api.stages.stages import Lowered, Traced
from verax.api.tracing.apply import ENGINE, apply, is_tracing, trace_around
from verax.api.tracing.structs import (
    ShapeDtypeStruct,
    out_info,
    struct_avals,
    typed_arguments,
)
from verax.api.tracing.trace import (
    TRACES,
    leaf_avals,
    shared_trace,
    trace,
)
from verax.api.tracing.wrapping import (
    WrappedSignature,
    callee_of,
    function_name,
    look_like,
    name_and_line,
)
from verax.backend.calls import Call, caller
from verax.backend.placement.mesh import current_mesh
from verax.backend.programs.placement import Placement, placement_of
from verax.backend.programs.program import (
    Program,
    Recipe,
    compiled,
    made_of,
    platform_of,
    recipe_of,
)
from verax.backend.pytrees import result_tree
from verax.backend.runtime.client import Device, check_not_forked
from verax.backend.runtime.locks import TRACING, Locks
from verax.backend.runtime.log import log_stage
from verax.backend.runtime.metrics import RECORDER, stage
from verax.backend.xla.executable import CompileOptions
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin, hiding
from verax.ops.calls.call import call
from verax.rules.values.state import (
    LIBRARY,
    STATE,
    UNKEPT,
    current_context,
    interpreting,
)


class Copyable:
    """Base of such functions; `begin` makes what a new one starts with."""

    @abstractmethod
    def begin(self) -> None:
        """Set the attributes that are not copied to what a new one has."""

    def __getstate__(self) -> Mapping[str, object]:
        fresh = object.__new__(type(self))
        fresh.begin()
        return {name: x for name, x in vars(self).items() if name not in vars(fresh)}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        vars(self).update(state)
        self.begin()

    def __copy__(self) -> Self:
        made = object.__new__(type(self))
        made.__setstate__(self.__getstate__())
        return made

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        made = object.__new__(type(self))
        memo[id(self)] = made  # the function may be a method of what holds this
        made.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return made

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[object, ...]:
        if self.__module__ == "__main__" and by_value(sys._getframe(1)):
            return super().__reduce_ex__(protocol)
        return found_as(self) or super().__reduce_ex__(protocol)


def by_value(frame: FrameType) -> bool:
    """Whether what pickles takes functions of the main program by value.

    As joblib, dask and submitit do, since their processes run another main program.
    """
    name = str(frame.f_globals.get("__name__", ""))
    return "cloudpickle" in name or name.startswith("dill.")


def found_as(x: object) -> str | None:
    """The name under which the module of a function holds `x` itself, if it does."""
    module = sys.modules.get(getattr(x, "__module__", ""))
    name = getattr(x, "__qualname__", "")
    try:
        return name if attrgetter(name)(module) is x else None
    except AttributeError:
        return None


# -----------------------------------------------------------------------------
# Jitted functions: traced once per signature, compiled once per program.
#
# A call is a flatten, one dictionary lookup by the types of the leaves, and a
# run; everything else happens on a miss, and is a value that can be looked at::
#
#     f = jit(lambda x: x * 2)
#     f(1.0); f.lower(1.0).as_text()


class PjitFunction[**P, R](DirectCalls[P, R], Copyable):
    """A function behind jit; call it as the function itself.

    The name is that of JAX's class, by which libraries recognise such functions.
    """

    __dir__ = hiding(
        "begin counted direct fun hashes is_remembered locks miss placement planned "
        "program programs remember settings siblings slow_call statics "
        "trace_now trace_once trace_within traces warm warn_often"
    )

    __signature__ = WrappedSignature()

    def __init__(self, fun: Callable[P, R], settings: Settings) -> None:
        look_like(self, fun)
        self.fun = fun
        self.settings = settings
        self.statics = settings.statics if settings.statics.any else None
        self.begin()

    def begin(self) -> None:
        """Start without traces and programs; see `Copyable`."""
        self.locks = Locks(TRACING)
        self.traces: dict[Key, Entry] = {}
        self.programs: dict[Key, tuple[Program, Entry]] = {}
        self.direct: dict[object, Call | TreeCalls] = {}
        self.hashes = Hashes()
        self.counted = False

    def slow_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call, whatever the arguments and the interpreter are."""
        if STATE.disable_jit:
            return self.fun(*args, **kwargs)
        types = traced_avals if is_tracing() else leaf_avals
        sig = asked(self, args, kwargs, types)
        if not is_tracing():
            around = trace_around(
                sig.leaves, lambda: self.trace_within(sig).traced.captured
            )
            if around is not None:
                with interpreting(around):
                    return self.slow_call(args, kwargs)
            program, entry = self.program(sig)
            if program is None:
                return staged(entry, sig, self.settings)
            kinds = leaf_kinds(sig.leaves)
            made: Maker = partial(caller, program, entry.traced.out_tree, kinds)
            make = debugged(entry, sig.describe, made)
            if None not in kinds and STATE.own is not UNKEPT:
                self.remember(args, kwargs, lambda at: watching(entry, make(at)))
            try:
                return watching(entry, make())(sig.leaves)
            except OverflowError as error:
                raise sig.overflow(error) from None
        if overrides := self.settings.options.overrides:
            check_outermost(function_name(self.fun), overrides)
        known = self.traces.get(sig.key)
        if known is None:
            entry = self.trace_within(sig)
        else:
            entry = known
            RECORDER.record("trace_hits")
        warn_changed(entry.name, entry.watched)
        return staged(entry, sig, self.settings)

    def program(self, sig: Signature) -> tuple[Program | None, Entry]:
        """The compiled program for a signature, made on the first call.

        None for a function that takes references or closes over some.
        """
        key = sig.program_key
        out = self.programs.get(key)
        RECORDER.record("program_misses" if out is None else "program_hits")
        if out is not None:
            return out
        check_not_forked()
        with self.locks.turn(sig.key):
            miss = self.miss(sig, key)
            with log_failure(miss):
                entry = self.trace_once(sig)
        if entry.traced.refs:
            return None, entry
        with self.locks.turn(key), log_failure(miss):
            out = self.programs.get(key)
            if out is not None:  # made by another thread meanwhile
                return out
            warn_unusable(sig.call_args.donated(sig.tree), entry.donated, sig.avals)
            recipe = recipe_for(entry, self.settings, self.placement(entry, sig))
            made = made_of(recipe)
            RECORDER.record("executable_misses" if made is None else "executable_hits")
            program = compiled(
                ENGINE,
                entry.traced.jaxpr,
                entry.name,
                recipe.options,
                recipe.keep_unused,
                recipe.donated,
                recipe.placement,
            )
            out = (program, entry)
            if len(self.programs) >= CACHE_SIZE:
                self.programs.clear()
                self.direct.clear()
            self.programs[key] = out
            if miss is not None:
                miss.log(entry, made, program)
            if len(self.programs) + self.siblings == STATE.programs_warn_count + 1:
                self.warn_often(key)
        return out

    def placement(self, entry: Entry, sig: Signature) -> Placement | None:
        """The placement of the program; None if on the first device, as usual."""
        shardings, leaves = self.settings.shardings, sig.leaves
        if entry.traced.refs:
            from verax.api.tracing.reference_checks import held

            leaves = held(leaves)
        return placement_of(
            entry.traced.jaxpr,
            leaves,
            sig.describe,
            shardings.of_inputs(*sig.call_args.dynamic),
            shardings.of_outputs(entry.traced.out_tree),
            shardings.device,
            current_mesh(),
        )

    def trace_within(self, sig: Signature) -> Entry:
        """The trace for a call within another trace, which may be logged."""
        miss = self.miss(sig, sig.key)
        with log_failure(miss):
            entry = self.trace_once(sig)
        if miss is not None:
            miss.log(entry, None, None)
        return entry

    def trace_once(self, sig: Signature) -> Entry:
        """The trace for a signature; one that captures outer tracers is not kept."""
        out = self.traces.get(sig.key)
        RECORDER.record("trace_misses" if out is None else "trace_hits")
        if out is not None:
            return out
        if not self.counted:
            self.counted = True
            uses_of(self.fun).count += 1
        entry = self.trace_now(sig)
        self.hashes.check(entry.name, sig.call_args.labelled())
        if not entry.traced.captured:
            if len(self.traces) >= CACHE_SIZE:
                self.traces.clear()
            self.traces[sig.key] = entry
        return entry

    def trace_now(self, sig: Signature) -> Entry:
        """The function, traced now."""
        call_args = sig.call_args
        fun = call_args.with_statics(self.fun)
        take = shared_trace if fun is self.fun else trace
        if STATE.no_tracing:
            raise RuntimeError(
                f"re-tracing function {name_and_line(self.fun)} for `jit`, but "
                "'no_tracing' is set"
            )
        name = function_name(self.fun)
        avals = self.settings.shardings.typed(*call_args.dynamic, sig.avals)
        with stage(name, "trace"):
            traced = take(fun, sig.tree, avals, "jit", describe=sig.describe)
        log_stage("Finished tracing %s for jit in %.9f sec", name, traced.seconds)
        donated = call_args.donated(sig.tree)
        used = usable(donated, sig.avals, traced.jaxpr.out_avals)
        watched = watch(call_args.labelled())
        entry = Entry(traced, name, used, watched)
        return entry if self.settings.memory is None else self.planned(entry, sig)

    def planned(self, entry: Entry, sig: Signature) -> Entry:
        """The trace of a program within the budget of memory, on each device."""
        from verax.api.memory.search import Measured, host_of, placed, within

        budget = self.settings.memory
        if budget is None or entry.traced.refs:
            return entry

        place = None
        if not entry.traced.captured:
            place = placed(self.placement(entry, sig))

        def measure(jaxpr: Jaxpr, lean: bool) -> Measured:
            options = options_for(evolve(entry, lean=lean), self.settings, place)
            keep = self.settings.keep_unused
            with stage(entry.name, "plan"):
                program = compiled(
                    ENGINE, jaxpr, entry.name, options, keep, entry.donated, place
                )
            return Measured.of(program.executable.memory_analysis())

        # All memories of a CPU are one.
        host = None if platform_of(place) == "cpu" else host_of(budget)
        fit = within(entry.traced.jaxpr, budget, entry.name, measure, host)
        traced = evolve(entry.traced, jaxpr=fit.plan.jaxpr)
        return evolve(entry, traced=traced, lean=fit.lean)

    def miss(self, sig: Signature, key: Key) -> Logged | None:
        """The record of a call about to be traced; None unless that is logged."""
        if not STATE.explain_cache_misses or current_context().fresh:
            return None
        from verax.api.explain.build import seen_keys, start_miss

        seen = seen_keys([*self.programs], [*self.traces])
        traced = sig.key in self.traces
        return start_miss(self.fun, key, seen, traced, self.siblings)

    @property
    def siblings(self) -> int:
        """The number of other traced jitted objects of the same code."""
        return max(0, uses_of(self.fun).count - self.counted)

    def warn_often(self, key: Key) -> None:
        """Warn that one more program was compiled of a user's function, and why."""
        from verax.api.explain.build import often

        text = often(self.fun, key, [*self.programs], self.siblings)
        if text:
            warnings.warn(text, skip_file_prefixes=(LIBRARY,))

    def explain(self, *args: object, **kwargs: object) -> Explanation:
        """Whether a call with these arguments would find its program; if not, why.

        Arguments may be `ShapeDtypeStruct`s. Nothing is computed or compiled: what the
        function does not know yet is traced, which runs its Python code on tracers, and
        lowered, and all of that is thrown away, so that asking changes no answer. (What
        it calls behind `jit` keeps its traces.) The report says how long each stage
        takes, or took when the program was made, and what it needs.

        >>> import verax
        >>> double = verax.jit(lambda x: x * 2)
        >>> double(1.0), double.explain(1.0).hit, double.explain(1).hit
        (Array(2., dtype=float32, weak_type=True), True, False)
        >>> print(*double.explain(1).differences)
        x: dtype int32, previously float32
        """
        sig = asked(self, args, kwargs, struct_avals)
        full = sig.program_key
        from verax.api.explain.build import Asked, explained, seen_keys, unjitted

        if STATE.disable_jit:
            return unjitted(self.fun, full)
        known = self.traces.get(sig.key)
        entry = known or self.trace_now(sig)
        recipe = program = None
        if not is_tracing():
            recipe = recipe_for(entry, self.settings, self.placement(entry, sig))
            program, _ = self.programs.get(full, (None, None))
        given, named = typed_arguments(args, kwargs)
        return explained(
            Asked(
                self.fun,
                full,
                seen_keys([*self.programs], [*self.traces]),
                entry,
                known is not None,
                is_kept(self, args, kwargs, sig.leaves),
                program,
                recipe,
                self.siblings,
                partial(self.trace, *given, **named),
            )
        )

    def trace(self, *args: object, **kwargs: object) -> Traced:
        """The traced function, for arguments or for their `ShapeDtypeStruct`s."""
        sig = asked(self, args, kwargs, struct_avals)
        with self.locks.turn(sig.key):
            entry = self.trace_once(sig)
        traced, settings = entry.traced, self.settings
        placement = None
        if not traced.captured:
            placement = self.placement(entry, sig)
        interface = Interface(
            callee_of(self.fun, len(args), sig.call_args.positions),
            sig.tree,
            tuple(sig.avals),
            sig.call_args.donated(sig.tree) or (False,) * len(sig.avals),
            traced.out_tree,
            traced.jaxpr.out_avals,
        )
        stage = Traced
        if traced.refs:
            from verax.api.stages.on_references import TracedOnReferences as stage
        out: Traced = stage(
            interface,
            traced,
            options_for(entry, settings, placement),
            settings.keep_unused,
            entry.donated,
            placement,
        )
        return out

    def lower(self, *args: object, **kwargs: object) -> Lowered:
        """The lowered function, for arguments or for their `ShapeDtypeStruct`s."""
        return self.trace(*args, **kwargs).lower()

    def warm(self, *args: object, **kwargs: object) -> Compilation:
        """Compile for such arguments beside other work, and return at once.

        Arguments may be `ShapeDtypeStruct`s; no arrays are kept. The function is traced
        and lowered now, with what is configured now, so its errors appear here; a
        thread compiles the program, as many at a time as there are cores. A call that
        needs the program, of this function or of another with an equal one, waits for
        it. The `Compilation` that this returns can be asked or waited for. A process
        that exits waits for what is being compiled, and drops what is not.

        >>> import verax
        >>> double = verax.jit(lambda x: x * 2)
        >>> compilation = double.warm(1.0)
        >>> float(double(1.0)), compilation.result()
        (2.0, Compiled(<lambda>: ~f32[] -> ~f32[]))
        """
        stage = self.trace(*args, **kwargs)
        if not stage.traced.refs:
            return start_compiling(stage)
        from verax.api.stages.on_references import start_on_values

        return start_on_values(stage)

    def eval_shape(self, *args: object, **kwargs: object) -> Any:
        """The types of the outputs, without computing anything."""
        traced = self.trace(*args, **kwargs).traced
        return out_info(traced, self.settings.shardings.of_outputs(traced.out_tree))

    def clear_cache(self) -> None:
        """Forget every trace and every program of this function."""
        # Without the lock: a thread may be tracing, which is the user's code.
        TRACES.drop(self.fun)
        self.hashes.known.clear()
        self.traces.clear()
        self.programs.clear()
        self.direct.clear()

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return self
        return MethodType(self, instance)

    def __repr__(self) -> str:
        try:
            return f"<PjitFunction of {self.fun!r}>"
        except Exception:  # the function's own
            return "<PjitFunction>"


def staged(entry: Entry, sig: Signature, settings: Settings) -> Any:
    """The call as an equation: within a trace, or on references."""
    if entry.traced.refs:
        from verax.api.tracing.reference_checks import check_closed_over

        check_closed_over(entry.traced.opened, sig.leaves, sig.describe)
    shardings = settings.shardings
    traced = entry.traced
    leaves = without_types(sig.leaves, traced.jaxpr, entry.name, sig.describe)
    placed = constrained(leaves, shardings.of_inputs(*sig.call_args.dynamic))
    if settings.inline:
        outs = apply(traced.jaxpr, [*traced.captured, *placed])
    else:
        opened = traced.opened
        outs = call(entry.name, opened.jaxpr, *opened.captured, *placed)
    outs = constrained(outs, shardings.of_outputs(entry.traced.out_tree))
    return result_tree(entry.traced.out_tree, outs)


def is_kept(
    function: PjitFunction[..., Any],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    leaves: Sequence[object],
) -> bool | None:
    """Whether such a call takes the short way; None of types without values."""
    if any([isinstance(x, ShapeDtypeStruct) for x in leaves]):
        return None
    return function.is_remembered(args, kwargs)


def asked(
    function: PjitFunction[..., Any],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    types: AvalsOf,
) -> Signature:
    """The signature of a call; a budget is held where the arguments lie."""
    sig = signature(function.fun, function.settings.statics, args, kwargs, types)
    if function.settings.memory is None:
        return sig
    return sig._replace(key=sig.program_key)


def options_for(
    entry: Entry, settings: Settings, placement: Placement | None
) -> CompileOptions:
    """What XLA is told for the program of a trace."""
    if not entry.lean:
        return settings.options
    return settings.options.lean(platform_of(placement))


def recipe_for(entry: Entry, settings: Settings, placement: Placement | None) -> Recipe:
    """The recipe of a trace: all that decides about its program."""
    recipe, _ = recipe_of(
        ENGINE,
        entry.traced.jaxpr,
        options_for(entry, settings, placement),
        settings.keep_unused,
        entry.donated,
        placement,
    )
    return recipe


# -----------------------------------------------------------------------------
# `jit` itself: its options, checked where they are passed.
#
# Options are checked once, where they are written, and become the settings of a
# `PjitFunction`, which does all the rest::
#
#     jit(f, static_argnames="n"), jit(donate_argnums=0)(f)


type Calls = Literal["auto", "inline", "keep"]
type Lowerings = Literal["auto", "xla"]


def own_statics(
    fun: Callable[..., object], static_argnums: Numbers, static_argnames: Names
) -> Statics:
    """The static arguments named, or where none are, those of a jitted function."""
    unsaid = static_argnums is None and static_argnames is None
    if isinstance(fun, PjitFunction) and unsaid:
        return fun.settings.statics
    return resolve_statics(fun, static_argnums, static_argnames, None, None)


@overload
def jit[**P, R](
    fun: Callable[P, R],
    /,
    *,
    in_shardings: object = None,
    out_shardings: object = None,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
    donate_argnums: Numbers = None,
    donate_argnames: Names = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool | Inline = False,
    compiler_options: dict[str, str | bool | int | float] | None = None,
    calls: Calls | None = None,
    cpu_lowerings: Lowerings | None = None,
    memory: Budget | None = None,
) -> PjitFunction[P, R]: ...
@overload
def jit(
    *,
    in_shardings: object = None,
    out_shardings: object = None,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
    donate_argnums: Numbers = None,
    donate_argnames: Names = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool | Inline = False,
    compiler_options: dict[str, str | bool | int | float] | None = None,
    calls: Calls | None = None,
    cpu_lowerings: Lowerings | None = None,
    memory: Budget | None = None,
) -> "JitDecorator": ...
def jit(
    fun: Callable[..., object] | None = None,
    /,
    *,
    in_shardings: object = None,
    out_shardings: object = None,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
    donate_argnums: Numbers = None,
    donate_argnames: Names = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool | Inline = False,
    compiler_options: dict[str, str | bool | int | float] | None = None,
    calls: Calls | None = None,
    cpu_lowerings: Lowerings | None = None,
    memory: Budget | None = None,
) -> Any:
    """Compile a function, once for each signature of its arguments.

    Arguments are arrays, scalars and pytrees of them. Python runs the function once per
    structure, shapes and dtypes; later calls run the program, and do not wait for it.

    Static arguments (by position or name) are values while tracing; they must be
    hashable, and each new value or type compiles again. Donated arguments give their
    memory to the outputs and must not be used again. `keep_unused` passes arguments
    that the function ignores to the program; `inline`, a boolean or an `Inline`, writes
    the function into an outer trace instead of a call. `compiler_options` are XLA's, by
    name; `calls` and `cpu_lowerings` are the options of those names for this function.
    `memory` is a budget for what a run takes with arguments and results: bytes, text
    such as "2GB", or a share (0 to 1) of what it takes anyway. What does not fit is
    computed again instead of kept; see `docs/memory.md`.

    `in_shardings` and `out_shardings` say how arguments and results are placed:
    shardings, or prefix trees of them for the tuple of arguments and for the result;
    None leaves an argument as it is and a result to the compiler. All goes to `device`
    or `backend`, else where arguments are committed, else to the default device.

    Raises:
        TypeError: an argument is neither an array nor static.
        ValueError: a static argument is not hashable; arguments are committed to
            different devices, or not as `in_shardings` says; no plan is within `memory`
            (`verax.errors.MemoryBudgetExceeded`).

    >>> import verax, verax.numpy as vnp
    >>> double = verax.jit(lambda x: x * 2)
    >>> double(vnp.arange(3)).tolist()
    [0, 2, 4]
    """
    check_flags(keep_unused=keep_unused)
    overrides = checked_options(compiler_options)
    options = CompileOptions(1, None, overrides, (), calls, cpu_lowerings)
    shardings = resolve_shardings(in_shardings, out_shardings, device, backend)
    decorator = JitDecorator(
        static_argnums,
        static_argnames,
        donate_argnums,
        donate_argnames,
        keep_unused,
        as_inline(inline),
        options,
        shardings,
        check_budget(memory),
    )
    return decorator if fun is None else decorator(fun)


@frozen(eq=False, repr=False)
class JitDecorator(ReprMixin):
    """`jit` with its options, waiting for the function."""

    static_argnums: Numbers
    static_argnames: Names
    donate_argnums: Numbers
    donate_argnames: Names
    keep_unused: bool
    inline: bool
    options: CompileOptions
    shardings: Shardings
    memory: Budget | None

    def __call__[**P, R](self, fun: Callable[P, R]) -> PjitFunction[P, R]:
        check_function(fun)
        statics = resolve_statics(
            fun,
            self.static_argnums,
            self.static_argnames,
            self.donate_argnums,
            self.donate_argnames,
        )
        settings = Settings(
            statics,
            self.keep_unused,
            self.inline,
            self.options,
            self.shardings,
            self.memory,
        )
        return PjitFunction(fun, settings)
