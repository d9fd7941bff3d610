"""Floor 0: reads a printed jaxpr back, so that text is a second form of a program.

One idea: variables are numbered by their definition, so names are only names; any
distinct ones will do, and what comes out is canonical::

    parse_jaxpr("{ lambda ; x:f32[8]. let y:f32[8] = sin x in (y,) }", {"sin": sin_p})
"""

import ast
from collections.abc import Mapping, Sequence

from attrs import frozen
from pyrsistent import pvector

from verax.ir.atoms import (
    Atom,
    Literal,
    Var,
    array_literal,
    scalar_literal,
    variable,
)
from verax.ir.forms.values import read_params
from verax.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Primitive
from verax.ir.library import Library
from verax.ir.memos import memoised
from verax.ir.meshes import BaseMesh, mesh_known
from verax.ir.promotion import element, scalar_bytes
from verax.ir.records import ReprMixin
from verax.ir.text.tokens import Cursor, Sizes, aval_of_word


def parse_jaxpr(
    text: str,
    primitives: Mapping[str, Primitive] | None = None,
    consts: Sequence[object] = (),
    sizes: Sizes | None = None,
    mesh: BaseMesh | None = None,
) -> Jaxpr:
    """The jaxpr that prints as `text`.

    `primitives` gives the primitives by name, by default those of the library; `consts`
    the array constants that the text calls `const0`, `const1`; `sizes` makes symbolic
    sizes from their text: `lambda s: symbolic_shape(s, scope=scope)[0]`; `mesh` is the
    one whose explicit axes split the types, as in `f32[8@x]`.

    Raises:
        ParseError: the text is not a jaxpr; line, column and what was expected are
            given.

    >>> print(parse_jaxpr("{ lambda ; x:f32[8]. let in (x, 1.0:f32[]) }", {}))
    { lambda ; a:f32[8]. let in (a, 1.0:f32[]) }
    """
    known = Library.primitives if primitives is None else primitives
    reader = Reader(known, tuple(consts))
    cursor = Cursor(text, sizes, None if mesh is None else mesh_known(mesh))
    cursor.expect("{")
    jaxpr = reader.program(cursor)
    if cursor.kind != "end":
        cursor.fail("the end of the text")
    return jaxpr


def parse_closed(
    text: str,
    primitives: Mapping[str, Primitive] | None = None,
    consts: Sequence[object] = (),
    sizes: Sizes | None = None,
    mesh: BaseMesh | None = None,
) -> ClosedJaxpr:
    """The closed jaxpr that prints as `text`: `consts` has the values of its constvars.

    Constants beyond those are called `const0` and so on, as in `parse_jaxpr`.

    Raises:
        ParseError: the text is not a jaxpr, or `consts` are fewer than its constvars.

    >>> closed = parse_closed("{ lambda a:f32[2]; . let in (a,) }", {}, ["value"])
    >>> closed.consts
    ('value',)
    """
    cursor = Cursor(text, sizes, None if mesh is None else mesh_known(mesh))
    cursor.expect("{", "lambda")
    expected = len(binders(cursor))
    if len(consts) < expected:
        cursor.fail(f"values for {expected} constvars, but consts has {len(consts)}", 0)
    jaxpr = parse_jaxpr(text, primitives, consts[expected:], sizes, mesh)
    return ClosedJaxpr(jaxpr, tuple(consts[:expected]))


@frozen(repr=False)
class Binder(ReprMixin):
    """A variable with its type, such as `a:f32[8]`, and where it stands."""

    token: str
    start: int


def binders(cursor: Cursor) -> list[Binder]:
    """All binders that stand here."""
    out = []
    while cursor.kind == "typed":
        out.append(Binder(cursor.token, cursor.start))
        cursor.advance()
    return out


class Scope:
    """The variables of one jaxpr that have been defined so far."""

    def __init__(self) -> None:
        self.names: dict[str, Var] = {}
        self.count = 0

    def define(self, cursor: Cursor, result: Sequence[Binder]) -> tuple[Var, ...]:
        """The variables of these binders, whose names are new."""
        return tuple([self.variable(cursor, binder) for binder in result])

    def variable(self, cursor: Cursor, binder: Binder) -> Var:
        """The variable of one binder."""
        name, _, aval = binder.token.partition(":")
        if not name.isidentifier() or name in self.names:
            cursor.fail(f"a new name for a variable, not {name!r}", binder.start)
        try:
            var = variable(self.count, cursor.aval(aval))
        except ValueError as error:
            cursor.fail(f"a type ({error})", binder.start)
        self.count += 1
        if name != "_":
            self.names[name] = var
        return var


@frozen(repr=False)
class Reader(ReprMixin):
    """Resolves references in a program: primitives by name, arrays by number."""

    primitives: Mapping[str, Primitive]
    consts: tuple[object, ...]

    def program(self, cursor: Cursor) -> Jaxpr:
        """One jaxpr, behind its opening brace."""
        scope = Scope()
        cursor.expect("lambda")
        constvars = scope.define(cursor, binders(cursor))
        cursor.expect(";")
        invars = scope.define(cursor, binders(cursor))
        cursor.expect(".", "let")
        eqns: list[Eqn] = []
        while not (cursor.kind == "word" and cursor.token == "in"):
            eqns.append(self.equation(cursor, scope))
            cursor.accept(";")
        cursor.expect("in", "(")
        outvars: list[Atom] = []
        while not cursor.accept(")"):
            outvars.append(self.atom(cursor, scope))
            if not cursor.at(")"):
                cursor.expect(",")
        cursor.expect("}")
        return Jaxpr(constvars, invars, pvector(eqns), tuple(outvars))

    def equation(self, cursor: Cursor, scope: Scope) -> Eqn:
        """`results = primitive[params] operands`, after which the results exist."""
        results = binders(cursor)
        if results:
            cursor.expect("=")
        primitive = self.primitive(cursor)
        params = read_params(cursor, primitive.params, self.program)
        invars = self.operands(cursor, scope)
        return Eqn(primitive, params, invars, scope.define(cursor, results))

    def primitive(self, cursor: Cursor) -> Primitive:
        """The primitive of the name that stands here."""
        if cursor.kind not in ("word", "string"):
            cursor.fail("an equation or the word 'in'")
        name: str = cursor.token
        if cursor.kind == "string":
            name = ast.literal_eval(name)
        entry = self.primitives.get(name)
        if entry is None:
            cursor.fail("the name of a known primitive")
        cursor.advance()
        return entry

    def operands(self, cursor: Cursor, scope: Scope) -> tuple[Atom, ...]:
        """Operands up to the end of the line, a semicolon or the word `in`."""
        out: list[Atom] = []
        while not cursor.fresh and cursor.kind in ("word", "typed", "number"):
            if cursor.token == "in" and ends_equations(cursor):
                break
            out.append(self.atom(cursor, scope))
        return tuple(out)

    def atom(self, cursor: Cursor, scope: Scope) -> Atom:
        """A variable or a literal."""
        token = cursor.token
        if cursor.kind == "word" or token in ("inf", "nan"):  # also names of variables
            var = scope.names.get(token)
            if var is None:
                cursor.fail("a variable that is defined above")
            cursor.advance()
            return var
        if cursor.kind != "typed":
            cursor.fail("a variable, or a literal with its type such as 3.0:f32[]")
        text, _, aval = token.partition(":")
        try:
            literal = self.const(text[5:], aval) if text[:5] == "const" else None
            literal = literal or scalar(text, aval)
        except (ValueError, OverflowError, IndexError) as error:
            cursor.fail(f"a literal ({error})")
        cursor.advance()
        return literal

    def const(self, number: str, aval: str) -> Literal:
        """The literal of the array constant of this number."""
        if int(number) >= len(self.consts):
            raise IndexError(f"there are {len(self.consts)} consts")
        return array_literal(self.consts[int(number)], aval_of_word(aval))


def ends_equations(cursor: Cursor) -> bool:
    """Whether the word `in` is the keyword: a variable is not followed by a bracket."""
    return cursor.text[cursor.next :].lstrip()[:1] == "("


@memoised
def scalar(text: str, aval: str) -> Literal:
    """The literal of a scalar with its type."""
    kind = aval_of_word(aval)
    return scalar_literal(element(scalar_bytes(text, kind.dtype), kind.dtype), kind)
