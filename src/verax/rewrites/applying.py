"""Rules applied to functions and to jaxprs.

One idea: a function is traced, rewritten, and written or computed in place, so that
`apply(rules)` composes with `jit`, `grad` and `vmap` on both sides::

    verax.grad(apply(stable())(f))(x)
"""

from collections.abc import Callable, Iterable
from typing import Any, cast, overload

from attrs import frozen

from verax.api.tracing.apply import ENGINE, apply as apply_jaxpr, observed
from verax.api.tracing.argument_names import describe_arguments
from verax.api.tracing.trace import leaf_avals, trace
from verax.api.tracing.wrapping import wraps
from verax.backend import pytrees
from verax.ir.jaxpr import ClosedJaxpr, Jaxpr
from verax.ir.records import ReprMixin
from verax.rules.values.memo import kept_with, memo
from verax.rules.values.state import Context, current_context
from verax.rules.values.typed import shown
from verax.transforms.patterns.rewrite_rules import Rewrite
from verax.transforms.patterns.rewriting import PASSES, rewritten
from verax.transforms.public import hoist, opened

PROGRAMS = 1 << 10


def apply(rules: Rewrite | Iterable[Rewrite], *, passes: int = PASSES) -> "Applied":
    """The transformation that applies `rules` wherever they hold, until none does.

    Args:
        rules: the rules; where several hold at one place, the first is taken.
        passes: the largest number of passes over the whole program.

    Returns:
        a function of functions, or of jaxprs. What it makes of a function has the same
        arguments and results; a jaxpr becomes a `ClosedJaxpr` of the same types.

    Raises:
        RewriteLoop: when it is used, if the rules never come to an end.
        TypeError: one of them is not a rule.

    >>> import verax, verax.numpy as vnp
    >>> from verax.rewrites import apply, stable
    >>> def f(x): return vnp.log(vnp.sum(vnp.exp(x)))
    >>> x = vnp.array([1000.0, 1000.0])
    >>> float(f(x)), float(apply(stable())(f)(x))
    (inf, 1000.6931762695312)
    """
    given: object = rules
    chosen = tuple(given) if isinstance(given, Iterable) else (given,)
    found: list[Rewrite] = []
    for rule in chosen:
        if not isinstance(rule, Rewrite):
            raise TypeError(
                f"{rule!r} is not a rewrite rule; make one with "
                "verax.rewrites.rewrite, and call a function that returns rules: "
                "apply(stable())"
            )
        found.append(rule)
    return Applied(tuple(found), passes)


@frozen(eq=False, repr=False)
class Applied(ReprMixin):
    """Rules, ready to be applied to functions and jaxprs."""

    rules: tuple[Rewrite, ...]
    passes: int

    @overload
    def __call__(self, program: Jaxpr | ClosedJaxpr) -> ClosedJaxpr: ...
    @overload
    def __call__[**P, R](self, program: Callable[P, R]) -> Callable[P, R]: ...
    def __call__(self, program: object) -> Any:
        if isinstance(program, Jaxpr | ClosedJaxpr):
            return hoist(self.rewritten(opened(program)))
        if not callable(program):
            raise TypeError(
                f"rewrite rules apply to functions and jaxprs, not {shown(program)}"
            )
        return self.function(program)

    def rewritten(self, jaxpr: Jaxpr) -> Jaxpr:
        """The program after the rules."""
        context = current_context()
        return kept_with(jaxpr, remembered, context, jaxpr, self.rules, self.passes)

    def function[**P, R](self, fun: Callable[P, R]) -> Callable[P, R]:
        """The function whose program is rewritten on every call."""

        @wraps(fun)
        def applied(*args: P.args, **kwargs: P.kwargs) -> R:
            leaves, tree = pytrees.flatten((args, kwargs))
            describe = describe_arguments(fun, tree)
            avals = leaf_avals(leaves, describe)
            traced = trace(
                fun, tree, avals, "rewrites.apply", describe=describe, values=leaves
            )
            jaxpr, _ = observed(
                "rewrite", traced.jaxpr, lambda p: (self.rewritten(p), None)
            )
            outs = apply_jaxpr(jaxpr, [*traced.captured, *leaves])
            return cast(R, traced.out_tree.unflatten(outs))

        return applied


@memo(PROGRAMS)
def remembered(
    context: Context, jaxpr: Jaxpr, rules: tuple[Rewrite, ...], passes: int
) -> Jaxpr:
    """`rewritten` by the standard engine, once per program and rules."""
    return rewritten(ENGINE, jaxpr, rules, passes)
