"""Floor 5: what jit makes: traced once per signature, compiled once per program.

One idea: a call is a flatten, one dictionary lookup by the types of the leaves, and a
run; everything else happens on a miss, and is a value that can be looked at::

    f = jit(lambda x: x * 2)
    f(1.0); f.lower(1.0).as_text()
"""

import functools
from collections.abc import Callable, Sequence
from functools import partial
from types import MethodType
from typing import Any

from verax.api.arguments.cache_entries import Entry, Maker, Settings, debugged, watching
from verax.api.arguments.call_keys import (
    TreeCalls,
    flat_key,
    leaf_kinds,
    leaf_places,
    traced_places,
)
from verax.api.arguments.jit_options import usable, warn_unusable
from verax.api.arguments.static_keys import Hashes, warn_changed, watch
from verax.api.explain.build import Asked, explained, seen_keys, unjitted
from verax.api.explain.log import Miss, log_failure, start_miss, uses_of
from verax.api.explain.report import Explanation
from verax.api.jit.copying import Copyable
from verax.api.jit.trace_lock import turn
from verax.api.sharding_args import constrained
from verax.api.stages.interfaces import Interface
from verax.api.stages.stages import Lowered, Traced
from verax.api.tracing.apply import ENGINE, apply, current_builder
from verax.api.tracing.structs import (
    ShapeDtypeStruct,
    out_info,
    struct_aval,
    struct_avals,
)
from verax.api.tracing.trace import (
    TRACES,
    describe_arguments,
    function_name,
    leaf_avals,
    shared_trace,
    trace,
)
from verax.backend import pytrees
from verax.backend.arrays.concrete import ConcreteArray
from verax.backend.arrays.placed import PlacedArray
from verax.backend.calls.fast_call import CachedCall, arrays_of, cached, caller, kind_of
from verax.backend.programs.placement import Placement, placement_of
from verax.backend.programs.program import Program, Recipe, compiled, made_of, recipe_of
from verax.backend.pytrees import PyTreeDef
from verax.backend.results import result_tree
from verax.backend.runtime.client import check_not_forked
from verax.backend.runtime.locks import Locks
from verax.backend.runtime.metrics import RECORDER
from verax.backend.xla.executable import FAILED, fail
from verax.ir.avals import ShapedArray
from verax.ops.calls.call import call
from verax.rules.values.state import STATE, UNKEPT, State, current_context, current_mode

type Key = tuple[Any, ...]
CACHE_SIZE = 4096


class JitFunction[**P, R](Copyable):
    """A function behind jit; call it as the function itself."""

    def __init__(self, fun: Callable[P, R], settings: Settings) -> None:
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.settings = settings
        self.statics = settings.statics if settings.statics.any else None
        self.begin()

    def begin(self) -> None:
        """Start without traces and programs; see `Copyable`."""
        self.locks = Locks()
        self.traces: dict[Key, Entry] = {}
        self.programs: dict[Key, tuple[Program, Entry]] = {}
        self.direct: dict[object, CachedCall | TreeCalls] = {}
        self.hashes = Hashes()
        self.counted = False

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:  # noqa: C901  # in one frame
        """The result of the function, maybe not finished yet."""
        given: Sequence[Any] = args
        key: Key
        if kwargs or self.statics is not None:
            if kwargs:
                given = (*args, *kwargs.values())
            key = flat_key(self.statics, len(args), kwargs, given)
        elif len(args) == 1:
            x: Any = args[0]
            kind = x.aval if type(x) is ConcreteArray else kind_of(x)
            key = (kind, current_mode() if State.owners else State.shared)
        else:
            kinds = [x.aval if type(x) is ConcreteArray else kind_of(x) for x in given]
            kinds.append(current_mode() if State.owners else State.shared)
            key = tuple(kinds)
        try:
            found = self.direct.get(key)
            if type(found) is TreeCalls:
                found, given = found.find(given)
        except TypeError:  # a static value without a hash
            found = None
        if found is None:
            result: R = self.slow_call(args, kwargs)
            return result
        # As `CachedCall.__call__`, in this frame.
        if found.call_all is not None:
            result = found.call_all(given)
            return result
        if (fetch := found.fetch) is None:
            ins = [x.device_buffer() if (b := x.buffer) is None else b for x in given]
        else:
            ins = fetch(given)
        try:
            outs = found.run(ins).consume_with_handlers(found.handlers)
        except FAILED as error:
            fail(error, ins)
        if found.mark_donated is not None:
            found.mark_donated(given)
        if found.finish is not None:
            result = found.finish(arrays_of(outs, found.avals))
            return result
        made: Any = ConcreteArray()
        (made.buffer,), (made.aval,) = outs, found.avals
        made.host = None
        result = made
        return result

    def slow_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call, whatever the arguments and the interpreter are."""
        if STATE.disable_jit:
            return self.fun(*args, **kwargs)
        call_args = self.settings.statics.bind(args, kwargs)
        leaves, tree = pytrees.flatten(call_args.dynamic)
        describe = describe_arguments(self.fun, tree, call_args.positions)
        avals = leaf_avals(leaves, describe)
        key = (tree, current_context(), *avals, call_args.key)
        builder = current_builder()
        if builder is None:
            program, entry = self.program(key, tree, leaves, avals, call_args)
            kinds = leaf_kinds(leaves)
            made: Maker = partial(caller, program, entry.traced.out_tree, kinds)
            make = debugged(entry, describe, made)
            if None not in kinds and STATE.own is not UNKEPT:
                self.remember(args, kwargs, entry, make)
            run = make()
            return watching(entry, run)(leaves)
        miss = None if key in self.traces else self.miss(key, key)
        with log_failure(miss):
            entry = self.trace_once(key, tree, avals, call_args)
        if miss is not None:
            miss.log(entry, None, None)
        warn_changed(entry.name, entry.watched, 4)
        shardings = self.settings.shardings
        placed = constrained(leaves, shardings.of_inputs(*call_args.dynamic))
        traced = entry.traced
        if self.settings.inline:
            outs = apply(traced.jaxpr, [*traced.captured, *placed])
        else:
            opened = traced.opened
            outs = call(entry.name, opened.jaxpr, *opened.captured, *placed)
        outs = constrained(outs, shardings.of_outputs(entry.traced.out_tree))
        return result_tree(entry.traced.out_tree, outs)

    def remember(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], entry: Entry, make: Maker
    ) -> None:
        """Keep the short way for calls with arguments of these kinds."""
        if len(self.direct) >= CACHE_SIZE:
            self.direct.clear()
        statics, given = self.settings.statics, (*args, *kwargs.values())
        key = flat_key(self.statics, len(args), kwargs, given)
        kinds = key[: len(given)]
        places = traced_places(statics, len(args), kwargs)
        if None not in kinds:
            run = make(leaf_places(places, kinds))
            self.direct[key] = cached(watching(entry, run))
            return
        trees = self.direct.get(key)
        if type(trees) is not TreeCalls or len(trees.known) >= CACHE_SIZE:
            trees = self.direct[key] = TreeCalls(places, len(kinds))
        trees.add(given, cached(watching(entry, make())))

    def program(
        self,
        key: Key,
        tree: PyTreeDef,
        leaves: Sequence[object],
        avals: Sequence[ShapedArray],
        call_args: Any,
    ) -> tuple[Program, Entry]:
        """The compiled program for a signature, made on the first call."""
        full = program_key(key, leaves)
        found = self.programs.get(full)
        RECORDER.record("program_misses" if found is None else "program_hits")
        if found is not None:
            return found
        check_not_forked()
        with turn(self.locks.of(key)):
            miss = self.miss(full, key)
            with log_failure(miss):
                entry = self.trace_once(key, tree, avals, call_args)
        with turn(self.locks.of(full)), log_failure(miss):
            found = self.programs.get(full)
            if found is not None:  # made by another thread meanwhile
                return found
            warn_unusable(call_args.donated(tree), entry.donated, avals)
            placement = self.placement(entry, tree, leaves, call_args)
            recipe = self.recipe(entry, placement)
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
            found = (program, entry)
            if len(self.programs) >= CACHE_SIZE:
                self.programs.clear()
                self.direct.clear()
            self.programs[full] = found
            if miss is not None:
                miss.log(entry, made, program)
        return found

    def recipe(self, entry: Entry, placement: Placement | None) -> Recipe:
        """What decides about the program of a trace."""
        settings = self.settings
        recipe, _ = recipe_of(
            ENGINE,
            entry.traced.jaxpr,
            settings.options,
            settings.keep_unused,
            entry.donated,
            placement,
        )
        return recipe

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
        self, key: Key, tree: PyTreeDef, avals: Sequence[ShapedArray], call_args: Any
    ) -> Entry:
        """The trace for a signature; one that captures outer tracers is not kept."""
        found = self.traces.get(key)
        RECORDER.record("trace_misses" if found is None else "trace_hits")
        if found is not None:
            return found
        if not self.counted:
            self.counted = True
            uses_of(self.fun).count += 1
        entry = self.traced_anew(tree, avals, call_args)
        self.hashes.check(entry.name, call_args.labelled(), 6)
        if not entry.traced.captured:
            if len(self.traces) >= CACHE_SIZE:
                self.traces.clear()
            self.traces[key] = entry
        return entry

    def traced_anew(
        self, tree: PyTreeDef, avals: Sequence[ShapedArray], call_args: Any
    ) -> Entry:
        """The function, traced now."""
        describe = describe_arguments(self.fun, tree, call_args.positions)
        fun = call_args.with_statics(self.fun)
        take = shared_trace if fun is self.fun else trace
        traced = take(fun, tree, avals, "jit", describe=describe)
        donated = usable(call_args.donated(tree), avals, traced.jaxpr.out_avals)
        watched = watch(call_args.labelled())
        return Entry(traced, function_name(self.fun), donated, watched)

    def miss(self, key: Key, trace_key: Key) -> Miss | None:
        """What a call found that is about to be traced; None unless that is logged."""
        if not STATE.explain_cache_misses or current_context().fresh:
            return None
        seen = seen_keys([*self.programs], [*self.traces])
        traced = trace_key in self.traces
        return start_miss(self.fun, key, seen, traced, self.siblings)

    @property
    def siblings(self) -> int:
        """How many other jitted objects of the same code have been traced."""
        return max(0, uses_of(self.fun).count - self.counted)

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Whether a call with these arguments would find its program, and why not.

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
        call_args = self.settings.statics.bind(args, kwargs)
        leaves, tree = pytrees.flatten(call_args.dynamic)
        describe = describe_arguments(self.fun, tree, call_args.positions)
        avals = struct_avals(leaves, describe)
        key = (tree, current_context(), *avals, call_args.key)
        full = program_key(key, leaves)
        if STATE.disable_jit:
            return unjitted(self.fun, full)
        known = self.traces.get(key)
        entry = known or self.traced_anew(tree, avals, call_args)
        recipe = program = None
        if current_builder() is None:
            placement = self.placement(entry, tree, leaves, call_args)
            recipe = self.recipe(entry, placement)
            program, _ = self.programs.get(full, (None, None))
        return explained(
            Asked(
                self.fun,
                full,
                seen_keys([*self.programs], [*self.traces]),
                entry,
                known is not None,
                self.is_kept(args, kwargs, leaves),
                program,
                recipe,
                self.siblings,
            )
        )

    def is_kept(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: Sequence[Any]
    ) -> bool | None:
        """Whether such a call takes the short way; None of types without values."""
        if any([isinstance(x, ShapeDtypeStruct) for x in leaves]):
            return None
        given = (*args, *kwargs.values())
        run = self.direct.get(flat_key(self.statics, len(args), kwargs, given))
        if isinstance(run, TreeCalls):
            run, _ = run.find(given)
        return run is not None

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The traced function, for arguments or for their `ShapeDtypeStruct`s."""
        call_args = self.settings.statics.bind(args, kwargs)
        leaves, tree = pytrees.flatten(call_args.dynamic)
        avals = struct_avals(
            leaves, describe_arguments(self.fun, tree, call_args.positions)
        )
        key = (tree, current_context(), *avals, call_args.key)
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
        return Traced(
            interface,
            traced,
            settings.options,
            settings.keep_unused,
            entry.donated,
            placement,
        )

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The lowered function, for arguments or for their `ShapeDtypeStruct`s."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The types of the outputs, without computing anything."""
        return out_info(self.trace(*args, **kwargs).traced)

    def clear_cache(self) -> None:
        """Forget every trace and every program of this function."""
        # Without the lock: a thread may be tracing, which is the user's code.
        TRACES.drop(self.fun)
        self.hashes.known.clear()
        self.traces.clear()
        self.programs.clear()
        self.direct.clear()

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        return MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<jit of {function_name(self.fun)}>"


def placed_struct(x: object) -> object:
    """The kind of the array that a type with a sharding stands for."""
    if type(x) is not ShapeDtypeStruct or x.sharding is None:
        return None
    return struct_aval(x), x.sharding, True


def program_key(key: Key, leaves: Sequence[object]) -> Key:
    """The key of a program: that of its trace, and where its arguments lie.

    What is placed differently shares the trace, but not the program.
    """
    own = [
        (i, kind)
        for i, x in enumerate(leaves)
        if (kind := x.kind if type(x) is PlacedArray else placed_struct(x)) is not None
    ]
    return (*key[:-1], *own, key[-1]) if own else key
