"""Floor 5: jit: trace once per signature, compile once per program, run many times.

One idea: a call is a flatten, one dictionary lookup by the types of the leaves, and a
run; everything else happens on a miss, and is a value that can be looked at::

    f = jit(lambda x: x * 2)
    f(1.0); f.lower(1.0).as_text()
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import MethodType
from typing import Any, cast, overload

from attrs import frozen

from verax.api.donation import usable, warn_unusable
from verax.api.engine import ENGINE, apply, current_builder
from verax.api.entries import Entry, Maker, Settings, debugged, watching
from verax.api.interfaces import Interface
from verax.api.options import check_flags, check_function, checked_options
from verax.api.places import Shardings, constrained, resolve_shardings
from verax.api.signatures import (
    Trees,
    flat_kinds,
    leaf_kinds,
    leaf_places,
    traced_places,
)
from verax.api.stages import LoweredStage, TracedStage
from verax.api.static_values import Hashes, warn_changed, watch
from verax.api.statics import resolve_statics
from verax.api.structs import out_info, struct_avals
from verax.api.tracing import (
    describe_arguments,
    function_name,
    leaf_avals,
    trace,
)
from verax.api.turns import turn
from verax.backend import pytrees
from verax.backend.array import ConcreteArray
from verax.backend.client import Device
from verax.backend.dispatch import Call, caller, kind_of
from verax.backend.executable import CompileOptions
from verax.backend.locks import Locks
from verax.backend.metrics import RECORDER
from verax.backend.placed import PlacedArray
from verax.backend.placement import Placement, placement_of
from verax.backend.program import MADE, Program, Recipe, compiled
from verax.backend.pytrees import PyTreeDef
from verax.ir.avals import ShapedArray
from verax.ops.call import call
from verax.rules.builder import Builder
from verax.rules.state import STATE

type Numbers = int | Sequence[int] | None
type Names = str | Iterable[str] | None
type Key = tuple[Any, ...]
CACHE_SIZE = 4096


class JitFunction[**P, R]:
    """A function behind jit; call it as the function itself."""

    def __init__(self, fun: Callable[P, R], settings: Settings) -> None:
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.settings = settings
        self.plain = not settings.statics.any
        self.locks = Locks()
        self.traces: dict[object, Entry] = {}
        self.programs: dict[object, tuple[Program, Entry]] = {}
        self.direct: dict[object, Call | Trees] = {}
        self.hashes = Hashes()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of the function, maybe not finished yet."""
        state = STATE
        if type(state.interpreter) is not Builder:
            given: Sequence[Any] = (*args, *kwargs.values()) if kwargs else args
            if self.plain:
                kinds = tuple(
                    [x.aval if type(x) is ConcreteArray else kind_of(x) for x in given]
                )
            else:
                kinds = flat_kinds(self.settings.statics, len(args), kwargs, given)
            key: Key = (state.enable_x64, state.staging, kinds)
            if kwargs:
                key += (*kwargs,)
            try:
                run = self.direct.get(key)
                if type(run) is Trees:
                    run, given = run.find(given)
            except TypeError:  # a static value without a hash
                run = None
            if run is not None:
                result: R = run(given)
                return result
        return cast(R, self.slow_call(args, kwargs))

    def slow_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call, whatever the arguments and the interpreter are."""
        if STATE.disable_jit:
            return self.fun(*args, **kwargs)
        call_args = self.settings.statics.bind(args, kwargs)
        leaves, tree = pytrees.flatten(call_args.dynamic)
        describe = describe_arguments(self.fun, tree, call_args.positions)
        avals = leaf_avals(leaves, describe)
        key = (tree, STATE.enable_x64, STATE.staging, *avals, call_args.key)
        builder = current_builder()
        if builder is None:
            program, entry = self.program(key, tree, leaves, avals, call_args)
            kinds = leaf_kinds(leaves)
            made: Maker = partial(caller, program, entry.traced.out_tree, kinds)
            make = debugged(entry, describe, made)
            if None not in kinds:
                self.remember(args, kwargs, entry, make)
            run = make()
            return watching(entry, run)(leaves)
        entry = self.trace_once(key, tree, avals, call_args)
        warn_changed(entry.name, entry.watched, 4)
        shardings = self.settings.shardings
        placed = constrained(leaves, shardings.of_inputs(*call_args.dynamic))
        ins = [*entry.traced.captured, *placed]
        if self.settings.inline:
            outs = apply(entry.traced.jaxpr, ins)
        else:
            outs = call(entry.name, entry.traced.jaxpr, *ins)
        outs = constrained(outs, shardings.of_outputs(entry.traced.out_tree))
        return entry.traced.out_tree.unflatten(outs)

    def remember(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], entry: Entry, make: Maker
    ) -> None:
        """Keep the short way for calls with arguments of these kinds."""
        if len(self.direct) >= CACHE_SIZE:
            self.direct.clear()
        statics, given = self.settings.statics, (*args, *kwargs.values())
        kinds = flat_kinds(statics, len(args), kwargs, given)
        key = (STATE.enable_x64, STATE.staging, kinds, *kwargs)
        places = traced_places(statics, len(args), kwargs)
        if None not in kinds:
            run = make(leaf_places(places, kinds))
            self.direct[key] = watching(entry, run)
            return
        trees = self.direct.get(key)
        if type(trees) is not Trees or len(trees.known) >= CACHE_SIZE:
            trees = self.direct[key] = Trees(places, len(kinds))
        trees.known[trees.key(given)[0]] = watching(entry, make())

    def program(
        self,
        key: tuple[object, ...],
        tree: PyTreeDef,
        leaves: Sequence[object],
        avals: Sequence[ShapedArray],
        call_args: Any,
    ) -> tuple[Program, Entry]:
        """The compiled program for a signature, made on the first call."""
        own = [(i, x.kind) for i, x in enumerate(leaves) if type(x) is PlacedArray]
        # What is placed differently shares the trace, but not the program.
        full = (*key[:-1], *own, key[-1]) if own else key
        found = self.programs.get(full)
        RECORDER.record("program_misses" if found is None else "program_hits")
        if found is not None:
            return found
        with turn(self.locks.of(key)):
            entry = self.trace_once(key, tree, avals, call_args)
        with turn(self.locks.of(full)):
            found = self.programs.get(full)
            if found is not None:  # made by another thread meanwhile
                return found
            warn_unusable(call_args.donated(tree), entry.donated, avals)
            placement = self.placement(entry, tree, leaves, call_args)
            recipe = self.recipe(entry, placement)
            known = MADE.find(recipe) is not None
            RECORDER.record("executable_hits" if known else "executable_misses")
            program = compiled(
                ENGINE,
                recipe.jaxpr,
                entry.name,
                recipe.options,
                recipe.keep_unused,
                recipe.donated,
                recipe.placement,
            )
            found = (program, entry)
            if len(self.programs) >= CACHE_SIZE:
                self.programs.clear()
                self.direct.clear()
            self.programs[full] = found
        return found

    def recipe(self, entry: Entry, placement: Placement | None) -> Recipe:
        """What decides about the program of a trace."""
        settings = self.settings
        return Recipe(
            ENGINE,
            entry.traced.jaxpr,
            settings.options,
            settings.keep_unused,
            entry.donated,
            placement,
        )

    def placement(
        self, entry: Entry, tree: PyTreeDef, leaves: Sequence[object], call_args: Any
    ) -> Placement | None:
        """Where the program runs; None if on the first device, as usual."""
        shardings = self.settings.shardings
        return placement_of(
            entry.traced.jaxpr,
            leaves,
            describe_arguments(self.fun, tree, call_args.positions),
            shardings.of_inputs(*call_args.dynamic),
            shardings.of_outputs(entry.traced.out_tree),
            shardings.device,
        )

    def trace_once(
        self, key: object, tree: PyTreeDef, avals: Sequence[ShapedArray], call_args: Any
    ) -> Entry:
        """The trace for a signature; one that captures outer tracers is not kept."""
        found = self.traces.get(key)
        RECORDER.record("trace_misses" if found is None else "trace_hits")
        if found is not None:
            return found
        describe = describe_arguments(self.fun, tree, call_args.positions)
        fun = call_args.with_statics(self.fun)
        traced = trace(fun, tree, avals, "jit", describe=describe)
        donated = usable(call_args.donated(tree), avals, traced.jaxpr.out_avals)
        labelled = call_args.labelled()
        name = function_name(self.fun)
        self.hashes.check(name, labelled, 6)
        entry = Entry(traced, name, donated, watch(labelled))
        if not traced.captured:
            if len(self.traces) >= CACHE_SIZE:
                self.traces.clear()
            self.traces[key] = entry
        return entry

    def trace(self, *args: Any, **kwargs: Any) -> TracedStage:
        """The traced function, for arguments or for their `ShapeDtypeStruct`s."""
        call_args = self.settings.statics.bind(args, kwargs)
        leaves, tree = pytrees.flatten(call_args.dynamic)
        avals = struct_avals(
            leaves, describe_arguments(self.fun, tree, call_args.positions)
        )
        key = (tree, STATE.enable_x64, STATE.staging, *avals, call_args.key)
        with turn(self.locks.of(key)):
            entry = self.trace_once(key, tree, avals, call_args)
        traced, settings = entry.traced, self.settings
        placement = None
        if not traced.captured:
            placement = self.placement(entry, tree, leaves, call_args)
        interface = Interface(
            entry.name,
            tree,
            tuple(avals),
            call_args.donated(tree) or (False,) * len(avals),
            traced.out_tree,
            traced.jaxpr.out_avals,
        )
        return TracedStage(
            interface,
            traced,
            settings.options,
            settings.keep_unused,
            entry.donated,
            placement,
        )

    def lower(self, *args: Any, **kwargs: Any) -> LoweredStage:
        """The lowered function, for arguments or for their `ShapeDtypeStruct`s."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The types of the outputs, without computing anything."""
        return out_info(self.trace(*args, **kwargs).traced)

    def clear_cache(self) -> None:
        """Forget every trace and every program of this function."""
        # Without the lock: a thread may be tracing, which is the user's code.
        self.traces.clear()
        self.programs.clear()
        self.direct.clear()

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        return MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<jit of {function_name(self.fun)}>"


@overload
def jit[**P, R](
    fun: Callable[P, R],
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
    donate_argnums: Numbers = None,
    donate_argnames: Names = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, str | bool | int | float] | None = None,
) -> JitFunction[P, R]: ...
@overload
def jit(
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
    donate_argnums: Numbers = None,
    donate_argnames: Names = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, str | bool | int | float] | None = None,
) -> "JitDecorator": ...
def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
    donate_argnums: Numbers = None,
    donate_argnames: Names = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, str | bool | int | float] | None = None,
) -> Any:
    """Compile a function, once for each signature of its arguments.

    Arguments are arrays, scalars and pytrees of them. The function is run by Python
    once per structure, shapes and dtypes; later calls run the compiled program, and
    return before it has finished.

    Static arguments (by position or name) are values at tracing; they must be hashable,
    and a value of another type or value compiles anew. Donated arguments lend their
    memory to the outputs and must not be used again. `keep_unused` passes arguments
    that the function ignores to the program; `inline` writes the function into an outer
    trace in place of a call. `compiler_options` are XLA's, by name.

    `in_shardings` and `out_shardings` say how arguments and results lie on devices:
    shardings, or prefix trees of them for the tuple of arguments and for the result;
    None leaves an argument as it is and a result to the compiler. With `device` or
    `backend` everything goes to one device. Otherwise computation follows data: it runs
    where the arguments are committed, or else on the default device.

    Raises:
        TypeError: an argument is no array and not static; the message tells the ways
            out.
        ValueError: a static argument is not hashable; arguments are committed to
            different devices, or otherwise than `in_shardings` says.

    >>> import verax, verax.numpy as vnp
    >>> double = verax.jit(lambda x: x * 2)
    >>> double(vnp.arange(3)).tolist()
    [0, 2, 4]
    """
    options = CompileOptions(overrides=checked_options(compiler_options))
    check_flags(keep_unused=keep_unused, inline=inline)
    shardings = resolve_shardings(in_shardings, out_shardings, device, backend)
    decorator = JitDecorator(
        static_argnums,
        static_argnames,
        donate_argnums,
        donate_argnames,
        keep_unused,
        inline,
        options,
        shardings,
    )
    return decorator if fun is None else decorator(fun)


@frozen(eq=False)
class JitDecorator:
    """`jit` with its options, waiting for the function."""

    static_argnums: Numbers
    static_argnames: Names
    donate_argnums: Numbers
    donate_argnames: Names
    keep_unused: bool
    inline: bool
    options: CompileOptions
    shardings: Shardings

    def __call__[**P, R](self, fun: Callable[P, R]) -> JitFunction[P, R]:
        check_function(fun)
        statics = resolve_statics(
            fun,
            self.static_argnums,
            self.static_argnames,
            self.donate_argnums,
            self.donate_argnames,
        )
        settings = Settings(
            statics, self.keep_unused, self.inline, self.options, self.shardings
        )
        return JitFunction(fun, settings)
