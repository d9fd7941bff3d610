"""Floor 0: programs as JSON and as bytes, exact to the last bit.

One idea: the document repeats the printed language: types, scalars and params are its
words, and only what text expresses badly (which variable, which inner program, which
array) is a number. Equal programs give equal bytes, whatever the process did before::

    data = dumps(closed)
    loads(data) == closed          # as far as it holds no arrays: those are new objects

An equal jaxpr is written once, however often it is called. Arrays are stored in the
dtype of their type, little-endian. The format has a version; `loading` beside this file
reads it.
"""

import base64
from typing import Final

import numpy as np
from attrs import AttrsInstance, fields, has

from verax.ir.atoms import Atom, Literal, Var, array_literal
from verax.ir.consts import Stored
from verax.ir.dtypes import float0, stored_dtype
from verax.ir.forms.frames import Frame, Json, canonical_json, crc32
from verax.ir.forms.values import classes_in, field_types
from verax.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Source
from verax.ir.memos.memo import memoised
from verax.ir.scalars import scalar_text
from verax.ir.text.printer import (
    Layout,
    Printer,
    Program,
    aval_text,
    flat,
    nickname,
    printed_fields,
    spoken_fields,
)
from verax.ir.text.tokens import plain

FORMAT: Final = "verax-jaxpr"
FRAME: Final = Frame(b"verax-jaxpr\n", 1, "saved program", "verax.ir.dumps", crc32)


class Unsavable(TypeError):
    """A program holds something that cannot be saved, such as a Python function."""

    __module__ = "verax.ir"


def to_json(
    program: Jaxpr | ClosedJaxpr, *, sources: bool = False, indent: int | None = None
) -> str:
    """The program as a JSON text; arrays are base64. `sources` keeps the user's lines.

    Raises:
        Unsavable: an equation holds a Python function or another object without text.

    >>> from verax.ir.jaxpr import empty_jaxpr
    >>> to_json(empty_jaxpr((), ()))[:34]
    '{"consts":[],"format":"verax-jaxpr'
    """
    encoder = Encoder(sources)
    document = encoder.document(as_closed(program))
    document["consts"] = [
        {"type": aval_text(c.aval), "data": base64.b64encode(array_bytes(c)).decode()}
        for c in encoder.held
    ]
    return canonical_json(document, indent)


def dumps(program: Jaxpr | ClosedJaxpr, *, sources: bool = False) -> bytes:
    """The program as bytes: a head with version and checksum, JSON, then the arrays.

    Raises:
        Unsavable: an equation holds a Python function or another object without text.

    >>> from verax.ir.jaxpr import empty_jaxpr
    >>> dumps(empty_jaxpr((), ()))[:11]
    b'verax-jaxpr'
    """
    encoder = Encoder(sources)
    document = encoder.document(as_closed(program))
    document["consts"] = [{"type": aval_text(c.aval)} for c in encoder.held]
    return FRAME.pack(document, [array_bytes(c) for c in encoder.held])


def as_closed(program: Jaxpr | ClosedJaxpr) -> ClosedJaxpr:
    """The program with the values of its constvars.

    Raises:
        TypeError: it is not a program.
        ValueError: a plain jaxpr has constvars, whose values are not known.
    """
    if isinstance(program, ClosedJaxpr):
        return program
    if not isinstance(program, Jaxpr):
        raise TypeError(
            f"expected a Jaxpr or a ClosedJaxpr, not {program!r:.60}; "
            "verax.make_jaxpr(f)(*args) makes one from a function"
        )
    if program.constvars:
        raise ValueError(
            "this jaxpr has constvars but not their values; pass the ClosedJaxpr"
        )
    return ClosedJaxpr(program)


def array_bytes(constant: Literal) -> bytes:
    """The elements of an array constant, in the dtype that its type is stored as."""
    value, dtype = constant.value, constant.aval.dtype
    if dtype == float0:
        return b""
    array = value.stored() if isinstance(value, Stored) else np.asarray(value)
    with np.errstate(all="ignore"):
        return array.astype(stored_dtype(dtype), copy=False).tobytes()


class Encoder(Printer):
    """Writes programs as JSON; params as they are printed, with programs by number."""

    def __init__(self, sources: bool) -> None:
        super().__init__(sources, types=True)
        self.programs: list[Json] = []
        self.known: dict[Jaxpr, int] = {}
        self.held: list[Literal] = []
        self.place: Eqn | None = None

    def document(self, closed: ClosedJaxpr) -> dict[str, Json]:
        """Everything but the arrays, which are in `held` afterwards."""
        pairs = zip(closed.consts, closed.jaxpr.constvars, strict=True)
        consts = [self.constant(array_literal(x, var.aval)) for x, var in pairs]
        main = self.number(closed.jaxpr)
        return {
            "format": FORMAT,
            "version": FRAME.version,
            "main": main,
            "main_consts": list(consts),
            "programs": self.programs,
        }

    def number(self, jaxpr: Jaxpr) -> int:
        """The number of a program, which is written at its first use."""
        found = self.known.get(jaxpr)
        if found is not None:
            return found
        written: Json = {
            "constvars": [aval_text(v.aval) for v in jaxpr.constvars],
            "invars": [aval_text(v.aval) for v in jaxpr.invars],
            "eqns": [self.step(eqn) for eqn in jaxpr.eqns],
            "outvars": [self.operand(a) for a in jaxpr.outvars],
        }
        self.programs.append(written)
        self.known[jaxpr] = len(self.programs) - 1
        return self.known[jaxpr]

    def step(self, eqn: Eqn) -> Json:
        """One equation."""
        written: dict[str, Json] = {
            "primitive": eqn.primitive.name,
            "invars": [self.operand(a) for a in eqn.invars],
            "outvars": [aval_text(v.aval) for v in eqn.outvars],
        }
        params: dict[str, Json] = {}
        self.place = eqn
        self.refuse_unreadable(eqn.params)
        for name in spoken_fields(eqn.params):
            self.place = eqn
            params[name] = flat(self.value(getattr(eqn.params, name)))
        if params:
            written["params"] = params
        if self.sources and eqn.source.code is not None:
            written["source"] = written_source(eqn.source)
        return written

    def operand(self, atom: Atom) -> Json:
        """A variable is its number; a literal is a text, that of an array `const0`."""
        if isinstance(atom, Var):
            return atom.index
        if isinstance(atom.key, bytes):
            text = scalar_text(atom.key, atom.aval.dtype)
        else:
            text = f"const{self.constant(atom)}"
        return f"{text}:{aval_text(atom.aval)}"

    def constant(self, literal: Literal) -> int:
        """The number of an array constant; one object is stored once for each type."""
        for number, held in enumerate(self.held):
            if held == literal:
                return number
        self.held.append(literal)
        return len(self.held) - 1

    def program(self, program: Program) -> str:
        """A program among params: its number, instead of its text."""
        assert isinstance(program, Jaxpr)
        place = self.place
        number = self.number(program)
        self.place = place
        return f"{{ lambda {number} }}"

    def value(self, value: object) -> Layout:
        """The text of a value; a record that is printed in part has none."""
        kind = type(value)
        if has(kind) and not isinstance(value, Program) and plain(value) is None:
            if not whole(kind):
                return self.opaque(value)
            self.refuse_unreadable(value)
        return super().value(value)

    def refuse_unreadable(self, record: object) -> None:
        """Raise if a field holds a record of a class that its type does not name."""
        hints = field_types(type(record))
        for name in printed_fields(type(record)) or ():
            value = getattr(record, name)
            kind = type(value)
            if not has(kind) or isinstance(value, Program) or plain(value) is not None:
                continue
            if classes_in(hints.get(name, object)).get(kind.__name__) is not kind:
                self.opaque(value)

    def opaque(self, value: object) -> str:
        eqn = self.place
        assert eqn is not None
        raise Unsavable(
            f"the equation {eqn.primitive.name} ({eqn.source}) holds {nickname(value)} "
            f"({type(value).__name__}), a Python object that cannot be saved. Save the "
            "program after the transformation that calls it (grad of a custom rule "
            "writes its equations), or without it"
        )


@memoised
def whole(kind: type[AttrsInstance]) -> bool:
    """Whether records of this class are printed with all that makes them."""
    return not any([a.init and a.repr is False for a in fields(kind)])


def written_source(source: Source) -> Json:
    """File, line, function and origin."""
    return [source.file, source.line, source.function, source.origin]
