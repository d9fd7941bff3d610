"""Interpreters of a program's own: `jax.core.Trace` and `jax.core.Tracer`.

A trace of a program is an interpreter of verax: while it is current, each operation
asks its `process_primitive`. Its tracers are tracers of verax, so what a function
under `jit` or in a loop closes over becomes an operand that the trace sees::

    class Count(Trace):
        def process_primitive(self, primitive, tracers, params):
            ...

    with set_current_trace(Count()):
        jnp.sin(x)
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from threading import get_ident
from typing import Any, ClassVar

import verax
from verax.api.autodiff.primals import zero
from verax.api.tracing.apply import as_array, literal_array
from verax.api.tracing.wrapping import function_name
from verax.backend.eager.interpreter import EagerInterpreter
from verax.core import jaxpr_as_fun
from verax.ir.atoms import variable
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import is_inexact
from verax.ir.jaxpr import Atom, Literal, Params, Primitive as Named
from verax.jax.overlays.linear_util import WrappedFun, wrap_init
from verax.jax.overlays.params import jax_params
from verax.jax.primitives import FromRegistered
from verax.ops.custom.jvp import custom_jvp_call_p
from verax.ops.custom.vjp import custom_vjp_call_p
from verax.rules.rows.builder import Scope, Tracer as AnyTracer
from verax.rules.rows.infer import infer
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.memo import asked
from verax.rules.values.state import STATE, Interpreter, interpreting


class AllTraces(type):
    """Makes `isinstance(x, Trace)` true of verax's interpreters too."""

    def __instancecheck__(cls, x: object) -> bool:
        if cls.__module__ == __name__:
            return isinstance(x, (Scope, EagerInterpreter))
        return super().__instancecheck__(x)


class Trace(Scope, metaclass=AllTraces):
    """A trace, which gives operations their meaning while it is current.

    As in JAX, `Trace[T]` names the class of its tracers, for readers.
    """

    def __class_getitem__(cls, tracers: object) -> type:
        return cls

    immediate: ClassVar[bool] = False

    def __init__(self) -> None:
        self.purpose = "an interpreter of the program's own"
        self.outer = None
        self.alive = True
        self.thread = get_ident()
        self.inputs, self.eqns = [], []
        self.captured, self.converted = {}, {}
        self.describe, self.oracle = None, None
        self.differentiates = False
        self.releases = False
        self.numbers = count()
        self.beneath: Interpreter | None = None

    def entered(self, interpreter: Interpreter) -> None:
        """Note, at the first time, what was current before."""
        if self.beneath is None and interpreter is not self:
            self.beneath = interpreter
            self.outer = interpreter if isinstance(interpreter, Scope) else None

    def bind(
        self, primitive: Named, params: Params, args: Sequence[object]
    ) -> tuple[Array, ...]:
        """The results of an operation, as `process_primitive` says."""
        known: object = primitive
        if isinstance(primitive, FromRegistered):
            known = primitive.made_from
        values = [literal_array(x) if isinstance(x, Literal) else x for x in args]
        with interpreting(self.beneath or STATE.eager):
            result = self.processed(known, params, values)
        outs = result if isinstance(result, (list, tuple)) else [result]
        results = tuple([as_array(x) for x in outs])
        check_results(self, primitive, params, args, results)
        return results

    def processed(self, primitive: Any, params: Params, args: Sequence[object]) -> Any:
        if primitive is custom_jvp_call_p:
            fun, jvp = called(primitive, params), pushed(primitive, params)
            return self.process_custom_jvp_call(
                CUSTOM_JVP_CALL, fun, jvp, list(args), symbolic_zeros=False
            )
        if primitive is custom_vjp_call_p:
            fun, rules = called(primitive, params), PulledRules(params)
            return self.process_custom_vjp_call(
                primitive,
                fun,
                wrap_init(rules.forward),
                wrap_init(rules.backward),
                list(args),
                rules.trees,
                symbolic_zeros=False,
            )
        named = jax_params(primitive, params)
        return self.process_primitive(primitive, list(args), named)

    def process_primitive(
        self, primitive: object, tracers: Sequence[object], params: dict[str, object]
    ) -> Any:
        """The results of one operation."""
        raise NotImplementedError(f"{type(self)} must override process_primitive")

    def process_custom_jvp_call(
        self,
        primitive: object,
        fun: object,
        jvp: object,
        tracers: Sequence[object],
        *,
        symbolic_zeros: bool,
    ) -> Any:
        """The results of a function with a derivative of its own."""
        raise NotImplementedError(
            f"{type(self)} must override process_custom_jvp_call to handle custom_jvp"
        )

    def process_custom_vjp_call(
        self,
        primitive: object,
        fun: object,
        fwd: object,
        bwd: object,
        tracers: Sequence[object],
        out_trees: object,
        symbolic_zeros: bool,
    ) -> Any:
        """The results of a function with a reverse derivative of its own."""
        raise NotImplementedError(
            f"{type(self)} must override process_custom_vjp_call to handle custom_vjp"
        )

    def stage_value(self, val: object) -> Any:
        """A value as one of this trace."""
        return val

    def full_raise(self, x: object) -> Any:
        """A value as one of this trace: there are no levels, so as it is."""
        return x

    def invalidate(self) -> None:
        """End the trace: its tracers must not be used any more."""
        self.alive = False

    def is_valid(self) -> bool:
        """Whether the trace has not ended."""
        return self.alive


def check_results(
    trace: Trace,
    primitive: Any,
    params: Params,
    args: Sequence[object],
    results: Sequence[Array],
) -> None:
    """Refuse results that are not as many and of the shapes that the operation has.

    A rule that returns an array where a list is needed would otherwise be read as a
    list of its rows.
    """
    avals = [aval_of(x) for x in args]
    due = [a.shape for a in asked(infer, params, primitive, params, *avals)]
    result = [x.shape for x in results]
    if result != due:
        raise TypeError(
            f"{type(trace).__name__} returned results of shapes {result} for the "
            f"primitive {primitive.name}, whose results have the shapes {due}; a rule "
            "returns a list only if the primitive has multiple_results"
        )


class AllTracers(type):
    """Makes `isinstance(x, Tracer)` true of verax's tracers too."""

    def __instancecheck__(cls, x: object) -> bool:
        if cls.__module__ == __name__:
            return isinstance(x, AnyTracer)
        return super().__instancecheck__(x)


class Tracer(AnyTracer, metaclass=AllTracers):
    """A value of a trace of a program's own, which makes it and knows what it means."""

    __slots__ = ("_trace", "own_atom")

    def __init__(self, trace: Any, aval: ShapedArray | None = None) -> None:
        self._trace = trace  # type: ignore[misc]  # a slot here, where it may be set
        if aval is not None:
            self.aval = aval

    @property
    def builder(self) -> Any:  # type: ignore[override]  # the trace takes its part
        """The trace."""
        return self._trace

    @property
    def atom(self) -> Atom:  # type: ignore[override]  # made when it is asked for
        """The atom of the value in programs that close over it."""
        try:
            return self.own_atom  # type: ignore[no-any-return,has-type]  # a slot
        except AttributeError:
            self.own_atom = variable(next(self.builder.numbers), self.aval)
            return self.own_atom

    def full_lower(self) -> Any:
        """The value without its trace, if it has no need of it: itself."""
        return self


class TraceTag:
    """The tag that the traces of one call of an interpreter share; equal to itself."""

    __slots__ = ("__weakref__",)


def full_lower(x: object) -> Any:
    """`x.full_lower()` of tracers that have it, and other values as they are."""
    return x.full_lower() if hasattr(x, "full_lower") else x


@contextmanager
def take_current_trace() -> Iterator[Any]:
    """A block that is told which trace is current."""
    yield STATE.interpreter


@contextmanager
def set_current_trace(trace: Any, check_leaks: bool = False) -> Iterator[Any]:
    """A block whose operations a trace gets; None computes them."""
    if type(type(trace)) is AllTraces:
        trace.entered(STATE.interpreter)
    with interpreting(STATE.eager if trace is None else trace):
        yield trace


def called(primitive: object, params: Any) -> WrappedFun:
    """The function of a call with rules of its own, without the rules."""
    run = jaxpr_as_fun(params.jaxpr)

    def fun(*args: object) -> Any:
        with interpreting(top(args)):
            return run(*args)

    fun.__name__ = params.name
    return wrap_init(fun)


def pushed(primitive: Any, params: Params) -> WrappedFun:
    """The derivative of a call, of primals and then tangents to results and tangents.

    Its rule says it, and what it closes over moves too.
    """

    def jvp(*args: object) -> list[Any]:
        primals, tangents = args[: len(args) // 2], args[len(args) // 2 :]
        with interpreting(top(args)):
            outs, out_tangents = verax.jvp(
                lambda *xs: list(primitive.bind(params, *xs)), primals, tangents
            )
        return [*outs, *out_tangents]

    return wrap_init(jvp)


def top(args: Sequence[Any]) -> Any:
    """The trace of the first tracer of a program's own, or what is current."""
    own = [x._trace for x in args if type(type(x)) is AllTracers]
    return own[0] if own else STATE.interpreter


class CustomJvpCall:
    """Calls functions with derivatives of their own, by JAX's protocol."""

    name = "custom_jvp_call"
    multiple_results = True

    def bind_with_trace(
        self,
        trace: object,
        args: Sequence[object],
        avals: object,
        params: dict[str, Any],
    ) -> list[Any]:
        """The results of `subfuns[0]`, whose derivative is `subfuns[1]`."""
        fun, jvp = params["subfuns"]
        call = verax.custom_jvp(lambda *xs: list(fun.call_wrapped(*xs)))

        def rule(primals: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
            out = list(jvp.call_wrapped(*primals, *tangents))
            half = len(out) // 2
            return out[:half], out[half:]

        call.defjvp(rule, symbolic_zeros=params.get("symbolic_zeros", False))
        with set_current_trace(trace):
            return list(call(*args))

    def __repr__(self) -> str:
        return self.name


CUSTOM_JVP_CALL = CustomJvpCall()


class PulledRules:
    """The rules of a `custom_vjp` call on flat values, by JAX's protocol.

    What the call closes over comes first among the values, and has no cotangents.
    """

    def __init__(self, params: Any) -> None:
        self.params = params
        self.results = params.jaxpr.out_avals
        self.nonzero: tuple[bool, ...] = ()
        self.residuals = 0
        name, rule = params.name, params.rule
        rule = getattr(rule, "rule", rule)
        self.forward = named(self.run_forward, getattr(rule, "fwd", None), name)
        self.backward = named(self.run_backward, getattr(rule, "bwd", None), name)

    def run_forward(self, *pairs: object) -> list[Any]:
        """Residuals, then results, from each value and whether its tangent moves."""
        values, flags = pairs[::2], pairs[1::2]
        self.nonzero = tuple(map(bool, flags[self.params.captured :]))
        jaxpr = self.params.rule.forward(self.nonzero)
        with interpreting(top(values)):
            out = jaxpr_as_fun(jaxpr)(*values)
        count = len(self.results)
        self.residuals = len(out) - count
        return [*out[count:], *out[:count]]

    def trees(self) -> tuple[Any, Any, list[None]]:
        """Results and residuals as lists, and which values the residuals are: none."""
        trees = [
            verax.tree_util.tree_structure([0] * count)
            for count in (len(self.results), self.residuals)
        ]
        return trees[0], trees[1], [None] * self.residuals

    def run_backward(self, *args: object) -> tuple[list[Any], None]:
        """Cotangents of all values, from residuals and cotangents of all results."""
        residuals, cts = args[: self.residuals], args[self.residuals :]
        given = tuple([is_inexact(aval.dtype) for aval in self.results])
        jaxpr, mask = self.params.rule.backward(self.nonzero, given)
        live = [ct for ct, flag in zip(cts, given, strict=True) if flag]
        with interpreting(top(args)):
            out = iter(jaxpr_as_fun(jaxpr)(*residuals, *live))
        held = (False,) * self.params.captured
        avals = self.params.jaxpr.in_avals
        return [
            next(out) if flag else zero(aval.tangent())
            for flag, aval in zip((*held, *mask), avals, strict=True)
        ], None


def named(run: Callable[..., object], rule: Any, name: str) -> Callable[..., Any]:
    """`run` under the name of the user's rule; of the function, if it has none."""

    def call(*args: object) -> Any:
        return run(*args)

    call.__name__ = name if rule is None else function_name(rule.value)
    return call
