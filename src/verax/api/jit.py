"""Floor 5: jit: trace once per signature, compile once per program, run many times.

One idea: a call is a flatten, one dictionary lookup by the types of the leaves, and a
run; everything else happens on a miss, and is a value that can be looked at::

    f = jit(lambda x: x * 2)
    f(1.0); f.lower(1.0).as_text()
"""

import functools
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast, overload

from attrs import frozen

from verax.api.donation import usable, warn_unusable
from verax.api.engine import ENGINE, apply, current_builder
from verax.api.stages import LoweredStage, TracedStage, out_info, struct_avals
from verax.api.statics import Statics, resolve_statics
from verax.api.tracing import (
    Traced,
    describe_arguments,
    function_name,
    leaf_avals,
    trace,
)
from verax.backend import pytrees
from verax.backend.array import ConcreteArray
from verax.backend.executable import CompileOptions
from verax.backend.program import Program, compiled
from verax.backend.pytrees import PyTreeDef
from verax.ir.avals import ShapedArray
from verax.ops.call import call
from verax.rules.builder import Builder
from verax.rules.constants import aval_of
from verax.rules.state import STATE, State

type Numbers = int | Sequence[int] | None
type Names = str | Iterable[str] | None
CACHE_SIZE = 4096
LEAF = pytrees.flatten(0)[1]


@frozen(eq=False)
class Settings:
    """How a jitted function treats its arguments and its program."""

    statics: Statics
    keep_unused: bool
    inline: bool
    options: CompileOptions


@frozen(eq=False)
class Entry:
    """What one signature led to."""

    traced: Traced
    name: str
    donated: tuple[bool, ...]


class JitFunction[**P, R]:
    """A function behind jit; call it as the function itself."""

    def __init__(self, fun: Callable[P, R], settings: Settings) -> None:
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.settings = settings
        self.plain = not settings.statics.any
        self.lock = threading.RLock()
        self.traces: dict[object, Entry] = {}
        self.programs: dict[object, tuple[Program, PyTreeDef]] = {}
        self.direct: dict[object, Callable[[Sequence[object]], Any]] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of the function, maybe not finished yet."""
        state = STATE
        if self.plain and type(state.interpreter) is not Builder:
            if not kwargs and not state.disable_jit:
                avals = tuple([x.aval for x in args if type(x) is ConcreteArray])
                if len(avals) == len(args):
                    key = (state.enable_x64, state.staging, avals)
                    direct = self.direct.get(key)
                    if direct is not None:
                        return cast(R, direct(args))
            leaves, tree = pytrees.flatten((args, kwargs))
            found = self.programs.get(quick_key(tree, state, leaves))
            if found is not None and not state.disable_jit:
                return cast(R, found[1].unflatten(found[0].run(leaves)))
        return cast(R, self.slow_call(args, kwargs))

    def slow_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call, whatever the arguments and the interpreter are."""
        if STATE.disable_jit:
            return self.fun(*args, **kwargs)
        call_args = self.settings.statics.bind(args, kwargs)
        leaves, tree = pytrees.flatten(call_args.dynamic)
        describe = describe_arguments(self.fun, tree)
        avals = leaf_avals(leaves, describe)
        key = (tree, STATE.enable_x64, STATE.staging, *avals, call_args.key)
        builder = current_builder()
        if builder is None:
            program, out_tree = self.program(key, tree, avals, call_args)
            flat = self.plain and not kwargs
            if flat and all([type(x) is ConcreteArray for x in args]):
                arrays = (STATE.enable_x64, STATE.staging, tuple(avals))
                self.direct[arrays] = runner(program, out_tree)
            return out_tree.unflatten(program.run(leaves))
        entry = self.trace_once(key, tree, avals, call_args)
        ins = [*entry.traced.captured, *leaves]
        if self.settings.inline:
            outs = apply(entry.traced.jaxpr, ins)
        else:
            outs = call(entry.name, entry.traced.jaxpr, *ins)
        return entry.traced.out_tree.unflatten(outs)

    def program(
        self, key: object, tree: PyTreeDef, avals: Sequence[ShapedArray], call_args: Any
    ) -> tuple[Program, PyTreeDef]:
        """The compiled program for a signature, made on the first call."""
        found = self.programs.get(key)
        if found is not None:
            return found
        with self.lock:
            entry = self.trace_once(key, tree, avals, call_args)
            warn_unusable(call_args.donated(tree), entry.donated, avals)
            program = compiled(
                ENGINE,
                entry.traced.jaxpr,
                entry.name,
                self.settings.options,
                self.settings.keep_unused,
                entry.donated,
            )
            found = (program, entry.traced.out_tree)
            if len(self.programs) >= CACHE_SIZE:
                self.programs.clear()
                self.direct.clear()
            self.programs[key] = found
            if self.plain:
                self.programs[key[:-1]] = found  # type: ignore[index]  # a tuple
        return found

    def trace_once(
        self, key: object, tree: PyTreeDef, avals: Sequence[ShapedArray], call_args: Any
    ) -> Entry:
        """The trace for a signature; one that captures outer tracers is not kept."""
        found = self.traces.get(key)
        if found is not None:
            return found
        describe = describe_arguments(self.fun, tree)
        fun = call_args.with_statics(self.fun)
        traced = trace(fun, tree, avals, "jit", describe=describe)
        donated = usable(call_args.donated(tree), avals, traced.jaxpr.out_avals)
        entry = Entry(traced, function_name(self.fun), donated)
        if not traced.captured:
            if len(self.traces) >= CACHE_SIZE:
                self.traces.clear()
            self.traces[key] = entry
        return entry

    def trace(self, *args: Any, **kwargs: Any) -> TracedStage:
        """The traced function, for arguments or for their `ShapeDtypeStruct`s."""
        call_args = self.settings.statics.bind(args, kwargs)
        leaves, tree = pytrees.flatten(call_args.dynamic)
        avals = struct_avals(leaves)
        key = (tree, STATE.enable_x64, STATE.staging, *avals, call_args.key)
        entry = self.trace_once(key, tree, avals, call_args)
        settings = self.settings
        return TracedStage(
            entry.name,
            entry.traced,
            tree,
            settings.options,
            settings.keep_unused,
            entry.donated,
        )

    def lower(self, *args: Any, **kwargs: Any) -> LoweredStage:
        """The lowered function, for arguments or for their `ShapeDtypeStruct`s."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The types of the outputs, without computing anything."""
        return out_info(self.trace(*args, **kwargs).traced)

    def clear_cache(self) -> None:
        """Forget every trace and every program of this function."""
        with self.lock:
            self.traces.clear()
            self.programs.clear()
            self.direct.clear()

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        bound: Callable[..., Any] = self
        return functools.partial(bound, instance)

    def __repr__(self) -> str:
        return f"<jit of {function_name(self.fun)}>"


def runner(program: Program, out_tree: PyTreeDef) -> Callable[[Sequence[object]], Any]:
    """What a call with plain positional arrays does, all looked up beforehand."""
    run = program.run
    if out_tree == LEAF:
        return lambda args: run(args)[0]
    return lambda args: out_tree.unflatten(run(args))


def quick_key(tree: PyTreeDef, state: State, leaves: Sequence[object]) -> object:
    """The signature of a call without static arguments; None if a leaf is no array."""
    try:
        avals = [x.aval if type(x) is ConcreteArray else aval_of(x) for x in leaves]
    except TypeError:
        return None
    return (tree, state.enable_x64, state.staging, *avals)


@overload
def jit[**P, R](
    fun: Callable[P, R],
    /,
    *,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
    donate_argnums: Numbers = None,
    donate_argnames: Names = None,
    keep_unused: bool = False,
    inline: bool = False,
    compiler_options: dict[str, str | bool | int | float] | None = None,
) -> JitFunction[P, R]: ...
@overload
def jit(
    *,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
    donate_argnums: Numbers = None,
    donate_argnames: Names = None,
    keep_unused: bool = False,
    inline: bool = False,
    compiler_options: dict[str, str | bool | int | float] | None = None,
) -> "JitDecorator": ...
def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
    donate_argnums: Numbers = None,
    donate_argnames: Names = None,
    keep_unused: bool = False,
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

    Raises:
        TypeError: an argument is no array and not static; the message tells the ways
            out.
        ValueError: a static argument is not hashable.

    >>> import verax, verax.numpy as vnp
    >>> double = verax.jit(lambda x: x * 2)
    >>> double(vnp.arange(3)).tolist()
    [0, 2, 4]
    """
    overrides = tuple(sorted((compiler_options or {}).items()))
    options = CompileOptions(overrides=overrides)
    decorator = JitDecorator(
        static_argnums,
        static_argnames,
        donate_argnums,
        donate_argnames,
        keep_unused,
        inline,
        options,
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

    def __call__[**P, R](self, fun: Callable[P, R]) -> JitFunction[P, R]:
        if not callable(fun):
            raise TypeError(f"jit takes a function, not {fun!r}")
        statics = resolve_statics(
            fun,
            self.static_argnums,
            self.static_argnames,
            self.donate_argnums,
            self.donate_argnames,
        )
        settings = Settings(statics, self.keep_unused, self.inline, self.options)
        return JitFunction(fun, settings)
