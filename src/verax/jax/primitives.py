"""Primitives as programs for JAX make them: named first, given rules later.

Rules are registered one by one, in dictionaries of this layer; at its first use a
primitive becomes a frozen row of verax, made of what was registered by then, and
another row when that has changed::

    double_p = Primitive("double")
    double_p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(double_p, mlir.lower_fun(lambda x: x + x, False))
    ad.deflinear(double_p, lambda ct: (double_p.bind(ct),))
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NoReturn

import numpy as np
from attrs import evolve, field, frozen

import verax
from verax.api.tracing.apply import as_array, current_builder
from verax.backend.lowering.hand_written import module_text
from verax.ir.avals import ShapedArray
from verax.ir.effects import NO_EFFECTS, Effect
from verax.ir.jaxpr import Eqn, Jaxpr, Params, Primitive as Named
from verax.ir.records import ReprMixin
from verax.ops.calls.call_exported import (
    ExportedModule,
    ExportedParams,
    call_exported_p,
)
from verax.rules.rows.builder import Builder, Tracer
from verax.rules.rows.row import (
    Axis,
    BatchAxis,
    Engine,
    Known,
    MissingRule,
    Row,
    Tangent,
)
from verax.rules.values.array import Array
from verax.rules.values.conversions import AbstractValueError
from verax.rules.values.state import STATE, interpreting, widths_of

type Rule = Callable[..., Any]
type NamedParams = tuple[tuple[str, object], ...]


@frozen(eq=False, repr=False)
class Same(ReprMixin):
    """A value that cannot be hashed, equal to itself alone."""

    value: object

    def __eq__(self, other: object) -> bool:
        return type(other) is Same and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def hashed(value: object) -> object:
    """`value`, or what stands for it where hashes are needed."""
    try:
        hash(value)
    except TypeError:
        return Same(value)
    return value


@frozen(eq=False, repr=False)
class Keywords(Params):
    """The params of an equation as a primitive was bound with them, by keyword.

    Type rules are remembered and run where nothing is configured; those of a program
    may trace functions, which mean what x64 said when the primitive was bound: `wide`.
    """

    named: NamedParams = ()
    caused: frozenset[Effect] = field(default=NO_EFFECTS)
    wide: bool = field(factory=lambda: STATE.enable_x64)

    @property
    def effects(self) -> frozenset[Effect]:
        return self.caused | NO_EFFECTS.union(
            *(inner.effects for inner in self.subjaxprs(aside=False))
        )

    def subjaxprs(self, aside: bool = True) -> Any:
        for _, value in self.named:
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, Jaxpr):
                    yield item

    def keys(self) -> tuple[str, ...]:
        """The keywords."""
        return tuple([name for name, _ in self.named])

    def __getitem__(self, name: str) -> object:
        return self.dictionary()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.named)

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def configured(self) -> AbstractContextManager[None]:
        """Have x64 within the block as it was when the primitive was bound."""
        return widths_of((), self.wide)

    def dictionary(self) -> dict[str, Any]:
        """The keywords, as rules take them."""
        return {
            name: value.value if type(value) is Same else value
            for name, value in self.named
        }


def keywords(named: Mapping[str, object], effects: frozenset[Effect]) -> Keywords:
    return Keywords(
        tuple([(name, hashed(value)) for name, value in named.items()]), effects
    )


class Rules[V](dict["Primitive", V]):
    """The rules of one kind, by primitive; those of verax's own cannot be replaced."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def __setitem__(self, primitive: Any, rule: V) -> None:
        if isinstance(primitive, Named) and not isinstance(primitive, FromRegistered):
            raise NotImplementedError(
                f"{self.kind}: {primitive.name} is a primitive of verax, which has its "
                "rules already; they cannot be replaced for a whole process. Give a "
                "function a rule of its own with jax.custom_jvp, jax.custom_vjp or "
                "jax.custom_batching.custom_vmap"
            )
        super().__setitem__(primitive, rule)


PRIMITIVE_JVPS: Rules[Rule] = Rules("ad.primitive_jvps")
PRIMITIVE_TRANSPOSES: Rules[Rule] = Rules("ad.primitive_transposes")
PRIMITIVE_BATCHERS: Rules[Rule] = Rules("batching.primitive_batchers")
AXIS_BATCHERS: Rules[Rule] = Rules("batching.axis_primitive_batchers")
LOWERINGS: Rules[dict[str | None, Rule]] = Rules("mlir.register_lowering")


class KeepAlives:
    """Takes what must live as long as the program; verax's programs hold it anyway."""

    def add_keepalive(self, keepalive: object) -> None:
        """Nothing has to be done."""


@frozen(repr=False)
class LoweringContext(ReprMixin):
    """The context of a lowering: the types of operands and results."""

    avals_in: Sequence[ShapedArray]
    avals_out: Sequence[ShapedArray]
    primitive: Any = None
    module_context: KeepAlives = field(factory=KeepAlives)


@frozen(eq=False, repr=False)
class LowerFun(ReprMixin):
    """A lowering that is a function of operations: what `mlir.lower_fun` makes."""

    function: Rule
    multiple_results: bool

    def __call__(self, ctx: "LoweringContext", *args: object, **params: object) -> Any:
        """What the function writes, for a lowering that calls this one."""
        out = self.function(*args, **params)
        return list(out) if self.multiple_results else [out]


class AllPrimitives(type):
    """Makes `isinstance(eqn.primitive, Primitive)` true of every primitive."""

    def __instancecheck__(cls, x: object) -> bool:
        if super().__instancecheck__(x):
            return True
        return cls.__name__ == "Primitive" and isinstance(x, Named)


class Primitive(metaclass=AllPrimitives):
    """An operation of a program's own; see the module.

    The rows made for it are equal to it, so that dictionaries with primitives as keys
    find what they have for `eqn.primitive`. Two such rows are not equal to each other.
    """

    multiple_results = False
    call_primitive = False
    map_primitive = False
    ref_primitive = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.impl: Rule | None = None
        self.abstract_eval: Rule | None = None
        self.effectful = False
        self.made: tuple[tuple[object, ...], Row[Keywords]] | None = None

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        return type(other) is FromRegistered and other.made_from is self

    def __hash__(self) -> int:
        return id(self)

    def def_impl(self, impl: Rule) -> Rule:
        """Defines what the primitive computes, on arrays."""
        self.impl = impl
        return impl

    def def_abstract_eval(self, rule: Rule) -> Rule:
        """The type of the result, or a list of them."""

        def without_effects(*avals: ShapedArray, **params: object) -> Any:
            return rule(*avals, **params), NO_EFFECTS

        self.abstract_eval, self.effectful = without_effects, False
        return rule

    def def_effectful_abstract_eval(self, rule: Rule) -> Rule:
        """The types and the effects."""
        self.abstract_eval, self.effectful = rule, True
        return rule

    def def_custom_bind(self, bind: Rule) -> Rule:
        """Defines what happens instead of `bind`."""
        self.bind = bind  # type: ignore[method-assign]  # asked for
        return bind

    def bind(self, *args: object, **params: object) -> Any:
        """Apply the primitive: an array, or a list if it has multiple results.

        Outside of traces its implementation is called, whatever it returns.
        """
        if self.impl is not None and not is_applied(self.impl) and is_eager(args):
            return self.impl(*args, **params)
        results = self.row().bind(self.given(args, params), *args)
        return list(results) if self.multiple_results else results[0]

    def bind_with_trace(
        self,
        trace: Any,
        args: Sequence[object],
        avals: object,
        params: dict[str, object],
    ) -> Any:
        """`bind` under another interpreter."""
        with interpreting(trace):
            return self.bind(*args, **params)

    def get_bind_params(self, params: Mapping[str, object]) -> dict[str, Any]:
        """The keyword arguments of `bind`: the params of an equation."""
        return dict(params)

    def given(self, args: Sequence[object], params: Mapping[str, object]) -> Keywords:
        if not self.effectful or self.abstract_eval is None:
            return keywords(params, NO_EFFECTS)
        avals = [verax.typeof(x) for x in args]
        _, effects = self.abstract_eval(*avals, **params)
        return keywords(params, frozenset(effects))

    def row(self) -> Row[Keywords]:
        """The row that has the rules registered so far."""
        rules = self.registered()
        if self.made is None or self.made[0] != rules:
            self.made = rules, self.build()
        return self.made[1]

    def registered(self) -> tuple[object, ...]:
        lowerings = LOWERINGS.get(self, {})
        return (
            self.impl,
            self.abstract_eval,
            self.multiple_results,
            PRIMITIVE_JVPS.get(self),
            PRIMITIVE_TRANSPOSES.get(self),
            PRIMITIVE_BATCHERS.get(self),
            AXIS_BATCHERS.get(self),
            tuple(lowerings.items()),
        )

    def build(self) -> Row[Keywords]:
        jvp, transpose = PRIMITIVE_JVPS.get(self), PRIMITIVE_TRANSPOSES.get(self)
        plain, with_axis = PRIMITIVE_BATCHERS.get(self), AXIS_BATCHERS.get(self)
        composition = self.composition()
        row = FromRegistered(
            name=self.name,
            params=Keywords,
            typing=self.typing,
            evaluate=self.on_values if host_lowering(self) else None,
            jvp=None if jvp is None else jvp_column(self, jvp),
            transpose=None if transpose is None else transpose_column(self, transpose),
            batch=batch_column(self, plain, with_axis) if plain or with_axis else None,
            composition=composition,
            compiled=composition is None,
            lower=self.refused if composition is None else None,
            multiple_results=self.multiple_results,
            made_from=self,
        )
        return row

    def listed(self, result: Any) -> list[Any]:
        """Results as a list."""
        return list(result) if self.multiple_results else [result]

    def typing(self, p: Keywords, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
        if self.abstract_eval is None:
            raise NotImplementedError(
                f"the primitive {self.name} has no abstract evaluation rule; give it "
                f"one with {self.name}.def_abstract_eval"
            )
        with p.configured():
            out, _ = self.abstract_eval(*avals, **p.dictionary())
        several = isinstance(out, list | tuple)
        if several != self.multiple_results and (
            several or isinstance(out, ShapedArray)
        ):
            raise ValueError(
                f"{self.name}.abstract_eval() method should return a tuple or list of "
                f"types if {self.name}.multiple_results, and one type otherwise, not "
                f"{out!r}"
            )
        return self.listed(out)

    def composition(self) -> Callable[..., Any] | None:
        """The composition of the primitive, as a function of operations."""
        rules = LOWERINGS.get(self, {})
        chosen = rules.get("cpu", rules.get(None))
        if isinstance(chosen, LowerFun):
            function, several = chosen.function, chosen.multiple_results
        elif self.impl is not None and not is_applied(self.impl):
            several = self.multiple_results
            function = (
                with_host_calls(self, self.impl)
                if chosen is None
                else with_lowering(self, self.impl, chosen)
            )
        elif chosen is not None:
            function, several = written_by(self, chosen), self.multiple_results
        else:
            return None

        def composed(p: Keywords, *xs: Array) -> Any:
            with p.configured(), without_itself(self, p.named, xs):
                out = function(*xs, **p.dictionary())
            return list(out) if several else out

        return composed

    def on_values(
        self, engine: Engine, p: Keywords, xs: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """The implementation on values, which it may look at."""
        assert self.impl is not None
        with p.configured(), interpreting(STATE.eager):
            out = self.impl(*map(as_array, xs), **p.dictionary())
        return [np.asarray(y) for y in self.listed(out)]

    def refused(self, *_: object) -> Any:
        raise MissingRule(
            f"the primitive {self.name} has no lowering that verax can use: a rule of "
            "mlir.register_lowering must come from mlir.lower_fun, or the primitive "
            "needs an implementation in operations (def_impl)"
        )


def is_eager(args: Sequence[object]) -> bool:
    """Whether a primitive is applied to values, outside of every trace."""
    return STATE.interpreter.immediate and not any(
        [isinstance(x, Tracer) for x in args]
    )


def host_lowering(primitive: Primitive) -> Rule | None:
    """The lowering of what has an implementation, if it is no function itself."""
    rules, impl = LOWERINGS.get(primitive, {}), primitive.impl
    chosen = rules.get("cpu", rules.get(None))
    if impl is None or is_applied(impl) or isinstance(chosen, LowerFun):
        return None
    return chosen


def written_by(primitive: Primitive, lowering: Rule) -> Rule:
    """What a lowering writes: operations of this package, or a module of MLIR.

    Raises:
        MissingRule: it can do neither.
    """

    def function(*xs: Array, **params: object) -> Any:
        avals = [x.aval for x in xs]
        typed: Any = primitive.abstract_eval
        outs, _ = typed(*avals, **params)
        context = LoweringContext(avals, primitive.listed(outs), primitive=primitive)
        writer = current_program()
        try:
            with writer.undone_on_error():
                out = lowering(context, *xs, **params)
        except (AttributeError, RuntimeError, TypeError, ValueError) as first:
            out = built_by_hand(context, lowering, params, xs, first)
        return out if primitive.multiple_results else out[0]

    return function


def built_by_hand(
    context: LoweringContext,
    lowering: Rule,
    params: Mapping[str, object],
    xs: Any,
    first: Exception,
) -> Any:
    """The results of a module that a lowering builds with the bindings of MLIR.

    `first` is the error that it raised on traced arrays.

    Raises:
        MissingRule: it fails, or takes its arguments for traced arrays.
    """
    name = context.primitive.name

    def body(values: Sequence[object]) -> list[Any]:
        out = lowering(context, *values, **params)
        return flat_values(out if isinstance(out, Sequence) else out.results)

    try:
        text = module_text(context.avals_in, body)
    except Exception as error:
        raise MissingRule(
            f"the lowering of the primitive {name} fails, on traced arrays and on "
            "values of MLIR: verax runs such rules as functions, which may call those "
            "of mlir.lower_fun, ffi.ffi_lowering and mlir.emit_python_callback, or as "
            f"builders of a module. The former said: {first}. The latter: {error}"
        ) from error
    outs = tuple([aval.strong() for aval in context.avals_out])
    ins = tuple([aval.strong() for aval in context.avals_in])

    def run(*values: object) -> list[Any]:
        results = verax.jit(lambda *xs: list(hand_written_p.bind(call, *xs)))(*values)
        return list(map(np.asarray, results))

    module = ExportedModule(name, text, run, (), takes_platform=False, unchecked=True)
    call = ExportedParams(module, ins, outs)
    return hand_written_p.bind(call, *xs)


def no_rule(engine: Engine, p: ExportedParams, *operands: object) -> NoReturn:
    name = p.module.__name__
    raise NotImplementedError(
        f"Differentiation rule for '{name}' not implemented: its lowering builds a "
        "module, which has none; give it one with ad.primitive_jvps, ad.defjvp or "
        "ad.deflinear of jax.interpreters"
    )


hand_written_p = evolve(
    call_exported_p, name="hand_written", jvp=no_rule, transpose=no_rule
)
"""The call of a module that a lowering has built."""


def flat_values(results: Any) -> list[Any]:
    """MLIR's values, each alone or the only one in a sequence."""
    out = []
    for x in results:
        out += flat_values(x) if isinstance(x, Sequence) else [x]
    return out


class WritesItself(AbstractValueError, MissingRule):
    """A primitive is written in terms of itself."""


@contextmanager
def without_itself(
    primitive: Primitive, named: NamedParams, xs: Sequence[Array]
) -> Iterator[None]:
    """Raise WritesItself if the block writes the call that it stands for.

    That is the primitive with the same params on operands of the same types, also in
    a program inside: lowering it would not end. With others it may be recursive, as
    the solver of a linear system that solves a simpler one.
    """
    writer = current_program()
    written = len(writer.eqns)
    yield
    own = [x.aval for x in xs]

    def is_own(eqn: Eqn) -> bool:
        if eqn.primitive != primitive or [x.aval for x in eqn.invars] != own:
            return False
        return isinstance(eqn.params, Keywords) and eqn.params.named == named

    if has_equation(writer.eqns[written:], is_own):
        raise WritesItself(
            f"the primitive {primitive.name} is lowered by a function that binds "
            f"{primitive.name} itself, which does not end; give it a lowering in other "
            "operations with mlir.register_lowering"
        )


def has_equation(eqns: Iterable[Eqn], sought: Callable[[Eqn], bool]) -> bool:
    """Whether there is an equation, or one in the programs of others."""
    return any(
        [
            sought(eqn)
            or any([has_equation(inner.eqns, sought) for inner in inside(eqn.params)])
            for eqn in eqns
        ]
    )


def inside(params: Params) -> Iterable[Jaxpr]:
    """The programs in the params of an equation."""
    return params.subjaxprs(aside=False)


def with_host_calls(primitive: Primitive, impl: Rule) -> Rule:
    """The implementation; if it needs values, a call of it on the host."""

    def function(*xs: Array, **params: object) -> Any:
        try:
            return traced_here(primitive, impl, xs, params)
        except AbstractValueError:
            lowering = called_on_host(primitive, impl)
            return written_by(primitive, lowering)(*xs, **params)

    return function


def with_lowering(primitive: Primitive, impl: Rule, lowering: Rule) -> Rule:
    """What programs have for a primitive: its lowering, as the implementation is eager.

    Where the lowering can do nothing here, it is the implementation after all.
    """

    def function(*xs: Array, **params: object) -> Any:
        writer = current_program()
        try:
            with writer.undone_on_error():
                return written_by(primitive, lowering)(*xs, **params)
        except MissingRule as refusal:
            try:
                return traced_here(primitive, impl, xs, params)
            except AbstractValueError:
                raise refusal from None

    return function


def traced_here(
    primitive: Primitive,
    impl: Rule,
    xs: Sequence[Array],
    params: Mapping[str, object],
) -> Any:
    """What the implementation writes into the current program; nothing if it fails."""
    writer = current_program()
    named = keywords(params, NO_EFFECTS).named
    with writer.undone_on_error(), without_itself(primitive, named, xs):
        return impl(*xs, **params)


def current_program() -> Builder:
    """The program that is being written, for rules that run in traces alone."""
    builder = current_builder()
    assert builder is not None
    return builder


def called_on_host(primitive: Primitive, impl: Rule) -> Rule:
    """A lowering that calls the implementation on values while the program runs."""

    def lowering(ctx: LoweringContext, *xs: Array, **params: object) -> Any:
        structs = [verax.ShapeDtypeStruct(a.shape, a.dtype) for a in ctx.avals_out]
        return verax.pure_callback(
            lambda *values: primitive.listed(impl(*values, **params)), structs, *xs
        )

    return lowering


def jvp_column(primitive: Primitive, rule: Rule) -> Callable[..., Any]:
    def jvp(
        engine: Engine, p: Keywords, xs: Sequence[Array], ts: Sequence[Tangent]
    ) -> tuple[Sequence[Array], Sequence[Tangent]]:
        out, tangent = rule(tuple(xs), tuple(ts), **p.dictionary())
        return primitive.listed(out), primitive.listed(tangent)

    return jvp


def transpose_column(primitive: Primitive, rule: Rule) -> Callable[..., Any]:
    def transpose(
        engine: Engine, p: Keywords, cts: Sequence[Tangent], xs: Sequence[Known]
    ) -> Sequence[Tangent | None]:
        given = list(cts) if primitive.multiple_results else cts[0]
        out = rule(given, *xs, **p.dictionary())
        return [None if x is None else x for x in out]

    return transpose


def batch_column(
    primitive: Primitive, plain: Rule | None, with_axis: Rule | None
) -> Callable[..., Any]:
    def batch(
        engine: Engine,
        p: Keywords,
        size: int,
        xs: Sequence[Array],
        axes: Sequence[Axis],
    ) -> tuple[Sequence[Array], Sequence[Axis]]:
        if plain is not None:
            outs, dims = plain(tuple(xs), tuple(axes), **p.dictionary())
        else:
            assert with_axis is not None
            data = AxisData(engine.axis, size)
            outs, dims = with_axis(data, tuple(xs), tuple(axes), **p.dictionary())
        if not primitive.multiple_results:
            return [outs], [dims]
        return list(outs), list(dims)

    return batch


@frozen(eq=False, repr=False)
class FromRegistered(Row[Keywords]):
    """A row made of registered rules, which knows the primitive it was made for."""

    made_from: Primitive = field(kw_only=True)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self.made_from

    def __hash__(self) -> int:
        return hash(self.made_from)

    def bind(self, params: object = None, /, *args: object, **fields: object) -> Any:
        """The results, or what the program's primitive returns if there are no params.

        Programs that walk equations call `eqn.primitive.bind(*xs, **eqn.params)`.
        """
        if isinstance(params, Params):
            return super().bind(params, *args)
        operands = args if params is None else (params, *args)
        return self.made_from.bind(*operands, **fields)


@frozen(repr=False)
class AxisData(ReprMixin):
    """The new axis, for batch rules of `axis_primitive_batchers`."""

    axis: BatchAxis | None
    size: int

    @property
    def name(self) -> str | None:
        return None if self.axis is None else self.axis.name

    @property
    def spmd_name(self) -> tuple[str, ...] | None:
        return (self.axis.spmd or None) if self.axis is not None else None


def is_applied(impl: Rule) -> bool:
    """Whether an implementation only says: compile the lowering and run it."""
    function = getattr(impl, "func", impl)
    return getattr(function, "compiles_the_lowering", False)
