"""Floor 2: symbolic dimensions as strings: `"b, 2*c + 1, floordiv(b, 2)"`.

A recursive descent over the tokens of the string; what it reads is computed by the
operators of dimensions, so a string means what the same text means in Python::

    parsed_shape("b, 2*c", scope)      # (b, 2*c)
"""

import re
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, ClassVar, Final, NoReturn

from attrs import frozen

from verax.ir.avals import Shape, SymbolicSize, larger_size, smaller_size
from verax.ir.records import ReprMixin
from verax.ops.symbols.bounds import Assumptions, bounds_of_terms, tightened
from verax.ops.symbols.expression import (
    FLOORDIV,
    MAX,
    MIN,
    MOD,
    ONE,
    Bounds,
    Factor,
    Scope,
    Size,
    SymbolicDim,
    Term,
    Terms,
    dimension,
    divided,
    evaluate,
    minus,
    of_factor,
    plus,
    terms_of,
    times,
    variable,
    variables,
)
from verax.rules.values.memo import pure
from verax.rules.values.sizes import InconclusiveDimensionOperation

TOKEN: Final = re.compile(r"\s*(\.\.\.|[A-Za-z_]\w*|\d+(?!\w)|[()+*,^-]|$)")
SIGNS: Final = ("==", ">=", "<=")
CALLS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    FLOORDIV: lambda x, y: divided(x, y)[0],
    MOD: lambda x, y: divided(x, y)[1],
    MAX: larger_size,
    MIN: smaller_size,
}


class Reader:
    """Reads one string, from left to right."""

    def __init__(self, text: str, scope: Scope) -> None:
        self.text = text
        self.scope = scope
        self.place = 0
        self.token = ""
        self.advance()

    def fail(self, reason: str) -> NoReturn:
        raise ValueError(f"syntax error in symbolic shape {self.text!r}: {reason}")

    def advance(self) -> str:
        """Go to the next token; the one that was current."""
        old, result = self.token, TOKEN.match(self.text, self.place)
        if result is None:
            self.fail(f"unexpected {self.text[self.place :].strip()!r}")
        self.token, self.place = result[1], result.end()
        return old

    def expect(self, token: str) -> None:
        """Skip a token that must be here."""
        if self.token != token:
            self.fail(f"expected {token or 'the end'!r}, not {self.token!r}")
        self.advance()

    def shape(self, like: Sequence[int | None] | None) -> tuple[Size, ...]:
        """Dimensions with commas between them, in parentheses or not."""
        closing = "" if self.token != "(" or not self.outer() else ")"
        if closing:
            self.advance()
        sizes: list[Size] = []
        while self.token != closing:
            if self.token in ("...", "_"):
                sizes += self.placeholder(len(sizes), like, closing)
            else:
                sizes.append(self.checked(self.sum(), len(sizes), like))
            if self.token != ",":
                break
            self.advance()
        if closing:
            self.expect(closing)
        self.expect("")
        if like is not None and len(sizes) != len(like):
            self.fail(
                f"it has {len(sizes)} dimensions, but 'like' shape has {len(like)}"
            )
        return tuple(sizes)

    def outer(self) -> bool:
        """Whether the parenthesis here closes at the end of the string."""
        depth, stripped = 0, self.text.rstrip()
        for i in range(self.place - 1, len(stripped)):
            depth += {"(": 1, ")": -1}.get(stripped[i], 0)
            if depth == 0:
                return i == len(stripped) - 1
        self.fail("a parenthesis is not closed")

    def placeholder(
        self, place: int, like: Sequence[int | None] | None, closing: str
    ) -> list[Size]:
        """The dimensions of `like` that `_` or `...` stands for."""
        token = self.advance()
        if like is None:
            self.fail(f"no 'like' shape was given for the placeholder {token!r}")
        if token == "..." and self.token == ",":
            self.advance()
        if token == "..." and self.token != closing:
            self.fail("'...' must come last")
        end = len(like) if token == "..." else place + 1
        if place > len(like) or end > len(like):
            self.fail(
                f"cannot resolve the placeholder {token!r} because we parsed {place} "
                f"already and 'like' shape has only {len(like)} dimensions"
            )
        out: list[Size] = []
        for i in range(place, end):
            size = like[i]
            if size is None:
                self.fail(f"dimension {i} of the 'like' shape is None")
            out.append(size)
        return out

    def checked(
        self, size: Size, place: int, like: Sequence[int | None] | None
    ) -> Size:
        """A dimension; one that is an integer must be that of `like`."""
        if like is not None and isinstance(size, int) and place < len(like):
            due = like[place]
            if due is not None and due != size:
                self.fail(f"different size {size} for known dimension {place}, {due}")
        return size

    def sum(self) -> Size:
        """Terms with + and - between them."""
        negative = self.token == "-"
        if self.token in ("+", "-"):
            self.advance()
        total = self.product()
        if negative:
            total = times(total, -1)
        while self.token in ("+", "-"):
            combine = plus if self.advance() == "+" else minus
            total = combine(total, self.product())
        return total

    def product(self) -> Size:
        """Powers with * between them."""
        total = self.power()
        while self.token == "*":
            self.advance()
            total = times(total, self.power())
        return total

    def power(self) -> Size:
        """A factor, to a power that is an integer."""
        base = self.factor()
        if self.token != "^":
            return base
        self.advance()
        if not self.token.isdigit():
            self.fail(f"an exponent must be an integer, not {self.token!r}")
        exponent = int(self.advance())
        out: Size = 1
        for _ in range(exponent):
            out = times(out, base)
        return out

    def factor(self) -> Size:
        """An integer, a variable, an operation or a sum in parentheses."""
        if self.token == "-":
            self.advance()
            return times(self.factor(), -1)
        if self.token.isdigit():
            return int(self.advance())
        if self.token == "(":
            self.advance()
            out = self.sum()
            self.expect(")")
            return out
        name = self.token
        if not name or not (name[0].isalpha() or name[0] == "_") or name == "_":
            self.fail(f"unexpected {name!r}" if name else "unexpected end")
        self.advance()
        if name not in CALLS:
            return variable(name, self.scope)
        self.expect("(")
        first = self.sum()
        self.expect(",")
        second = self.sum()
        self.expect(")")
        out = CALLS[name](first, second)
        assert isinstance(out, int | SymbolicDim)
        return out


def parsed_shape(
    text: str, scope: Scope, like: Sequence[int | None] | None = None
) -> tuple[Size, ...]:
    """The dimensions that a string lists.

    Raises:
        ValueError: it is not a list of dimensions, or does not fit the shape `like`.
    """
    return Reader(text, scope).shape(like)


def parsed_constraint(text: str, scope: Scope) -> tuple[Size, str, Size]:
    """The two sides of a constraint, and the sign between them.

    Raises:
        TypeError, ValueError: it is not a constraint.
    """
    if not isinstance(text, str):
        raise ValueError(
            f"The symbolic constraints should be a sequence of strings, not {text!r}"
        )
    sign = next((sign for sign in SIGNS if sign in text), None)
    if sign is None:
        raise ValueError(
            "Constraint parsing error: must contain one of '==' or '>=' or '<=', but "
            f"found {text!r}"
        )
    sides = []
    for part in text.split(sign, 1):
        reader = Reader(part, scope)
        sides.append(reader.sum())
        reader.expect("")
    return sides[0], sign, sides[1]


# -----------------------------------------------------------------------------
# The scope of symbolic dimensions: what is assumed of the variables.
#
# Dimensions that meet must be of one scope. An assumption `e1 >= e2` is a fact for
# deciding comparisons; an equality is a rewriting as well, of its largest term, so that
# dimensions that it makes equal are written alike::
#
#     scope = SymbolicScope(["b >= 2", "mod(b, 4) == 0"])


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
    """A scope of symbolic dimensions, and the assumptions about them.

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
        self.constraints: tuple[Constraint, ...] = ()
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
            result = bounds_of_terms({term: 1}, self.assumed, best=True)
            if result is not None:
                intervals[term] = result
        self.assumed = Assumptions(self.assumed.forms, intervals)

    def normalized(self, terms: Terms) -> Terms:
        """The same sum, with the equalities of the scope used as rewritings."""
        if not self.rewritings:
            return terms
        out = dict(terms)
        for _ in range(STEPS):
            step = next(
                (
                    (term, rest, rule)
                    for term in out
                    for rule in self.rewritings
                    if term.powers
                    and out[term]
                    and not out[term] % rule.n
                    and (rest := term.over(rule.term)) is not None
                ),
                None,
            )
            if step is None:
                break
            term, rest, rule = step
            n = out.pop(term) // rule.n
            for other, m in rule.value.items():
                product = other * rest
                out[product] = out.get(product, 0) + n * m
        return out

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
    out = bounds_of_terms(dict(terms), scope.assumed, best)
    if out is None:
        raise ValueError(f"Unsatisfiable constraints in a {scope}")
    return out


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
    scope = dim.scope
    assert isinstance(scope, SymbolicScope)
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
    out = [Rewriting(term, abs(n), {t: -sign * m for t, m in terms.items()})]
    factor = term.factor
    if factor is not None and factor.name == MOD and factor.operands and not terms:
        # What leaves no remainder is the product of its quotient.
        x, y = factor.operands
        product = times(of_factor(Factor(FLOORDIV, x, y), scope), y)
        if isinstance(product, SymbolicDim) and len(product.terms) == 1:
            ((whole, m),) = product.terms
            sign = 1 if m > 0 else -1
            value = {t: sign * k for t, k in terms_of(x).items()}
            out.append(Rewriting(whole, abs(m), value))
    return out


# -----------------------------------------------------------------------------
# The values of variables from the sizes of arrays.
#
# A program that was traced on shapes with symbols is called with arrays: each size is
# an equation for its dimension. Those in which one unknown variable stands alone are
# solved one after the other; the rest, and the constraints of the scope, must then
# hold::
#
#     plan = solving_plan(shapes)
#     env = solved(plan, shapes, given, name_of)      # {"b": 3}


@frozen(eq=False, repr=False)
class Step(ReprMixin):
    """A step to a variable: `factor * name + rest` is the size of an axis."""

    name: str
    argument: int
    axis: int
    factor: int
    rest: Size


@frozen(eq=False, repr=False)
class Equation(ReprMixin):
    """A dimension, and the axis of an argument that has its size."""

    dim: Size
    argument: int
    axis: int


@frozen(eq=False, repr=False)
class Plan(ReprMixin):
    """A plan to find the variables of some shapes, and conditions on the sizes."""

    steps: tuple[Step, ...]
    equations: tuple[Equation, ...]
    constraints: tuple[Constraint, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The variables, in the order in which they are found."""
        return tuple([step.name for step in self.steps])


def is_symbolic(shape: Shape) -> bool:
    """Whether a size is a symbol."""
    return any([isinstance(size, SymbolicSize) for size in shape])


def solving_plan(shapes: Sequence[Shape], needed: Sequence[Size] = ()) -> Plan:
    """The plan for arguments of these shapes; `needed` are dimensions beside them.

    Raises:
        ValueError: a variable cannot be found by solving for one at a time, or a
            constraint names one that is in no shape.
    """
    equations = [
        Equation(size, i, axis)
        for i, shape in enumerate(shapes)
        for axis, size in enumerate(shape)
    ]
    dims = [e.dim for e in equations if isinstance(e.dim, SymbolicDim)]
    unknown = set().union(*[variables(dim) for dim in (*dims, *needed)])
    steps: list[Step] = []
    while unknown:
        result = next(filter(None, [step_of(e, unknown) for e in equations]), None)
        if result is None:
            names = ", ".join(sorted(unknown))
            shown = ", ".join([f"({', '.join(map(str, s))})" for s in shapes])
            raise ValueError(
                f"Cannot solve for values of dimension variables {{{names!r}}}: each "
                "must stand alone, times an integer, in a size of an argument, when "
                f"those before it are known; the shapes are {shown}"
            )
        steps.append(result)
        unknown.discard(result.name)
    constraints = dims[0].scope.constraints if dims else ()
    known = {step.name for step in steps}
    for one in constraints:
        if missing := variables(one.less) - known:
            raise ValueError(
                f"Encountered dimension variable {min(missing)!r} that is not "
                "appearing in the shapes of the function arguments: the constraint "
                f"{one.text!r} was assumed, and calls cannot check it"
            )
    return Plan(tuple(steps), tuple(equations), constraints)


def step_of(equation: Equation, unknown: set[str]) -> Step | None:
    """The step that an equation gives, if it has one unknown variable, and linear."""
    dim = equation.dim
    if not isinstance(dim, SymbolicDim) or len(variables(dim) & unknown) != 1:
        return None
    (name,) = variables(dim) & unknown
    terms = terms_of(dim)
    inside = [term for term in terms if name in term.variables()]
    factor = inside[0].factor
    if len(inside) != 1 or factor is None or factor.operands:
        return None
    n = terms.pop(inside[0])
    rest = dimension(terms, dim.scope)
    return Step(name, equation.argument, equation.axis, n, rest)


def specifications(shapes: Sequence[Shape], name_of: Callable[[int], str]) -> str:
    """The shapes with symbols, in a sentence of a message."""
    shown = [
        f"{name_of(i)}.shape = ({', '.join(map(str, shape))})"
        for i, shape in enumerate(shapes)
        if is_symbolic(shape)
    ]
    return f" Using the following polymorphic shapes specifications: {','.join(shown)}."


def solved(
    plan: Plan,
    declared: Sequence[Shape],
    shapes: Sequence[Shape],
    name_of: Callable[[int], str],
) -> Mapping[str, object]:
    """The values of the variables of the declared shapes for arguments of others.

    `name_of(argument)` names an argument in messages.

    Raises:
        ValueError: a size does not fit.
    """
    env: dict[str, object] = {}
    known: list[str] = []
    for step in plan.steps:
        size = shapes[step.argument][step.axis]
        dim = declared[step.argument][step.axis]
        where = f"dimension {name_of(step.argument)}.shape[{step.axis}] (= {size})"
        source = f"from specification '{dim}' for {where}"
        value, left = divmod(size - evaluate(step.rest, env), step.factor)
        if left != 0:
            raise ValueError(
                f"Division had remainder {left} when computing the value of "
                f"'{step.name}' {source}.{specifications(declared, name_of)}"
            )
        known.append(f"'{step.name}' = {value} {source}")
        if not value >= 1:
            raise ValueError(
                f"Expected value >= 1 for dimension variable '{step.name}'."
                f"{specifications(declared, name_of)} Obtained dimension variables: "
                f"{', '.join(known)}"
            )
        env[step.name] = value
    for equation in plan.equations:
        size, due = (
            shapes[equation.argument][equation.axis],
            evaluate(equation.dim, env),
        )
        if size != due:
            raise ValueError(
                "Found inconsistency between dimension size "
                f"{name_of(equation.argument)}.shape[{equation.axis}] (= {size}) and "
                f"the specification '{equation.dim}' (= {due})."
                f"{specifications(declared, name_of)}"
            )
    for one in plan.constraints:
        value = evaluate(one.less, env)
        if not (value == 0 if one.equal else value >= 0):
            relation = "equal" if one.equal else "greater or equal"
            raise ValueError(
                f"Expected '{one.less}' to be {relation} to 0, but found {value}; the "
                f"program was exported with the constraint {one.text}"
            )
    return env
