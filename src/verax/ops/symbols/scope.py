"""Floor 2: the scope of symbolic dimensions: what is assumed of the variables.

Dimensions that meet must be of one scope. An assumption `e1 >= e2` is a fact for
deciding comparisons; an equality is a rewriting as well, of its largest term, so that
dimensions that it makes equal are written alike::

    scope = SymbolicScope(["b >= 2", "mod(b, 4) == 0"])
"""

from collections.abc import Sequence
from math import inf
from typing import Any, ClassVar

from attrs import frozen

from verax.ir.records import ReprMixin
from verax.ops.symbols.bounds import Assumptions, bounds_of_terms, tightened
from verax.ops.symbols.expression import (
    FLOORDIV,
    MOD,
    ONE,
    Bounds,
    Factor,
    Size,
    SymbolicDim,
    Term,
    Terms,
    minus,
    of_factor,
    terms_of,
    times,
)
from verax.ops.symbols.parse import parsed_constraint
from verax.rules.values.memo import pure
from verax.rules.values.sizes import InconclusiveDimensionOperation

# So many rewritings make one dimension normal: each takes its largest term away.
STEPS = 64


@frozen(eq=False, repr=False)
class Constraint(ReprMixin):
    """An assumption: `less` is 0, or else >= 0; `text` is what the user wrote."""

    text: str
    less: SymbolicDim
    equal: bool


@frozen(eq=False, repr=False)
class Rewriting(ReprMixin):
    """An equality, as `n * term == value`."""

    term: Term
    n: int
    value: Terms


class SymbolicScope:
    """Where symbolic dimensions belong together, and what is assumed of them.

    `constraints_str` are strings such as `"a >= b"`, `"a <= 8"` and `"mod(b, 4) == 0"`.

    Raises:
        ValueError: they are not strings that say so, or contradict each other.

    >>> from verax.export import SymbolicScope, symbolic_shape
    >>> a, = symbolic_shape("a", scope=SymbolicScope(["a >= 4"]))
    >>> a >= 3
    True
    """

    __module__ = "verax.export"
    transient: ClassVar[bool] = False

    def __init__(self, constraints_str: Sequence[str] = ()) -> None:
        if isinstance(constraints_str, str):
            raise ValueError(
                "The symbolic constraints should be a sequence of strings, but got "
                f"the string {constraints_str!r}"
            )
        self.constraints: tuple[Any, ...] = ()
        self.rewritings: tuple[Rewriting, ...] = ()
        self.assumed = Assumptions((), {})
        self.complete = False
        for text in constraints_str:
            self.assume(text)
        self.complete = True

    def __repr__(self) -> str:
        lines = [f"\n  {one.text}" for one in self.constraints]
        if not lines:
            return "symbolic scope without constraints"
        return f"symbolic scope with constraints:{''.join(lines)}"

    def assume(self, text: str) -> None:
        """Add a constraint; only while the scope is made."""
        left, sign, right = parsed_constraint(text, self)
        if sign == "<=":
            left, right = right, left
        less, equal = minus(left, right), sign == "=="
        if isinstance(less, int):
            if less < 0 or (equal and less):
                raise ValueError(f"Unsatisfiable explicit constraint: {text}")
            return
        low, high = best_bounds(less)
        if high < 0 or (equal and low > 0):
            alone = bounds_of_terms(terms_of(less), Assumptions((), {}), best=True)
            own = alone is None or alone[1] < 0 or (equal and alone[0] > 0)
            kind = "explicit constraint" if own else "constraint"
            raise ValueError(f"Unsatisfiable {kind}: {text}\nin {self}")
        if low >= 0 and not equal:
            return
        self.constraints += (Constraint(text, less, equal),)
        self.add_facts(less, equal)
        if equal:
            self.rewritings += tuple(rewritings_of(less, self))

    def add_facts(self, less: SymbolicDim, equal: bool) -> None:
        """Use an assumption in decisions: `less` is 0, or at least that."""
        forms = [tightened(dict(less.terms))]
        if equal:
            forms.append(tightened({t: -n for t, n in less.terms}))
        intervals = dict(self.assumed.intervals)
        for form in forms:
            named = [term for term in form if term.powers]
            if len(named) == 1 and abs(form[named[0]]) == 1:
                low, high = intervals.get(named[0], (-inf, inf))
                end = form.get(ONE, 0)
                if form[named[0]] > 0:
                    low = max(low, -end)
                else:
                    high = min(high, end)
                intervals[named[0]] = low, high
        self.assumed = Assumptions((*self.assumed.forms, *forms), intervals)
        # What follows for single terms, rounded to integers, tightens all the rest.
        named = [t for form in self.assumed.forms for t in form if t.powers]
        for term in dict.fromkeys(named):
            found = bounds_of_terms({term: 1}, self.assumed, best=True)
            if found is not None:
                intervals[term] = found
        self.assumed = Assumptions(self.assumed.forms, intervals)

    def normalized(self, terms: Terms) -> Terms:
        """The same sum, with the equalities of the scope used as rewritings."""
        if not self.rewritings:
            return terms
        found = dict(terms)
        for _ in range(STEPS):
            step = next(
                (
                    (term, rest, rule)
                    for term in found
                    for rule in self.rewritings
                    if term.powers
                    and found[term]
                    and not found[term] % rule.n
                    and (rest := term.over(rule.term)) is not None
                ),
                None,
            )
            if step is None:
                break
            term, rest, rule = step
            n = found.pop(term) // rule.n
            for other, m in rule.value.items():
                product = other * rest
                found[product] = found.get(product, 0) + n * m
        return found

    def bounds(self, dim: SymbolicDim) -> Bounds:
        """The least and greatest value of a dimension, so that its sign is known."""
        bounds = kept_bounds if self.complete else bounds_now
        return bounds(dim.terms, self, best=False)

    def inconclusive(self, question: str, less: SymbolicDim) -> Exception:
        """The error for a comparison that the assumptions do not decide."""
        constant = dict(less.terms).get(ONE, 0)
        return InconclusiveDimensionOperation(
            f"Symbolic dimension comparison {question} is inconclusive.\nIt is true "
            f"for some sizes only, in a {self}.\nIf it holds for all sizes that you "
            "mean, say so: symbolic_shape(..., "
            f"constraints=['{minus(less, constant)} >= {-constant}'])"
        )

    def check_same(self, other: object, dim: SymbolicDim) -> None:
        """Raise ValueError unless `other`, the scope of `dim`, is this one."""
        if other is not self:
            raise ValueError(
                f"Invalid mixing of symbolic scopes: expected {self}\nand found for "
                f"'{dim}' (unknown when it was made) {other}\nmake all dimensions that "
                "meet with one call, or pass scope= to symbolic_shape"
            )


type Sorted = tuple[tuple[Term, int], ...]


def bounds_now(terms: Sorted, scope: SymbolicScope, *, best: bool) -> Bounds:
    """The bounds of a dimension under what its scope assumes.

    Raises:
        ValueError: it assumes what cannot be.
    """
    found = bounds_of_terms(dict(terms), scope.assumed, best)
    if found is None:
        raise ValueError(f"Unsatisfiable constraints in a {scope}")
    return found


@pure(1 << 14)
def kept_bounds(terms: Sorted, scope: SymbolicScope, *, best: bool) -> Bounds:
    """`bounds_now` of a scope that is complete.

    The key is not the dimension: whether two are equal may need their bounds.
    """
    return bounds_now(terms, scope, best=best)


def best_bounds(dim: Size) -> Bounds:
    """The least and greatest value of a dimension, as tight as the facts allow.

    >>> from verax.export import symbolic_shape
    >>> a, b = symbolic_shape("a, b", constraints=["a >= b + 2"])
    >>> best_bounds(a - b), best_bounds(a)
    ((2, inf), (3, inf))
    """
    if not isinstance(dim, SymbolicDim):
        return dim, dim
    scope: Any = dim.scope
    bounds = kept_bounds if scope.complete else bounds_now
    return bounds(dim.terms, scope, best=True)


def shared(term: Term, terms: Sequence[Term]) -> bool:
    """Whether another term has a variable of this one."""
    own = term.variables()
    return any(own & other.variables() for other in terms if other is not term)


def rewritings_of(less: SymbolicDim, scope: SymbolicScope) -> list[Rewriting]:
    """The rewritings for `less == 0`: of its largest term that has no coefficient.

    A term whose variables are in other terms too is rewritten only if all are so.
    """
    terms = dict(less.terms)
    named = [t for t in terms if t.powers]
    plain = [t for t in named if abs(terms[t]) == 1 and not shared(t, named)]
    term = max(plain or named)
    n = terms.pop(term)
    sign = 1 if n > 0 else -1
    found = [Rewriting(term, abs(n), {t: -sign * m for t, m in terms.items()})]
    factor = term.factor
    if factor is not None and factor.name == MOD and factor.operands and not terms:
        # What leaves no remainder is the product of its quotient.
        x, y = factor.operands
        product = times(of_factor(Factor(FLOORDIV, x, y), scope), y)
        if isinstance(product, SymbolicDim) and len(product.terms) == 1:
            ((whole, m),) = product.terms
            sign = 1 if m > 0 else -1
            value = {t: sign * k for t, k in terms_of(x).items()}
            found.append(Rewriting(whole, abs(m), value))
    return found
