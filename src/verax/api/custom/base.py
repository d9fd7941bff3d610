"""Floor 5: what functions with rules of the user's own have in common.

One idea: a call becomes one equation that holds the function's jaxpr and the rules as a
value, equal for equal calls; whether the rules can wait until they are needed, or must
be traced now, is the same question for all of them::

    class custom_jvp(CustomRules): ...
"""

import functools
import gc
import inspect
from abc import abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Any, ClassVar, Final
from weakref import ReferenceType, ref

from attrs import field, frozen

from verax.api.custom.arguments import (
    Positions,
    SortedArguments,
    deep_within,
    describe_type,
    fits,
    held_positions,
    in_type,
    leaf_type,
    matching_leaves,
    orders_around,
    reads_tracers,
    rules_under_way,
    sort_arguments,
    trace_body,
)
from verax.api.custom.snapshots import (
    Home,
    Snapshot,
    at_home,
    kept_in,
    snapshot,
    snapshots_at,
)
from verax.api.tracing.apply import current_builder, is_tracing
from verax.api.tracing.concrete_values import can_move
from verax.api.tracing.reference_checks import reference_aval, returned
from verax.api.tracing.trace import Opened, Traced
from verax.api.tracing.wrapping import describe_arguments, function_name, look_like
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef, tree_holds
from verax.ir.avals import ShapedArray, is_reference
from verax.ir.dtypes import is_inexact
from verax.ir.jaxpr import Jaxpr
from verax.ir.memos import holds
from verax.ir.records import ReprMixin, hiding
from verax.rules.rows.builder import Tracer
from verax.rules.rows.leaks import LeakedTracer, leaked
from verax.rules.values.array import Array
from verax.rules.values.conversions import AbstractValueError, shown
from verax.rules.values.memo import memo
from verax.rules.values.reference import Ref
from verax.rules.values.state import Context, current_context, entered

type Mask = tuple[bool, ...]


class When(Enum):
    """When rules are traced.

    Those that capture tracers mean something only where the function is called. Those
    that may read what changes mean then what they are to mean; if they cannot be
    traced there, whoever needs them says why.
    """

    NEEDED = "needed"
    CALLED = "called"
    CALLED_IF_SOUND = "called, if sound"


DEPTHS: Final = MappingProxyType(
    {When.NEEDED: 3, When.CALLED: 3, When.CALLED_IF_SOUND: 2}
)
"""Levels at which a rule is traced inside itself: it has one more derivative each time.

Where it is traced at its call, as often as derivatives are taken around, if more.
"""


NESTED: Final = 4
"""The depth in traces of rules from which another trace may as well wait.

A rule may call a function that is made for it, whose rule calls another, for ever: the
derivatives of a derivative. Each has another name, so no count by name would end it.
"""


RULES: Final = 1 << 11
"""The number of traces of rules that are kept, if these hold nothing."""


class Weights:
    """The bytes that functions with rules have captured since the last collection.

    A rule that calls its function holds it, and is held by it, so that both die in a
    collection. Python counts objects and not their bytes, so this asks for one.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.total = 0

    def add(self, arrays: Sequence[object]) -> None:
        """Note what another function has captured; references may change theirs."""
        self.total += sum([x.nbytes for x in arrays if isinstance(x, Array)])
        if self.total > self.limit:
            self.total = 0
            gc.collect()


WEIGHTS: Final = Weights(1 << 25)


@frozen(cache_hash=True, repr=False)
class CallRules(ReprMixin):
    """The rules of one call: what tells them from others is what they are called with.

    `tree` and `avals` are those of the arguments that the rules are about.
    """

    name: str
    tree: PyTreeDef = field(repr=False)
    avals: tuple[ShapedArray, ...] = field(repr=False)
    out_tree: PyTreeDef = field(repr=False)
    out_avals: tuple[ShapedArray, ...] = field(repr=False)
    context: Context = field(repr=False)
    home: ReferenceType[Home] = field(eq=False, repr=False)

    @property
    def transient(self) -> bool:
        """Whether memos must not keep the rules alive."""
        return holds(self.functions) or any(map(tree_holds, (self.tree, self.out_tree)))

    @property
    @abstractmethod
    def functions(self) -> tuple[Snapshot, ...]:
        """The rules as they were when the function was called."""

    def kept[R](self, what: Callable[..., R], *key: object) -> R:
        """`what(self, *key)`, kept for all rules that mean the same.

        What the rules hold dies with the function to which they belong. Those that may
        read what changes are kept for this call alone.
        """
        for part in self.functions:
            if part.open:
                return kept_in(part.traced, what, self, *key)
        if self.transient:
            return at_home(self.home(), what, self, *key)
        with entered(self.context):
            return shared(self.context, what, self, *key)

    def like_output(self, purpose: str, what: str, result: object) -> list[object]:
        """The leaves of what must have the structure of the output."""
        like = f"the output of {self.name}"
        return matching_leaves(purpose, what, self.out_tree, like, result, "the output")


def rules_of_call[R: CallRules](
    kind: Callable[..., R],
    home: Home,
    given: SortedArguments,
    body: Opened,
    avals: tuple[ShapedArray, ...],
    *own: object,
) -> R:
    """The rules of a call of `home`; `own` are the fields beside those of the base."""
    return kind(
        function_name(home.fun),
        given.tree,
        avals,
        body.out_tree,
        body.jaxpr.out_avals,
        current_context(),
        ref(home),
        *own,
    )


@frozen(cache_hash=True, repr=False)
class UserRules(CallRules):
    """Rules of derivatives; `held` are the arguments that they are not about.

    In messages, `decorator` made the function, and `rule_word` is the rule that gives
    outputs.
    """

    decorator: ClassVar[str]
    rule_word: ClassVar[str]

    symbolic: bool = field(repr=False)
    positions: Positions = field(repr=False)
    held: tuple[Snapshot, ...] = field(repr=False)

    @property
    def transient(self) -> bool:
        """Whether memos must not keep the rules alive."""
        return super().transient or holds(self.held) or holds(self.positions)

    @property
    def named_axes(self) -> frozenset[str]:
        """The axes around the call, which the rules may name."""
        return self.context.axis_names

    @abstractmethod
    def first(self, alike: str) -> str:
        """What the first element of its results is, which is `alike` to the output."""

    @property
    def decorated(self) -> str:
        """The function in messages."""
        return f"{self.decorator}-decorated function {self.name}"

    @property
    def active(self) -> Mask:
        """The arguments that can have tangents."""
        return tuple([is_inexact(aval.dtype) for aval in self.avals])

    @property
    def out_active(self) -> Mask:
        """The results that can have tangents."""
        return tuple([is_inexact(aval.dtype) for aval in self.out_avals])

    @property
    def held_values(self) -> list[object]:
        """The arguments that may be anything."""
        return [x.value for x in self.held]

    def outputs(self, purpose: str, title: str, out: object) -> list[Array]:
        """The output that a rule has returned, in the function's own types.

        Raises:
            TypeError: it has another structure, or other types.
        """
        leaves, tree = pytrees.flatten(out)
        given = [leaf_type(x) for x in leaves]
        if tree != self.out_tree:
            kind = "container/pytree structure:"
            raise TypeError(
                f"{title} must produce a pair (list or tuple of length two) where the "
                f"first element represents {self.first('of the same ' + kind[:-1])}, "
                f"but instead the {self.rule_word} rule output's first element had "
                f"{kind}\n    {types_in(tree, given)}\nwhile the {self.decorated} had "
                f"output {kind}\n    {types_in(self.out_tree, self.out_avals)}."
            )
        for i, (aval, due) in enumerate(zip(given, self.out_avals, strict=True)):
            if aval.shape == due.shape and fits(aval, due):
                continue
            kind = "shapes/dtypes of:"
            raise TypeError(
                f"{title} must produce a pair (list or tuple of length two) where the "
                f"first element represents "
                f"{self.first('with leaves of the same shape/dtype')}, but instead the "
                f"{self.rule_word} rule output's first element had {kind}\n"
                f"    {types_in(tree, given)}\nwhile the {self.decorated} had output "
                f"{kind}\n    {types_in(self.out_tree, self.out_avals)}\nAt output {i} "
                f"of {purpose}: got {self.rule_word} output type {describe_type(aval)} "
                f"which doesn't match {describe_type(due)}"
            )
        pairs = zip(leaves, self.out_avals, strict=True)
        return [
            in_type(x, aval, f"output {i} of {purpose}", self.name)
            for i, (x, aval) in enumerate(pairs)
        ]


@memo(RULES)
def shared[R](context: Context, what: Callable[..., R], *key: object) -> R:
    """The fate of rules that hold nothing which must die with a function."""
    return what(*key)


class Plain(str):
    """A text that trees show without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def types_in(tree: PyTreeDef, avals: Sequence[ShapedArray]) -> object:
    """A tree of types, to be shown."""
    return tree.unflatten([Plain(describe_type(aval)) for aval in avals])


def pair_of(purpose: str, what: str, result: object) -> tuple[object, object]:
    """The pair that a rule has returned.

    Raises:
        TypeError: it is none.
    """
    if isinstance(result, tuple | list) and len(result) == 2:
        return result[0], result[1]
    raise TypeError(
        f"{purpose} must produce a pair (list or tuple of length two) representing "
        f"{what}, but got {shown(result)}"
    )


def called(
    rule: Callable[..., object], purpose: str, takes: str, args: Sequence[object]
) -> Any:
    """Calls a rule on `args`, which it `takes`.

    Raises:
        TypeError: it takes another number of arguments.
    """
    try:
        return rule(*args)
    except TypeError as error:
        tb = error.__traceback__
        if tb is None or tb.tb_next is not None:
            raise  # out of the rule itself
        try:
            signature = inspect.signature(rule)
        except ValueError:
            raise error from None  # it does not say what it takes
        try:
            signature.bind(*args)
        except TypeError as mismatch:
            raise TypeError(
                f"{purpose} is called with {takes}: {len(args)} positional "
                f"argument{'' if len(args) == 1 else 's'}, but its signature is "
                f"{signature} ({mismatch})"
            ) from None
        raise


def call_eagerly(
    fun: Callable[..., object],
    args: Sequence[object],
    kwargs: dict[str, object],
    check: Callable[[Sequence[object], dict[str, object]], object],
) -> object:
    """`fun(*args, **kwargs)`, which also raises what `check` does under a trace.

    So a call with keywords that no rule can take fails before it is differentiated.
    """
    if kwargs:
        check(args, kwargs)
    touches = any([isinstance(x, Ref) for x in args])
    if touches:
        check_references(fun, args)
    try:
        out = fun(*args, **kwargs)
        if touches:
            check_returned(fun, out)
        return out
    except TypeError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next:
            raise  # out of the function itself
        check(args, kwargs)
        raise


def check_references(fun: Callable[..., object], args: Sequence[object]) -> None:
    """Raise ValueError for a reference that is passed twice, as under a trace."""
    leaves, tree = pytrees.flatten((tuple(args), {}))
    describe = describe_arguments(fun, tree)
    for i, leaf in enumerate(leaves):
        if is_reference(leaf):
            reference_aval(leaves, i, describe)


def check_returned(fun: Callable[..., object], out: object) -> None:
    """Raise ValueError for a reference among results, as under a trace."""
    for leaf in pytrees.flatten(out)[0]:
        if is_reference(leaf):
            raise returned(fun, leaf)


def on_its_own(traced: Traced) -> Jaxpr:
    """The jaxpr of a rule that was traced without anything around it.

    Raises:
        LeakedTracer: it closes over a tracer.
    """
    if traced.captured:
        raise leaked(traced.captured[0])
    return traced.jaxpr


def inner_rule(outer: object, name: str) -> object:
    """The method `name` of the function within, if it is one that gives rules.

    Raises:
        AttributeError: it is another name, or the function has none.
    """
    held = vars(outer)
    if name.startswith("def") and "fun" in held:
        return getattr(held["fun"], name)
    raise AttributeError(
        f"{type(outer).__name__!r} object has no attribute {name!r}", name=name
    )


class CustomRules(Home):
    """A function with rules: how it is made, called, and bound as a method."""

    __dir__ = hiding(
        "bind bwd fun fwd jvp kind nondiff_argnums optimize_remat parts rules "
        "signature sorted symbolic_zeros taken traced user_rules weighed"
    )

    parts = ("fun", "rules")
    kind = "custom"

    def __init__(
        self,
        fun: Callable[..., object],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        look_like(self, fun)  # copies what the function within has
        super().__init__(fun)
        self.nondiff_argnums = held_positions(fun, nondiff_argnums, nondiff_argnames)
        self.rules: tuple[Callable[..., Any], ...] = ()
        self.symbolic_zeros = False

    def __getattr__(self, name: str) -> Any:
        """Gives rules to the function within: `custom_vjp(custom_vmap(f))`."""
        return inner_rule(self, name)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The value of the function; under a trace, with its rules."""
        if not self.rules:
            name = function_name(self.fun)
            kind = self.kind
            raise AttributeError(
                f"No {kind.upper()} defined for custom_{kind} function {name} using "
                f"def{kind}: give it a rule first"
            )
        if not is_tracing():
            return call_eagerly(self.fun, args, kwargs, self.sorted)
        return self.bind(self.sorted(args, kwargs))

    def sorted(self, args: Sequence[object], kwargs: dict[str, Any]) -> SortedArguments:
        """The arguments of a call, by kind."""
        signature, held = self.signature, self.nondiff_argnums
        what = f"custom_{self.kind}-decorated"
        return sort_arguments(self.fun, signature, held, args, kwargs, what)

    @abstractmethod
    def bind(self, given: SortedArguments) -> Any:
        """Write the call as an equation of the current trace."""

    def user_rules[R: UserRules](
        self, kind: type[R], given: SortedArguments
    ) -> tuple[R, Opened, When]:
        """The rules of a call, the function traced, and when to trace the rules.

        `kind` takes the fields of `UserRules`, then the rules.
        """
        body, avals = trace_body(self.fun, given)
        if not self.weighed:
            self.weighed = True
            WEIGHTS.add(body.captured)
        rules = snapshots_at(self, self.rules)
        held = tuple([snapshot(x.value)[0] for x in given.held])
        own = self.symbolic_zeros, given.positions, held, *rules
        user = rules_of_call(kind, self, given, body, avals, *own)
        captures = body.reads_tracers or given.held_tracers
        if captures or any(map(reads_tracers, self.rules)):
            return user, body, When.CALLED
        looks = (*rules, *held)
        if any([x.captures for x in looks]):
            return user, body, When.CALLED
        # Which zeros are symbolic is known where the rule is needed.
        if self.symbolic_zeros or not any([x.open for x in looks]):
            return user, body, When.NEEDED
        return user, body, When.CALLED_IF_SOUND

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return self
        return functools.partial(self.__call__, instance)


def waiting_rule[U: UserRules, S](
    user: U, body: Opened, shifted: Callable[[U, tuple[ShapedArray, ...]], S]
) -> tuple[U | S, tuple[object, ...], Jaxpr]:
    """The rule of an equation, what the function captures, and the function.

    `shifted` makes a rule for a function that captures.
    """
    avals = body.captured_avals
    return shifted(user, avals) if avals else user, body.captured, body.jaxpr


def can_wait(
    purposes: Sequence[str], when: When, nonzero: Mask, probe: Callable[[Mask], object]
) -> bool:
    """Whether a rule can be traced when it is needed.

    `nonzero` marks the arguments that can have tangents here. A rule is traced now if
    it captures tracers, or may read what changes, or branches on values at hand, so
    that `probe`, which traces it without them, fails. Where it is being traced too
    often already, it is not traced again.
    """
    builder = current_builder()
    if builder is None:
        return True
    orders = 0 if when is When.NEEDED else orders_around(builder)
    if deep_within(builder, max(DEPTHS[when], orders), *purposes):
        return True
    if when is When.CALLED:
        return False
    if when is When.CALLED_IF_SOUND:
        return not any(nonzero) or rules_under_way(builder) >= max(NESTED, orders)
    if builder.oracle is None or not any(nonzero):
        return True
    try:
        probe(nonzero)
    except (AbstractValueError, LeakedTracer):
        return False
    except Exception:  # it may be one for other tangents than those due
        return True
    return True


def at_the_call[R, S](
    when: When, traced: Callable[[], R], waits: Callable[[], S]
) -> R | S:
    """The rule as it is traced now, or one that waits where that fails.

    A program may never be differentiated: an error is one for who differentiates it.
    """
    if when is not When.CALLED_IF_SOUND:
        return traced()
    try:
        return traced()
    except Exception:
        return waits()


def at_rest(body: Opened, nonzero: Mask) -> bool:
    """Whether neither arguments nor what the function captured can have tangents."""
    return not any(nonzero) and not any(
        [isinstance(x, Tracer) and is_inexact(x.aval.dtype) for x in body.captured]
    )


def movable(user: UserRules, leaves: Sequence[object], when: When) -> Mask:
    """The arguments of a call that can have tangents, as far as the trace knows.

    It is not asked about rules that wait, and so will see which tangents there are.
    """
    builder = current_builder()
    if builder is None or (when is When.NEEDED and builder.oracle is None):
        return user.active
    flags = zip(user.active, can_move(builder, leaves), strict=True)
    return tuple([active and moves for active, moves in flags])
