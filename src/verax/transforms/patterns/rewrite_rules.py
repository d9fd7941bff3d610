"""Floor 3: what a rewrite rule is: two functions of the same values, and a guard.

One idea: a pattern is a function, and tracing it gives the equations that it stands
for. It is traced once on sample types, to know where to look, and again on the types
that were found there, so a rule holds for every shape and dtype for which both
functions mean the same::

    @rewrite(lambda x: log(1.0 + x))
    def log1p_of(x):
        return log1p(x)

Positional arguments of the pattern are its variables. Arguments with a default stand
for params, such as the axes of a sum; the default is the sample. What may be written in
several ways has other patterns beside the first. A rule for a `whole` equation, such as
a loop of any body, has a sample of it as its pattern: its replacement gets the operands
and the params as they are.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Literal as OneOf, get_args

import numpy as np
from attrs import field, frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import UNKNOWN_SOURCE, Eqn, Jaxpr, Literal, Var
from verax.ir.records import ReprMixin
from verax.ir.text.tokens import aval_of_word
from verax.rules.rows.builder import Builder, Tracer
from verax.rules.rows.row import Engine
from verax.rules.values.conversions import Typed
from verax.rules.values.memo import kept_with, memo
from verax.rules.values.state import Context, current_context, interpreting, widths_of
from verax.transforms.engine.templates import coerce

SAMPLES = ("f32[2,3]", "f32[]")
"""The types on which a pattern is traced, all variables alike, unless it says more."""
TRACES = 1 << 12

type Args = Mapping[str, object]
type Claim = OneOf["bits", "reals", "bound"]
CLAIMS: tuple[str, ...] = get_args(Claim.__value__)


class RewriteError(ValueError):
    """A rewrite rule is wrong; the message names the rule."""

    __module__ = "verax.rewrites"


@frozen(eq=False, repr=False)
class Operand(Typed, ReprMixin):
    """A guard's view of a value for a pattern variable."""

    __module__ = "verax.rewrites"

    aval: ShapedArray
    literal: np.generic | None
    made_by: Eqn | None
    inputs: "Callable[[], tuple[Operand, ...]]" = field(repr=False)

    @property
    def primitive(self) -> str | None:
        """The name of the primitive that computes it; None for inputs and literals."""
        return None if self.made_by is None else self.made_by.primitive.name

    @property
    def operands(self) -> "tuple[Operand, ...]":
        """The operands of the equation that computes it."""
        return self.inputs()


@frozen(eq=False)
class Rewrite:
    """A rewrite rule: what `pattern` computes may be computed as `replacement` does.

    Attributes:
        name: what messages, and the origin of the new equations, call it.
        pattern, replacement: functions of the same variables.
        where: a predicate on `Operand`s, one for each variable, with the params by
            name; the rule applies where it is true.
        types: types of the variables on which the pattern is traced to find where it
            may apply, where those of `SAMPLES` are not what it takes.
        ulps: how far results may differ, in units in the last place, where the
            pattern is computed exactly; 0 promises the same bits.
        domain: the interval of operands for which that holds.
        also: other ways to write the pattern, functions of the same arguments.
        whole: whether the pattern is one equation that stands for all of its
            primitive; guard and replacement take its operands, and `params`.
        weak: operands, scalars or lists of elements, for which the pattern loses
            digits in float32.
        gain: so many digits the replacement has more there, at least.
        claim: what holds in the domain: "bits", the same bits; "reals", the same real
            numbers, of which floats differ by rounding, `ulps` at most; "bound", an
            approximation within `ulps`. Left out, it is "bits" if `ulps` is 0 and else
            "reals". `verax.verify.prove_rewrite` proves it where it can.

    Raises:
        RewriteError: the claim is none of these, or `ulps` contradicts it.
    """

    __module__ = "verax.rewrites"

    name: str
    pattern: Callable[..., object]
    replacement: Callable[..., object]
    where: Callable[..., bool] | None = None
    types: tuple[tuple[str, ...], ...] = ()
    ulps: float = 0.0
    domain: tuple[float, float] = (-np.inf, np.inf)
    also: tuple[Callable[..., object], ...] = ()
    whole: bool = False
    weak: tuple[tuple[object, ...], ...] = ()
    gain: float = 0.0
    claim: Claim = field()

    @claim.default
    def claim_of_ulps(self) -> Claim:
        """What a rule claims that says no more than how far results may differ."""
        return "reals" if self.ulps else "bits"

    @claim.validator
    def claim_makes_sense(self, attribute: object, claim: object) -> None:
        """Refuse what is no claim, and one that `ulps` contradicts."""
        if claim not in CLAIMS:
            raise RewriteError(
                f"rewrite {self.name}: claim must be one of {', '.join(CLAIMS)}, not "
                f"{claim!r}"
            )
        if (claim == "bits") == bool(self.ulps):
            raise RewriteError(
                f"rewrite {self.name}: claim={claim!r} contradicts ulps={self.ulps}; "
                "the same bits differ by 0 ulps, and what differs by rounding or "
                "within a bound says by how many"
            )

    transient: ClassVar[bool] = True

    @cached_property
    def kept(self) -> dict[object, object]:
        """The store of memos for the rule, which is one of a kind: it dies with it."""
        return {}

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables: the pattern's arguments without a default."""
        out = inspect.signature(self.pattern).parameters.values()
        return tuple([p.name for p in out if p.default is p.empty])

    @property
    def patterns(self) -> tuple[Callable[..., Any], ...]:
        """The pattern, and the other ways to write it."""
        return (self.pattern, *self.also)

    @property
    def params(self) -> Mapping[str, object]:
        """The samples of the params: the pattern's arguments with a default."""
        out = inspect.signature(self.pattern).parameters.values()
        return {p.name: p.default for p in out if p.default is not p.empty}

    def __repr__(self) -> str:
        return f"Rewrite({self.name})"

    def samples(self) -> tuple[tuple[ShapedArray, ...], ...]:
        """The types on which the pattern is traced first."""
        count = len(self.variables)
        given = self.types or tuple([(word,) * count for word in SAMPLES])
        for words in given:
            if len(words) != count:
                raise RewriteError(
                    f"rewrite {self.name}: types must have {count} entries, one for "
                    f"each of the variables {', '.join(self.variables)}, not "
                    f"{len(words)}"
                )
        return tuple([tuple([aval_of_word(word) for word in ws]) for ws in given])


def rewrite(
    pattern: Callable[..., object],
    *,
    where: Callable[..., bool] | None = None,
    types: Sequence[Sequence[str]] = (),
    ulps: float = 0.0,
    domain: tuple[float, float] = (-np.inf, np.inf),
    claim: Claim | None = None,
    name: str | None = None,
    also: Sequence[Callable[..., object]] = (),
    whole: bool = False,
    weak: Sequence[Sequence[object]] = (),
    gain: float = 0.0,
) -> Callable[[Callable[..., Any]], Rewrite]:
    """Makes a rule of the function below it, which replaces `pattern`.

    Both functions take the same variables, and both may return one array or a tuple.
    The rule has the name of the function; see `Rewrite` for the other arguments.

    >>> import verax
    >>> @rewrite(lambda x: -(-x))
    ... def double_negation(x):
    ...     return x
    >>> double_negation
    Rewrite(double_negation)
    >>> double_negation.claim
    'bits'
    """

    def decorated(replacement: Callable[..., object]) -> Rewrite:
        return Rewrite(
            name or str(getattr(replacement, "__name__", "rewrite")),
            pattern,
            replacement,
            where,
            tuple([tuple(words) for words in types]),
            ulps,
            domain,
            tuple(also),
            whole,
            tuple([tuple(operands) for operands in weak]),
            gain,
            *(() if claim is None else (claim,)),
        )

    return decorated


@frozen(eq=False, repr=False)
class Pattern(ReprMixin):
    """A traced pattern: its equations, and which of them makes which variable."""

    function: Callable[..., object]
    jaxpr: Jaxpr
    eqns: tuple[Eqn, ...]
    made: Mapping[int, tuple[Eqn, int]]
    anchor: Eqn

    @property
    def outputs(self) -> tuple[Var, ...]:
        return tuple([a for a in self.jaxpr.outvars if isinstance(a, Var)])


def traced(
    function: Callable[..., object], args: Sequence[ShapedArray | Literal], params: Args
) -> tuple[Builder, Sequence[object]]:
    """Traces a function of values, and what it returns; literals have a value."""
    builder = Builder("a rewrite rule", source=UNKNOWN_SOURCE)
    tracers = [
        Tracer(builder, arg) if isinstance(arg, Literal) else builder.input(arg)
        for arg in args
    ]
    dtypes = [tracer.aval.dtype for tracer in tracers]
    wide = current_context().enable_x64
    with interpreting(builder), widths_of(dtypes, wide):
        out = function(*tracers, **params)
    return builder, out if isinstance(out, tuple | list) else (out,)


def pattern_of(
    rule: Rewrite,
    function: Callable[..., object],
    avals: Sequence[ShapedArray],
    params: Args,
) -> Pattern:
    """One of the rule's patterns on operands of these types.

    Raises:
        RewriteError: an output of the pattern is not a result of an equation.
        Exception: whatever the function raises on these types.
    """
    builder, outs = traced(function, avals, params)
    jaxpr, _ = builder.finish(outs)
    eqns = live_equations(jaxpr)
    made = {var.index: (eqn, i) for eqn in eqns for i, var in enumerate(eqn.outvars)}
    places = [a.index for a in jaxpr.outvars if isinstance(a, Var) and a.index in made]
    if not places or len(places) < len(jaxpr.outvars):
        raise RewriteError(
            f"rewrite {rule.name}: the pattern returns a variable or a constant as it "
            "is; every output must be computed by an operation"
        )
    for var, name in zip(jaxpr.invars, rule.variables, strict=True):
        if not any(var in eqn.invars for eqn in eqns):
            raise RewriteError(
                f"rewrite {rule.name}: the pattern does not use its variable {name}"
            )
    return Pattern(function, jaxpr, eqns, made, made[max(places)][0])


def live_equations(jaxpr: Jaxpr) -> tuple[Eqn, ...]:
    """The equations that the outputs depend on."""
    read = {a.index for a in jaxpr.outvars if isinstance(a, Var)}
    live: list[Eqn] = []
    for eqn in reversed(jaxpr.eqns):
        if any(var.index in read for var in eqn.outvars):
            live.append(eqn)
            read.update([a.index for a in eqn.invars if isinstance(a, Var)])
    return tuple(live[::-1])


def skeletons_of(rule: Rewrite) -> tuple[Pattern, ...]:
    """`skeletons`, found again where that was asked before."""
    return kept_with(rule, skeletons, current_context(), rule)


@memo(TRACES)
def skeletons(context: Context, rule: Rewrite) -> tuple[Pattern, ...]:
    """The patterns on their sample types, one for each set of equations they have.

    Raises:
        RewriteError: the pattern cannot be traced on any of them, or is not a pattern.
    """
    out: dict[tuple[object, ...], Pattern] = {}
    errors: list[Exception] = []
    for function, avals in product(rule.patterns, rule.samples()):
        try:
            pattern = pattern_of(rule, function, avals, rule.params)
        except RewriteError:
            raise
        except (TypeError, ValueError) as error:
            errors.append(error)
            continue
        if rule.whole and len(pattern.eqns) > 1:
            raise RewriteError(
                f"rewrite {rule.name}: the pattern of a whole equation must be one "
                f"operation, but has {len(pattern.eqns)} equations"
            )
        eqns = [(e.primitive, len(e.invars)) for e in pattern.eqns]
        shape = (function, *eqns)
        out.setdefault(shape, pattern)
    if not out:
        raise RewriteError(
            f"rewrite {rule.name}: the pattern cannot be traced on any of its sample "
            f"types ({errors[0]}); pass types= that it accepts"
        ) from errors[0]
    for name in rule.params:
        if not any(sources(rule, pattern, name) for pattern in out.values()):
            raise RewriteError(
                f"rewrite {rule.name}: no equation of the pattern has a param equal "
                f"to the sample {name}={rule.params[name]!r}; write it as in the "
                "equation, such as axes=(1,) for a sum"
            )
    return tuple(out.values())


def sources(rule: Rewrite, pattern: Pattern, name: str) -> list[tuple[Eqn, str]]:
    """The equations of a traced pattern, and their fields, that hold a param."""
    sample = rule.params[name]
    return [
        (eqn, key)
        for eqn in pattern.eqns
        for key in getattr(type(eqn.params), "__slots__", ())
        if not key.startswith("_") and same(getattr(eqn.params, key, None), sample)
    ]


def same(value: object, sample: object) -> bool:
    return type(value) is type(sample) and value == sample


@memo(TRACES)
def retraced(
    context: Context,
    rule: Rewrite,
    function: Callable[..., object],
    avals: tuple[ShapedArray, ...],
    params: tuple[tuple[str, object], ...],
) -> Pattern | None:
    """The pattern on the types that were found; None if it does not take them."""
    try:
        return pattern_of(rule, function, avals, dict(params))
    except (TypeError, ValueError):
        return None


@memo(TRACES)
def replacement_of(
    context: Context,
    engine: Engine,
    rule: Rewrite,
    args: tuple[ShapedArray | Literal, ...],
    params: tuple[tuple[str, object], ...],
    expected: tuple[ShapedArray, ...],
) -> Jaxpr:
    """The replacement on operands of these types, or these literals.

    Its inputs are the operands that are not literals.

    Raises:
        RewriteError: its results have not the types of what they replace.
    """
    builder, outs = traced(rule.replacement, args, dict(params))
    atoms = [builder.atom(out) for out in outs]
    given = [a.aval for a in atoms]
    if [a.strong() for a in given] != [a.strong() for a in expected]:
        raise RewriteError(
            f"rewrite {rule.name}: the replacement returns {listed(given)}, but the "
            f"pattern returns {listed(expected)}, on {listed(args)}; make the types "
            "agree, or restrict the rule with where="
        )
    typed = [
        coerce(engine, builder, atom, aval)
        for atom, aval in zip(atoms, expected, strict=True)
    ]
    return builder.close(typed)[0]


def listed(parts: Sequence[object]) -> str:
    return f"({', '.join(map(repr, parts))})"
