"""Floor 2: the arithmetic of symbolic dimensions: polynomials over the integers.

A dimension is a sum of terms with integer coefficients, a term a product of powers of
factors, and a factor a variable or one of floordiv, mod, max and min of dimensions.
Each has a key that orders it, so equal polynomials are written alike::

    b, c = symbolic_shape("b, c")
    (b + c) * 2 - 2 * c      # 2*b
    (4 * b + 2) // 2         # 2*b + 1
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import total_ordering
from typing import Any, ClassVar, NoReturn, Protocol, Self, override

import numpy as np
from attrs import frozen

from verax.ir.avals import ShapedArray, SymbolicSize, larger_size, smaller_size
from verax.ir.dtypes import DType, canonical, int64
from verax.ir.jaxpr import Params
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.row import Engine, Row, Traits, no_flops
from verax.rules.values.array import Array
from verax.rules.values.sizes import InconclusiveDimensionOperation
from verax.rules.values.state import STATE

# -----------------------------------------------------------------------------
# A symbolic dimension as the value of an array.
#
# `x.sum() / x.shape[0]` divides by a number that is known when the program runs: the
# primitive has no operands, and the dimension is its parameter::
#
#     a:~i32[] = dim_as_value[dim=b]


@frozen(repr=False)
class DimParams(Params):
    """The dimension, and the type of its value."""

    dim: SymbolicSize
    dtype: DType
    weak_type: bool


def evaluate_dim(engine: Engine, p: DimParams, xs: Sequence[object]) -> NoReturn:
    raise TypeError(
        f"the symbolic dimension '{p.dim}' has no value until the program that was "
        "exported with it is called"
    )


def lower_dim(
    e: Emitter, p: DimParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    return (e.constant(p.dim, outs[0]),)


dim_as_value_p: Row[DimParams] = Row(
    "dim_as_value",
    DimParams,
    typing=lambda p, avals: (ShapedArray((), p.dtype, p.weak_type),),
    evaluate=evaluate_dim,
    lower=lower_dim,
    # A device knows it no more than NumPy: nothing is compiled to say so.
    hosted=True,
    traits=Traits(flops=no_flops),
)


def dim_as_value(dim: SymbolicSize) -> Array:
    """A symbolic dimension as a scalar, weak as Python's integers are."""
    dtype = canonical(int64, STATE.enable_x64)
    return dim_as_value_p.call(DimParams(dim, dtype, weak_type=True))


def dim_in_dtype(dim: SymbolicSize, dtype: DType) -> Array:
    """A symbolic dimension as a scalar of a dtype."""
    return dim_as_value_p.call(DimParams(dim, dtype, weak_type=False))


ROWS = (dim_as_value_p,)


type Size = "SymbolicDim | int"
type Terms = Mapping["Term", int]
type Bounds = tuple[float, float]
FLOORDIV, MOD, MAX, MIN = "floordiv", "mod", "max", "min"


class Scope(Protocol):
    """A dimension's view of its scope, which knows the assumptions about variables."""

    @property
    def constraints(self) -> tuple[Any, ...]: ...
    def normalized(self, terms: Terms) -> Terms: ...
    def bounds(self, dim: "SymbolicDim") -> Bounds: ...
    def inconclusive(self, question: str, less: "SymbolicDim") -> Exception: ...
    def check_same(self, other: object, dim: "SymbolicDim") -> None: ...


class Keyed:
    """Equal, hashed and ordered by `key`: a tuple of sizes, names and keys."""

    __slots__ = ("code", "key")
    transient: ClassVar[bool] = False
    key: tuple[Any, ...]

    def __init__(self, key: tuple[object, ...]) -> None:
        self.key = key
        self.code = hash(key)

    @override
    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is type(self) and other.key == self.key)

    def __lt__(self, other: Self) -> bool:
        return self.key < other.key

    @override
    def __hash__(self) -> int:
        return self.code


@total_ordering
class Factor(Keyed):
    """A variable, or an operation on two dimensions."""

    __slots__ = ("name", "operands")

    def __init__(self, name: str, *operands: "Size") -> None:
        self.name = name
        self.operands = operands
        keys = tuple(map(key_of, operands))
        super().__init__((1 + sum([key[0] for key in keys]), bool(keys), name, keys))

    @override
    def __repr__(self) -> str:
        if not self.operands:
            return self.name
        return f"{self.name}({', '.join(map(str, self.operands))})"

    def variables(self) -> set[str]:
        """The variables inside."""
        if not self.operands:
            return {self.name}
        return set().union(*[variables(x) for x in self.operands])

    def evaluate(self, env: Mapping[str, object]) -> Any:
        """The value where the variables have those of `env`."""
        if not self.operands:
            return env[self.name]
        return OPERATIONS[self.name](*[evaluate(x, env) for x in self.operands])


@total_ordering
class Term(Keyed):
    """A product of powers of factors; the largest factor comes first."""

    __slots__ = ("powers",)

    def __init__(self, powers: Iterable[tuple[Factor, int]]) -> None:
        self.powers = tuple(sorted(powers, reverse=True))
        keys = tuple([(factor.key, n) for factor, n in self.powers])
        super().__init__((sum([1 + n * key[0] for key, n in keys]), keys))

    @override
    def __repr__(self) -> str:
        parts = [f"{f}^{n}" if n > 1 else str(f) for f, n in reversed(self.powers)]
        return "*".join(parts)

    @property
    def factor(self) -> Factor | None:
        """The factor, if the term is one."""
        if len(self.powers) == 1 and self.powers[0][1] == 1:
            return self.powers[0][0]
        return None

    def variables(self) -> set[str]:
        """The variables inside."""
        return set().union(*[factor.variables() for factor, _ in self.powers])

    def __mul__(self, other: "Term") -> "Term":
        if not self.powers or not other.powers:
            return self if self.powers else other
        powers = dict(self.powers)
        for factor, n in other.powers:
            powers[factor] = powers.get(factor, 0) + n
        return Term(powers.items())

    def over(self, other: "Term") -> "Term | None":
        """The quotient, if `other` divides this term."""
        powers = dict(self.powers)
        for factor, n in other.powers:
            left = powers.get(factor, 0) - n
            if left < 0:
                return None
            powers[factor] = left
        return Term([(factor, n) for factor, n in powers.items() if n])


ONE = Term(())


class SymbolicDim(SymbolicSize):
    """A size that is a polynomial in variables, which stand for sizes of 1 or more.

    Where an operation knows the answer for all values of the variables it is that, as
    an int or a bool; a comparison that depends on them raises. With an array, or a
    number that is not an integer, an operation makes an array.
    """

    __module__ = "verax.export"
    __slots__ = ("code", "scope", "terms")
    __array_ufunc__ = None

    terms: tuple[tuple[Term, int], ...]
    scope: Scope

    def __init__(self, terms: Terms, scope: Scope) -> None:
        self.terms = tuple(sorted(terms.items(), reverse=True))
        self.scope = scope
        # Python's hashes of -1 and -2 are equal, and such dimensions often meet.
        odd = tuple([(term, 2 * n + 1) for term, n in self.terms])
        self.code = hash((odd, id(scope)))

    @override
    def __hash__(self) -> int:
        return self.code

    @override
    def __repr__(self) -> str:
        text = "".join([term_text(term, n) for term, n in self.terms])
        return text.removeprefix(" + ").removeprefix(" ")

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"the symbolic dimension {self} belongs to this process alone")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    @override
    def __jax_array__(self) -> Any:
        return dim_as_value(self)

    @override
    def in_dtype(self, dtype: DType) -> Any:
        return dim_in_dtype(self, dtype)

    def __index__(self) -> NoReturn:
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension '{self}' used in a context that requires a constant: "
            "range, an index of a list, or a size that the program must know"
        )

    __int__ = __index__

    def __bool__(self) -> bool:
        return not equal(self, 0)

    def __add__(self, other: object) -> Any:
        return binary(self, other, operator.add, plus)

    def __radd__(self, other: object) -> Any:
        return binary(other, self, operator.add, plus)

    def __sub__(self, other: object) -> Any:
        return binary(self, other, operator.sub, minus)

    def __rsub__(self, other: object) -> Any:
        return binary(other, self, operator.sub, minus)

    def __mul__(self, other: object) -> Any:
        return binary(self, other, operator.mul, times)

    def __rmul__(self, other: object) -> Any:
        return binary(other, self, operator.mul, times)

    def __floordiv__(self, other: object) -> Any:
        return binary(self, other, operator.floordiv, lambda x, y: divided(x, y)[0])

    def __rfloordiv__(self, other: object) -> Any:
        return binary(other, self, operator.floordiv, lambda x, y: divided(x, y)[0])

    def __mod__(self, other: object) -> Any:
        return binary(self, other, operator.mod, lambda x, y: divided(x, y)[1])

    def __rmod__(self, other: object) -> Any:
        return binary(other, self, operator.mod, lambda x, y: divided(x, y)[1])

    def __divmod__(self, other: object) -> Any:
        return binary(self, other, divmod, divided)

    def __rdivmod__(self, other: object) -> Any:
        return binary(other, self, divmod, divided)

    def __truediv__(self, other: object) -> Any:
        return operator.truediv(dim_as_value(self), as_operand(other))

    def __rtruediv__(self, other: object) -> Any:
        return operator.truediv(as_operand(other), dim_as_value(self))

    def __pow__(self, other: object, modulo: None = None) -> Any:
        return power(self, other)

    def __rpow__(self, other: object) -> Any:
        return operator.pow(as_operand(other), dim_as_value(self))

    def __neg__(self) -> Size:
        return times(self, -1)

    def __pos__(self) -> Size:
        return self

    def __abs__(self) -> Size:
        return extreme(MAX, self, times(self, -1))

    def __eq__(self, other: object) -> Any:
        if self is other:
            return True
        size = as_size(other)
        if size is None:
            return False if not hasattr(other, "dtype") else as_operand(self) == other
        return equal(self, size)

    def __ne__(self, other: object) -> Any:
        out = self == other
        return not out if isinstance(out, bool) else as_operand(self) != other

    def __ge__(self, other: object) -> Any:
        return binary(self, other, operator.ge, lambda x, y: at_least(x, y, 0))

    def __gt__(self, other: object) -> Any:
        return binary(self, other, operator.gt, lambda x, y: at_least(x, y, 1))

    def __le__(self, other: object) -> Any:
        return binary(self, other, operator.le, lambda x, y: at_least(y, x, 0, "<="))

    def __lt__(self, other: object) -> Any:
        return binary(self, other, operator.lt, lambda x, y: at_least(y, x, 1, "<"))

    @override
    def maximum(self, other: object) -> Any:
        """The larger of two sizes, without deciding which that is."""
        return binary(self, other, max, lambda x, y: extreme(MAX, x, y))

    @override
    def minimum(self, other: object) -> Any:
        """The smaller of two sizes."""
        return binary(self, other, min, lambda x, y: extreme(MIN, x, y))

    @override
    def evaluated(self, env: Mapping[str, object]) -> Any:
        """The size where the variables have the values of `env`."""
        return evaluate(self, env)

    @override
    def variables(self) -> set[str]:
        """The names of the variables inside."""
        return variables(self)


def term_text(term: Term, n: int) -> str:
    """A term with its sign and coefficient, as it stands in a sum."""
    sign, size = (" - ", -n) if n < 0 else (" + ", n)
    if not term.powers:
        return f"{sign}{size}"
    return f"{sign}{term}" if size == 1 else f"{sign}{size}*{term}"


def key_of(x: Size) -> tuple[Any, ...]:
    """The key that orders dimensions, integers included."""
    terms = x.terms if isinstance(x, SymbolicDim) else ((ONE, x),)
    keys = tuple([(term.key, n) for term, n in terms])
    return (sum([1 + key[0] for key, _ in keys]), keys)


def as_size(x: object) -> Size | None:
    """An integer or a dimension; None for arrays and all other things."""
    if isinstance(x, SymbolicDim) or type(x) is int:
        return x
    if isinstance(x, bool | int | np.integer):
        return int(x)
    if isinstance(x, np.ndarray) and not x.shape and x.dtype.kind in "iu":
        return int(x)
    return None


def as_operand(x: object) -> object:
    """The operand for `x` in operations on arrays."""
    if isinstance(x, SymbolicDim):
        return dim_as_value(x)
    return x


def binary(
    x: object,
    y: object,
    on_arrays: Callable[[Any, Any], object],
    on_sizes: Callable[[Size, Size], object],
) -> object:
    """An operation on sizes, or else on the arrays that they are."""
    one, other = as_size(x), as_size(y)
    if one is None or other is None:
        return on_arrays(as_operand(x), as_operand(y))
    if isinstance(one, SymbolicDim) and isinstance(other, SymbolicDim):
        one.scope.check_same(other.scope, other)
    return on_sizes(one, other)


def scope_of(*sizes: Size) -> Scope:
    """The scope of the first of `sizes` that is not an integer."""
    return next(x.scope for x in sizes if isinstance(x, SymbolicDim))


def terms_of(x: Size) -> dict[Term, int]:
    """The coefficients of a dimension."""
    if isinstance(x, SymbolicDim):
        return dict(x.terms)
    return {ONE: x} if x else {}


def dimension(terms: Terms, scope: Scope) -> Size:
    """The dimension of these coefficients: an int where no variable is left."""
    out = {term: n for term, n in scope.normalized(terms).items() if n}
    if not out:
        return 0
    if len(out) == 1 and ONE in out:
        return out[ONE]
    return SymbolicDim(out, scope)


def variable(name: str, scope: Scope) -> Size:
    """The dimension that is one variable."""
    return dimension({Term([(Factor(name), 1)]): 1}, scope)


def of_factor(factor: Factor, scope: Scope) -> Size:
    """The dimension that is one factor."""
    return dimension({Term([(factor, 1)]): 1}, scope)


def variables(x: Size) -> set[str]:
    """The variables of a dimension."""
    if not isinstance(x, SymbolicDim):
        return set()
    return set().union(*[term.variables() for term, _ in x.terms])


def plus(x: Size, y: Size) -> Size:
    if isinstance(x, int) and isinstance(y, int):
        return x + y
    terms = terms_of(x)
    for term, n in terms_of(y).items():
        terms[term] = terms.get(term, 0) + n
    return dimension(terms, scope_of(x, y))


def minus(x: Size, y: Size) -> Size:
    return plus(x, times(y, -1))


def times(x: Size, y: Size) -> Size:
    if isinstance(x, int) and isinstance(y, int):
        return x * y
    terms: dict[Term, int] = {}
    for one, n in terms_of(x).items():
        for other, m in terms_of(y).items():
            term = one * other
            terms[term] = terms.get(term, 0) + n * m
    return dimension(terms, scope_of(x, y))


def power(x: SymbolicDim, exponent: object) -> Any:
    """A dimension to a power; an exponent that is a dimension makes an array.

    Raises:
        ValueError: the exponent is negative or not an integer.
    """
    if isinstance(exponent, SymbolicDim):
        return operator.pow(dim_as_value(x), dim_as_value(exponent))
    n = as_size(exponent)
    if n is None:
        raise ValueError(
            f"Symbolic dimension '{x}' cannot be raised to non-integer powers: "
            f"{exponent!r}"
        )
    assert isinstance(n, int)
    if n < 0:
        raise ValueError(
            f"Symbolic dimension '{x}' cannot be raised to negative powers: {n}"
        )
    out: Size = 1
    for _ in range(n):
        out = times(out, x)
    return out


def bounds_of(x: Size) -> Bounds:
    """The least and the greatest value, as far as the scope can tell."""
    if isinstance(x, int):
        return x, x
    return x.scope.bounds(x)


def equal(x: Size, y: Size) -> bool:
    """Whether two sizes are equal for all values; also False where it depends."""
    if isinstance(x, SymbolicDim) and isinstance(y, SymbolicDim):
        if x.scope is not y.scope:
            return False
        if x.terms == y.terms:
            return True
    return bounds_of(minus(x, y)) == (0, 0)


def at_least(x: Size, y: Size, margin: int, sign: str = ">=") -> bool:
    """Whether `x >= y + margin` for all values of the variables.

    Raises:
        InconclusiveDimensionOperation: it is so for some of them only.
    """
    less = minus(minus(x, y), margin)
    low, high = bounds_of(less)
    if low >= 0:
        return True
    if high < 0:
        return False
    assert isinstance(less, SymbolicDim)
    if sign == ">=":
        question = f"'{x}' {'>' if margin else '>='} '{y}'"
    else:
        question = f"'{y}' {sign} '{x}'"
    raise less.scope.inconclusive(question, less)


def extreme(name: str, x: Size, y: Size) -> Size:
    """The larger or the smaller of two sizes."""
    less = minus(x, y)
    low, high = bounds_of(less)
    if low >= 0:
        return x if name == MAX else y
    if high <= 0:
        return y if name == MAX else x
    first, second = sorted([x, y], key=lambda z: (isinstance(z, int), key_of(z)))
    return of_factor(Factor(name, first, second), scope_of(x, y))


def divided(x: Size, y: Size) -> tuple[Size, Size]:
    """The quotient and remainder, rounded down as Python rounds them.

    Raises:
        ZeroDivisionError: the divisor is 0.
    """
    if isinstance(x, int) and isinstance(y, int):
        return divmod(x, y)
    if y == 0:
        raise ZeroDivisionError(f"the dimension '{x}' is divided by 0")
    scope = scope_of(x, y)
    if isinstance(y, int):
        whole, rest = by_integer(x, y, scope)
    else:
        out = by_monomial(x, y)
        if out is not None:
            return out
        whole, rest = by_terms(x, y)
    if isinstance(rest, int) and isinstance(y, int):
        more, rest = divmod(rest, y)
        return plus(whole, more), rest
    if rest == 0:
        return whole, 0
    low, high = bounds_of(rest)
    smallest = bounds_of(y)[0]
    if low >= 0 and high < smallest:
        return whole, rest
    quotient = of_factor(Factor(FLOORDIV, rest, y), scope)
    remainder = of_factor(Factor(MOD, rest, y), scope)
    return plus(whole, quotient), remainder


def by_integer(x: Size, y: int, scope: Scope) -> tuple[Size, Size]:
    """A dimension divided by an integer: what divides evenly, and what is left."""
    whole: dict[Term, int] = {}
    rest: dict[Term, int] = {}
    for term, n in terms_of(x).items():
        if n % y == 0 or term is ONE or not term.powers:
            whole[term], rest[term] = divmod(n, y)
        else:
            rest[term] = n
    if set(rest) - {ONE} and any(rest[t] for t in rest if t.powers):
        # A constant stays with what it is divided with: (b + 2) // 4.
        constant = terms_of(x).get(ONE, 0)
        if constant % y:
            whole.pop(ONE, None)
            rest[ONE] = constant
    return dimension(whole, scope), dimension(rest, scope)


def by_terms(x: Size, y: "SymbolicDim") -> tuple[Size, Size]:
    """Long division by a polynomial where it leaves nothing; else all is left."""
    lead, leading = y.terms[0]
    whole: Size = 0
    rest = x
    for _ in range(1 + len(terms_of(x)) * len(y.terms)):
        if isinstance(rest, int):
            break
        term, n = rest.terms[0]
        quotient = term.over(lead)
        if quotient is None or n % leading:
            break
        part = dimension({quotient: n // leading}, y.scope)
        whole, rest = plus(whole, part), minus(rest, times(part, y))
    return (whole, 0) if rest == 0 else (0, x)


def by_monomial(x: Size, y: "SymbolicDim") -> tuple[Size, Size] | None:
    """Division by a product: the terms that it divides, if the rest is small enough.

    So (b*n + b - 1) // b is n: of the rest, -1, the quotient is -1 for every b.
    """
    if len(y.terms) != 1 or isinstance(x, int):
        return None
    ((lead, leading),) = y.terms
    whole: dict[Term, int] = {}
    rest: dict[Term, int] = {}
    for term, n in x.terms:
        quotient = None if n % leading else term.over(lead)
        if quotient is None:
            rest[term] = n
        else:
            whole[quotient] = n // leading
    if not whole or bounds_of(y)[0] <= 0:
        return None
    left, part = dimension(rest, y.scope), dimension(whole, y.scope)
    for more in (0, -1):
        small = minus(left, times(y, more))
        if bounds_of(small)[0] >= 0 and bounds_of(minus(small, y))[1] < 0:
            return plus(part, more), small
    return None


OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    FLOORDIV: operator.floordiv,
    MOD: operator.mod,
    MAX: larger_size,
    MIN: smaller_size,
}


def evaluate(x: Size, env: Mapping[str, object]) -> Any:
    """The value of a size where the variables have those of `env`."""
    if not isinstance(x, SymbolicDim):
        return x
    return sum([evaluate_term(term, n, env) for term, n in x.terms])


def evaluate_term(term: Term, n: int, env: Mapping[str, object]) -> Any:
    """The value of one summand: a product of powers, `n` times."""
    product: object = n
    for factor, exponent in term.powers:
        product = product * factor.evaluate(env) ** exponent
    return product
