"""Floor 6: proofs of the derivatives and transposes of elementwise rows.

One idea: a row's `jvp` is evaluated on symbols and compared with the derivative of the
row's closed form, for all real numbers or, where nothing simpler will do, at points::

    prove_jvp(tanh_p)                      # t * (1 - y*y): proved
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from inspect import signature
from itertools import islice
from typing import Any, Final

from attrs import evolve

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import (
    bool_,
    complex128,
    float64,
    is_complex,
    is_inexact,
)
from verax.ir.jaxpr import NO_PARAMS, Jaxpr, NoParams, Primitive
from verax.ops.special.erf_gamma import NoDerivative
from verax.rules.rows.row import MissingRule, SomeRow
from verax.rules.values.conversions import NotLinear
from verax.transforms.engine.engine import StandardEngine, as_typed
from verax.verify.cases.case import double_precision
from verax.verify.checking.check import Rules, engine_of, row_of
from verax.verify.checking.check_rewrites import (
    program_of,
)
from verax.verify.checking.closed_forms import (
    FORMS,
    REAL,
    ClosedForm,
    Expression,
    Piece,
)
from verax.verify.checking.equality import (
    Counterexample,
    Outcome,
    Pair,
    Proof,
    decided,
    named,
    points,
    weaker,
)
from verax.verify.checking.symbols import (
    NoClosedForm,
    Symbolic,
    expression,
    objects,
    symbolic,
    sympy,
)

VALUES: Final = 6
"""At so many points of each piece a closed form is compared with `evaluate`."""
CLOSE: Final = 1e-8


def prove_jvp(
    primitive: Primitive | str,
    form: Callable[..., object] | None = None,
    *,
    pieces: Sequence[Piece] = (),
    rules: Rules = None,
) -> Proof:
    """Proves the derivative of an elementwise row from the function that it computes.

    The row's `jvp` on symbols is shown to be the derivative of its closed form, in each
    real operand and on each piece of the domain; at some points the closed form is
    compared with `evaluate`, too. Numbers are real: of rounding, of infinities and of
    what happens at kinks the laws `jvp`, `special` and `digits` know more.

    Args:
        primitive: an elementwise row without params, or the name of one of the library.
        form: the function of SymPy's expressions that it computes; left out, that of
            the library's row of this name.
        pieces: where it is smooth: functions from parameters to the operands. Those
            called p, q or r are positive, m and n positive integers, others real; left
            out, all real numbers.
        rules: the table that has the row.

    Raises:
        ModuleNotFoundError: SymPy is not installed; the extra `verify` has it.
        ValueError: no closed form is known, or the row has params.

    >>> from verax.lax import asin_p, tanh_p
    >>> prove_jvp(tanh_p).status, prove_jvp(asin_p).status
    ('proved', 'proved')
    """
    return proved_column(primitive, "jvp", form, pieces, rules, jvp_pairs)


def prove_transpose(
    primitive: Primitive | str,
    form: Callable[..., object] | None = None,
    *,
    pieces: Sequence[Piece] = (),
    rules: Rules = None,
) -> Proof:
    """Proves the transpose of an elementwise row: Re(ct F v) = Re(F' ct v) for all v.

    Args and errors are those of `prove_jvp`; F is the derivative of the closed form in
    one operand that the row is linear in.

    >>> from verax.lax import mul_p
    >>> prove_transpose(mul_p).status
    'proved'
    """
    return proved_column(primitive, "transpose", form, pieces, rules, transpose_pairs)


type Column = Callable[
    [Symbolic, SomeRow, ClosedForm, Sequence[Expression]], Iterator[Pair]
]


def proved_column(
    primitive: Primitive | str,
    column: str,
    form: Callable[..., object] | None,
    pieces: Sequence[Piece],
    rules: Rules,
    pairs: Column,
) -> Proof:
    """The proof of a column by pairs of expressions that should be equal."""
    sympy()
    engine = engine_of(rules)
    row = engine.rules[row_of(primitive)]
    closed = closed_form(row, form, pieces)
    if not row.has(column):
        raise ValueError(f"{row.name} has no {column} of its own, so nothing to prove")
    table = symbolic(engine, {row.name: closed.form})
    out = Outcome("proved", "normal form")
    with double_precision():
        for piece in closed.pieces:
            operands = [*map(expression, piece(*parameters(piece)))]
            wrong = other_values(engine, row, closed, operands)
            if wrong is not None:
                note = "the closed form is not what the row computes"
                return Proof(row.name, column, "refuted", "search", wrong, note)
            try:
                one = decided(list(pairs(table, row, closed, operands)))
            except NoClosedForm as error:
                one = Outcome("tested", "search", note=f"no closed form: {error}")
            if column == "jvp":
                one = weaker(one, of_other_operands(engine, row, closed, operands))
            out = weaker(out, one)
            if out.status == "refuted":
                break
    return named(out, row.name, column)


def closed_form(
    row: SomeRow, form: Callable[..., object] | None, pieces: Sequence[Piece]
) -> ClosedForm:
    """The closed form of a row: what was passed, or the library's own.

    Raises:
        ValueError: there is none.
    """
    if row.params is not NoParams or not row.traits.elementwise:
        raise ValueError(
            f"proofs are for elementwise rows without params, and {row.name} is none; "
            "verify.check_primitive tries it on generated calls"
        )
    known = FORMS.get(row.name)
    if form is not None:
        count = len(signature(form).parameters)
        if not pieces and count != 1:
            raise ValueError(
                f"the form of {row.name} has {count} operands; pass pieces=, functions "
                "that return all of them: [lambda x, p: (x, p)] for a real and a "
                "positive one"
            )
        return ClosedForm(lambda s, *xs: form(*xs), tuple(pieces) or REAL)
    if known is None:
        raise ValueError(
            f"no closed form of {row.name} is known; pass one that SymPy can "
            "differentiate: form=lambda x: sympy.log(sympy.cosh(x))"
        )
    return evolve(known, pieces=tuple(pieces)) if pieces else known


def parameters(piece: Piece) -> Sequence[Expression]:
    """The symbols that the parameters of a piece stand for."""
    s = sympy()
    out = []
    for name in signature(piece).parameters:
        if name in ("p", "q", "r"):
            out.append(s.Symbol(name, positive=True))
        elif name in ("m", "n"):
            out.append(s.Symbol(name, positive=True, integer=True))
        elif name == "i":
            out.append(s.I)
        else:
            out.append(s.Symbol(name, real=True))
    return out


def is_truth(x: object) -> bool:
    """Whether an operand is one of SymPy's truth values."""
    s = sympy()
    return x in (s.true, s.false)


def type_of(x: Expression) -> ShapedArray:
    """The type of a scalar operand that an expression stands for."""
    if is_truth(x):
        return ShapedArray((), bool_)
    return ShapedArray((), complex128 if x.has(sympy().I) else float64)


def call(row: SomeRow, operands: Sequence[Expression]) -> Jaxpr:
    """The program that calls a row without params on scalars."""
    return program_of(partial(row.call, NO_PARAMS), [type_of(x) for x in operands])


def active_operands(
    closed: ClosedForm, operands: Sequence[Expression]
) -> Sequence[int]:
    """The numbers of the operands that have a derivative."""
    if closed.active is not None:
        return closed.active
    return range(len(operands))


def free(like: ShapedArray, name: str) -> object:
    """A symbol for a tangent or cotangent of a type."""
    s = sympy()
    real = s.Symbol(name, real=True)
    if not is_complex(like.dtype):
        return real
    return real + s.I * s.Symbol(f"{name}_i", real=True)


def slope(
    closed: ClosedForm, operands: Sequence[Expression], place: int, t: object
) -> Any:
    """The derivative of a closed form along `t` in one operand.

    Roundings and signs are constant where they have a derivative.
    """
    s = sympy()
    step = s.Dummy("e", real=True)
    moved = list(operands)
    moved[place] = moved[place] + step * t
    value = closed.form(s, *moved)
    kept = {atom: s.Dummy() for atom in value.atoms(s.floor, s.ceiling, s.sign)}
    moving = value.xreplace(kept).diff(step)
    return moving.xreplace({new: old for old, new in kept.items()}).subs(step, 0)


def of_other_operands(
    engine: StandardEngine,
    row: SomeRow,
    closed: ClosedForm,
    operands: Sequence[Expression],
) -> Outcome:
    """What is known of operands in which the closed form is not differentiated."""
    jaxpr = call(row, operands)
    for place, aval in enumerate(jaxpr.in_avals):
        if place in active_operands(closed, operands) or not is_inexact(aval.dtype):
            continue
        try:
            engine.jvp(jaxpr, tuple([i == place for i in range(len(operands))]))
        except NoDerivative:
            continue
        note = f"SymPy has no derivative in operand {place}; in the others it is proved"
        return Outcome("tested", "search", note=note)
    return Outcome("proved", "normal form")


def jvp_pairs(
    table: Symbolic, row: SomeRow, closed: ClosedForm, operands: Sequence[Expression]
) -> Iterator[Pair]:
    """The derivative of the closed form in each operand, and what the row says."""
    jaxpr = call(row, operands)
    for place in active_operands(closed, operands):
        active = tuple([i == place for i in range(len(operands))])
        t = free(type_of(operands[place]), "t")
        program, mask = table.numbers.jvp(jaxpr, active)
        pushed = sympy().Integer(0)
        if any(mask):
            args = [*map(objects, operands), objects(t)]
            pushed = table.evaluate(program, args)[1][()]
        yield from real_parts(slope(closed, operands, place, t), pushed)


def transpose_pairs(
    table: Symbolic, row: SomeRow, closed: ClosedForm, operands: Sequence[Expression]
) -> Iterator[Pair]:
    """Re(ct F v) and Re(F' ct v), for each operand that the row is linear in."""
    s, jaxpr = sympy(), call(row, operands)
    ct = free(jaxpr.out_avals[0], "ct")
    for place in active_operands(closed, operands):
        linear = tuple([i == place for i in range(len(operands))])
        try:
            program, _ = table.numbers.transpose(jaxpr, linear, (True,))
        except (MissingRule, NotLinear):
            continue
        args = [x for x, unknown in zip(operands, linear, strict=True) if not unknown]
        (pulled,) = table.evaluate(program, [*map(objects, args), objects(ct)])
        v = free(type_of(operands[place]), "t")
        pushed = slope(closed, operands, place, v)
        sides = (ct * pushed, pulled[()] * v)
        yield tuple([s.re(s.expand(x, complex=True)) for x in sides])


def real_parts(left: Expression, right: Expression) -> Iterator[Pair]:
    """Pairs of real expressions that say that two are equal."""
    s = sympy()
    if not left.has(s.I, s.conjugate) and not right.has(s.I, s.conjugate):
        yield left, right
        return
    for part in (s.re, s.im):
        yield tuple([part(s.expand(x, complex=True)) for x in (left, right)])


def number(x: Expression, aval: ShapedArray) -> complex:
    """An expression without symbols as a number of a type."""
    return complex(x) if is_complex(aval.dtype) else float(x)


def other_values(
    engine: StandardEngine,
    row: SomeRow,
    closed: ClosedForm,
    operands: Sequence[Expression],
) -> Counterexample | None:
    """Operands for which the row's `evaluate` is not near its closed form, if any."""
    s = sympy()
    value = closed.form(s, *operands)
    jaxpr = call(row, operands)
    symbols = s.Tuple(*operands)
    for point in islice(points(symbols, symbols, None), VALUES):
        args = [
            as_typed(bool(x) if is_truth(x) else number(x, aval), aval)
            for x, aval in zip(symbols.subs(point), jaxpr.in_avals, strict=True)
        ]
        (got,) = engine.evaluate(jaxpr, args)
        due = complex(s.N(value.subs(point), 20))
        if abs(complex(got) - due) > CLOSE * (1 + abs(due)):
            names = {f"operand {i}": x for i, x in enumerate(args)}
            return Counterexample(names, due, got)
    return None
