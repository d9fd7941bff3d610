"""Floor 0: the text of a jaxpr, in the layout of JAX, from which it can be read back.

One idea: a program becomes a tree of blocks that know their length on one line, and a
block is broken exactly if that line would be too long, so printing takes linear time::

    { lambda ; a:f32[8]. let b:f32[8] = sin a; c:f32[8] = mul b 3.0:f32[] in (c,) }

Equations and jaxprs are seen by their shape only, so that their classes can print
themselves with this module.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Protocol, runtime_checkable

from attrs import evolve, field, fields, frozen, has

from verax.ir.atoms import Atom, Identity, Literal, Var, letters
from verax.ir.avals import ShapedArray
from verax.ir.memos.memo import memoised
from verax.ir.records import ReprMixin
from verax.ir.scalars import scalar_text
from verax.ir.text.tokens import bare, plain

WIDTH = 80
UNBREAKABLE = 1 << 40
"""The length of what never goes on one line, because a comment would swallow it."""


class Named(Protocol):
    """What the printer reads of a primitive."""

    @property
    def name(self) -> str: ...


class Place(Protocol):
    """What the printer reads of a source."""

    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def origin(self) -> str: ...


class Equation(Protocol):
    """What the printer reads of an equation."""

    @property
    def primitive(self) -> Named: ...
    @property
    def params(self) -> object: ...
    @property
    def invars(self) -> tuple[Atom, ...]: ...
    @property
    def outvars(self) -> tuple[Var, ...]: ...
    @property
    def source(self) -> Place: ...


@runtime_checkable
class Program(Protocol):
    """What the printer reads of a jaxpr."""

    @property
    def constvars(self) -> tuple[Var, ...]: ...
    @property
    def invars(self) -> tuple[Var, ...]: ...
    @property
    def eqns(self) -> Sequence[Equation]: ...
    @property
    def outvars(self) -> tuple[Atom, ...]: ...


@frozen(eq=False, repr=False)
class Block(ReprMixin):
    """Something with items: `opening item joint item closing`, or broken into lines."""

    opening: str
    items: "tuple[Layout, ...]"
    joint: str
    closing: str
    edge: str = ""
    inset: int = 2
    outset: int = 0
    size: int = field(init=False)

    @size.default
    def measured(self) -> int:
        ends = len(self.opening) + len(self.closing) + 2 * len(self.edge)
        joints = len(self.joint) * (len(self.items) - 1)
        return ends + joints + sum([size_of(item) for item in self.items])


@frozen(eq=False, repr=False)
class Commented(ReprMixin):
    """An equation that ends its line with a comment."""

    layout: "Layout"
    comment: str


type Layout = str | Block | Commented


def size_of(layout: Layout) -> int:
    """The length of a layout on one line."""
    if isinstance(layout, str):
        return len(layout)
    return layout.size if isinstance(layout, Block) else UNBREAKABLE


def prefixed(prefix: str, layout: Layout) -> Layout:
    """`layout` with more text in front."""
    if isinstance(layout, str):
        return prefix + layout
    if isinstance(layout, Commented):
        return Commented(prefixed(prefix, layout.layout), layout.comment)
    return evolve(layout, opening=prefix + layout.opening)


def flat(layout: Layout) -> str:
    """A layout on one line."""
    if isinstance(layout, str):
        return layout
    if isinstance(layout, Commented):
        return f"{flat(layout.layout)}  # {layout.comment}"
    inner = layout.joint.join([flat(item) for item in layout.items])
    return f"{layout.opening}{layout.edge}{inner}{layout.edge}{layout.closing}"


def lines(layout: Layout, indent: int, width: int) -> Iterator[str]:
    """The lines of a layout that begins at column `indent`."""
    margin = " " * indent
    if isinstance(layout, str):
        yield margin + layout
    elif isinstance(layout, Commented):
        *before, last = lines(layout.layout, indent, width)
        yield from before
        yield f"{last}  # {layout.comment}"
    elif indent + layout.size <= width:
        yield margin + flat(layout)
    else:
        yield margin + layout.opening
        for item in layout.items:
            yield from lines(item, indent + layout.inset, width)
        yield f"{margin}{' ' * layout.outset}{layout.closing}"


@memoised
def printed_fields(cls: type) -> tuple[str, ...] | None:
    """The fields by which a record prints; None if it is not a record, or hides all."""
    if has(cls):
        shown = [a.name for a in fields(cls) if a.init and a.repr is not False]
        return tuple(shown) if shown or not fields(cls) else None
    return getattr(cls, "_fields", None)


def spoken_fields(record: object) -> tuple[str, ...]:
    """The fields by which this record is printed, without quiet ones at the default."""
    cls = type(record)
    names, quiet = printed_fields(cls) or (), quiet_fields(cls)
    if not quiet:
        return names
    return tuple([n for n in names if n not in quiet or getattr(record, n) != quiet[n]])


@memoised
def quiet_fields(cls: type) -> Mapping[str, object]:
    """The fields that a record does not print at their default, and that default."""
    if not has(cls):
        return {}
    return {a.name: a.default for a in fields(cls) if a.metadata.get("quiet")}


class Printer:
    """Lays one program out; array constants are numbered by their first use."""

    def __init__(self, sources: bool, types: bool) -> None:
        self.sources = sources
        self.types = types
        self.consts: dict[Identity, str] = {}
        self.numbers = count()

    def program(self, program: Program) -> Layout:
        """A whole jaxpr, with its own names."""
        used = used_indices(program)
        eqns = tuple([self.equation(eqn, used) for eqn in program.eqns])
        consts = " ".join([self.binder(v) for v in program.constvars])
        ins = " ".join([self.binder(v) for v in program.invars])
        outs = ", ".join([self.atom(a) for a in program.outvars])
        comma = "," if len(program.outvars) == 1 else ""
        opening = f"{{ lambda {consts}; {ins}. let"
        closing = f"in ({outs}{comma}) }}"
        if not eqns:
            return f"{opening} {closing}"
        return Block(opening, eqns, "; ", closing, edge=" ", inset=4, outset=2)

    def equation(self, eqn: Equation, used: frozenset[int]) -> Layout:
        """One equation; results that nothing reads are called `_`."""
        outs = " ".join(
            [self.binder(v, "" if v.index in used else "_") for v in eqn.outvars]
        )
        name = bare(eqn.primitive.name)
        start = f"{outs} = {name}" if outs else name
        params = self.params(eqn.params)
        ins = "".join([f" {self.atom(a)}" for a in eqn.invars])
        layout: Layout = start + ins
        if params:
            layout = Block(f"{start}[", params, " ", f"]{ins}")
        return Commented(layout, line_of(eqn.source)) if self.sources else layout

    def params(self, params: object) -> tuple[Layout, ...]:
        """`key=value` for each field."""
        names = spoken_fields(params)
        return tuple(
            [prefixed(f"{name}=", self.value(getattr(params, name))) for name in names]
        )

    def value(self, value: object) -> Layout:
        """The value of one field, or of an item of one."""
        text = plain(value)
        if text is not None:
            return text
        if isinstance(value, Program):
            return self.program(value)
        if isinstance(value, frozenset):
            return f"{{{', '.join(sorted([flat(self.value(v)) for v in value]))}}}"
        if printed_fields(type(value)) is not None:
            items = [
                prefixed(f"{name}=", self.value(getattr(value, name)))
                for name in spoken_fields(value)
            ]
            return group(f"{type(value).__name__}(", items, ")")
        if isinstance(value, tuple):
            parts = [self.value(item) for item in value]
            comma = "," if len(parts) == 1 and isinstance(parts[0], str) else ""
            return group("(", parts, f"{comma})")
        return self.opaque(value)

    def opaque(self, value: object) -> str:
        """What stands for a value that has no text; no parser takes it."""
        return f"<{nickname(value)}>"

    def atom(self, atom: object) -> str:
        """An operand: a name, a scalar with its type, or the name of a constant."""
        if type(atom) is Var:
            return letters(atom.index)
        if not isinstance(atom, Literal):
            return repr(atom)
        if isinstance(atom.key, bytes):
            text = scalar_text(atom.key, atom.aval.dtype)
        else:
            text = self.consts.get(atom.key) or self.named(atom.key)
        return f"{text}:{aval_text(atom.aval)}" if self.types else text

    def named(self, key: Identity) -> str:
        """The name of an array constant that occurs for the first time."""
        return self.consts.setdefault(key, f"const{next(self.numbers)}")

    def binder(self, var: Var, name: str = "") -> str:
        """The place where a variable is defined: its name and type."""
        name = name or letters(var.index)
        return f"{name}:{aval_text(var.aval)}" if self.types else name


def group(opening: str, items: Sequence[Layout], closing: str) -> Layout:
    """Items between brackets: one text if all of them are."""
    texts = [item for item in items if isinstance(item, str)]
    if len(texts) == len(items):
        return f"{opening}{', '.join(texts)}{closing}"
    return Block(opening, tuple(items), ", ", closing)


def used_indices(program: Program) -> frozenset[int]:
    """The numbers of the variables that the equations or the outputs read."""
    reads: Iterable[tuple[Atom, ...]] = [eqn.invars for eqn in program.eqns]
    return frozenset(
        [
            atom.index
            for atoms in (*reads, program.outvars)
            for atom in atoms
            if type(atom) is Var
        ]
    )


@memoised
def aval_text(aval: ShapedArray) -> str:
    return repr(aval)


def nickname(value: object) -> str:
    """The name of a value that has no text of its own: a function's, or its class."""
    name = getattr(value, "__name__", None)
    return name.strip("<>") if isinstance(name, str) else type(value).__name__


def line_of(source: Place) -> str:
    """The line of the user, and the transformation that made something of it."""
    origin = f" ({source.origin})" if source.origin else ""
    return f"{source.file}:{source.line}{origin}"


def print_jaxpr(
    jaxpr: Program, *, sources: bool = False, types: bool = True, width: int = WIDTH
) -> str:
    """The text of `jaxpr`, in lines of `width` columns where that is possible.

    `sources` adds the line of the user to every equation, `types=False` leaves the
    types out. With types, `verax.ir.forms.parser.parse_jaxpr` reads the text back.

    >>> from verax.ir.dtypes import float32
    >>> from verax.ir.jaxpr import empty_jaxpr
    >>> a = Var(0, ShapedArray((8,), float32))
    >>> print_jaxpr(empty_jaxpr((a,), (a,)))
    '{ lambda ; a:f32[8]. let in (a,) }'
    """
    layout = Printer(sources, types).program(jaxpr)
    return "\n".join(lines(layout, 0, width))
