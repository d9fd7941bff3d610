"""Rules for derivatives, from rules for values.

One idea: where a pattern may be replaced, so may its derivative by that of the
replacement, since differentiating a program writes the same equations wherever the
pattern stands. So each rule gives others, by differentiating both sides::

    log(sum(exp(x)))          ->  logsumexp(x)
    ct / sum(exp(x)) * exp(x)  ->  the cotangent of logsumexp(x)
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

from attrs import evolve

from verax.api.autodiff.jvp_vjp import jvp, vjp
from verax.ir.dtypes import is_inexact
from verax.rules.values.memo import kept_with, memo
from verax.rules.values.state import Context, current_context
from verax.transforms.patterns.rewrite_rules import (
    Operand,
    Rewrite,
    RewriteError,
    skeletons_of,
)

type Along = Callable[[Callable[..., object], list[object], list[object]], object]
"""The derivative of a function at some operands, and what is pushed or pulled."""

RULES = 1 << 10


def slopes_of(rules: Sequence[Rewrite]) -> tuple[Rewrite, ...]:
    """The rules for cotangents and tangents that rules for values give."""
    context = current_context()
    return tuple([r for rule in rules for r in kept_with(rule, slopes, context, rule)])


@memo(RULES)
def slopes(context: Context, rule: Rewrite) -> tuple[Rewrite, ...]:
    """The rules for cotangents and tangents that a rule gives, those that can be."""
    if rule.whole:
        return ()
    return tuple([r for r in derived(rule) if is_pattern(r)])


def is_pattern(rule: Rewrite) -> bool:
    """Whether both sides can be differentiated, and every operand counts."""
    try:
        return bool(skeletons_of(rule))
    except (RewriteError, NotImplementedError):
        return False


def derived(rule: Rewrite) -> Iterator[Rewrite]:
    """The derivatives of both sides by each choice of variables."""
    names = rule.variables
    first = skeletons_of(rule)[0]
    floating = [i for i, a in enumerate(first.jaxpr.in_avals) if is_inexact(a.dtype)]
    for count in range(1, len(floating) + 1):
        for which in combinations(floating, count):
            parts = [names[i] for i in which] if len(names) > 1 else []
            yield differentiated(rule, which, ["backward", *parts], pulled, ("ct",))
            tangents = tuple([f"t{names[i]}" for i in which])
            yield differentiated(rule, which, ["forward", *parts], pushed, tangents)


def pulled(
    function: Callable[..., object], moving: list[object], given: list[object]
) -> Any:
    """The cotangents of the operands."""
    return tuple(vjp(function, *moving)[1](*given))


def pushed(
    function: Callable[..., object], moving: list[object], given: list[object]
) -> Any:
    """The tangent of the result."""
    return jvp(function, tuple(moving), tuple(given))[1]


def differentiated(
    rule: Rewrite,
    which: tuple[int, ...],
    parts: Sequence[str],
    along: Along,
    given: tuple[str, ...],
) -> Rewrite:
    """The rule that has the derivatives of both sides, by some of its variables."""
    names = (*rule.variables, *given)

    def slope(function: Callable[..., object]) -> Callable[..., Any]:
        def derivative(*args: object, **params: object) -> Any:
            count = len(rule.variables)
            operands = list(args[:count])

            def of(*moving: object) -> Any:
                for i, x in zip(which, moving, strict=True):
                    operands[i] = x
                return function(*operands, **params)

            return along(of, [operands[i] for i in which], list(args[count:]))

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        own = [inspect.Parameter(name, kind) for name in names]
        own += [
            inspect.Parameter(name, kind, default=x) for name, x in rule.params.items()
        ]
        derivative.__dict__["__signature__"] = inspect.Signature(own)
        return derivative

    def where(*operands: Operand, **params: object) -> bool:
        known = operands[: len(rule.variables)]
        return rule.where is None or rule.where(*known, **params)

    types = []
    for pattern in skeletons_of(rule):
        ins, outs = pattern.jaxpr.in_avals, pattern.jaxpr.out_avals
        more = outs if along is pulled else [ins[i] for i in which]
        types.append(tuple([str(a) for a in (*ins, *more)]))
    first, *others = [slope(function) for function in rule.patterns]
    return evolve(
        rule,
        name="_".join([rule.name, *parts]),
        pattern=first,
        also=tuple(others),
        replacement=slope(rule.replacement),
        where=where,
        types=tuple(dict.fromkeys(types)),
        weak=(),
        gain=0.0,
    )
