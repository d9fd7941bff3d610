"""Floor 0: the text of a jaxpr, in the layout of JAX, from which it can be read back.

One idea: a program becomes a tree of blocks that know their length on one line, and a
block is broken exactly if that line would be too long, so printing takes linear time::

    { lambda ; a:f32[8]. let b:f32[8] = sin a; c:f32[8] = mul b 3.0:f32[] in (c,) }

Equations and jaxprs are seen by their shape only, so that their classes can print
themselves with this module.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, count
from typing import Final, Protocol, runtime_checkable

from attrs import define, evolve, field, fields, frozen, has

from verax.ir.atoms import Atom, Identity, Literal, Var, letters
from verax.ir.avals import ShapedArray
from verax.ir.memos import memoised
from verax.ir.promotion import scalar_text
from verax.ir.records import ReprMixin
from verax.ir.text.tokens import bare, plain, token_pattern

WIDTH = 80
UNBREAKABLE = 1 << 40
"""The length of what never goes on one line, because a comment would swallow it."""


class Named(Protocol):
    """A primitive, as the printer reads it."""

    @property
    def name(self) -> str: ...


class Place(Protocol):
    """A source, as the printer reads it."""

    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def origin(self) -> str: ...


class Equation(Protocol):
    """An equation, as the printer reads it."""

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
    """A jaxpr, as the printer reads it."""

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
        """The word for a value that has no text; no parser takes it."""
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


# -----------------------------------------------------------------------------
# A program as HTML for notebooks, and as a picture of what feeds what.
#
# Both are text made of the printer's words, without a package or a script. HTML is the
# printed program with colours and the user's lines as tooltips; SVG is one box per
# equation in layers, with the programs inside an equation drawn inside its box::
#
#     html(closed)    # what a notebook shows
#     svg(closed)     # <svg xmlns=...> of the program


COLOURS: Final = {
    "type": ("#0d6780", "#6fc3dc"),
    "number": ("#7a4d00", "#e0b060"),
    "string": ("#3d7a2a", "#9fce8b"),
    "back": ("#fffefc", "#1b1e22"),
    "text": ("#22252a", "#d9dce0"),
    "soft": ("#5f6368", "#9aa1a9"),
    "line": ("#8b8f94", "#6b727a"),
    "frame": ("#f4f3ef", "#22262b"),
    "input": ("#e8f1e4", "#26352a"),
    "equation": ("#fffefc", "#2a2f35"),
    "output": ("#f1e8f5", "#352a3c"),
}
"""Every colour, on a light and on a dark page."""
DARK_PAGES: Final = (
    '[data-jp-theme-light="false"]',
    'html[data-theme="dark"]',
    "html.dark",
    "body.vscode-dark",
)
"""Notebooks and sites that are dark whatever the system says."""
LIGHT_PAGES: Final = ('[data-jp-theme-light="true"]', 'html[data-theme="light"]')
"""Those that are light whatever the system says."""
STYLES: Final = {
    "typed": "type",
    "aval": "type",
    "number": "number",
    "string": "string",
}
KEYWORDS: Final = frozenset({"lambda", "let", "in"})
BOX, GAP, LAYER, MARGIN, TITLE = 24, 14, 30, 12, 20
"""Heights and distances of the picture, in pixels."""
LETTER: Final = 7.3
"""The width of a letter of the picture's font, in pixels."""
SHOWN: Final = 400
"""The most equations in a picture: more would be unreadable."""


def escaped(text: str) -> str:
    """The text as HTML and XML write it."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;")


def style_sheet(element: str) -> str:
    """The colours as custom properties of an element, and the rules that use them.

    Light is the default and what is printed; a dark system or a dark page changes it.
    """
    light, dark = [
        ";".join([f"--vx-{name}:{pair[which]}" for name, pair in COLOURS.items()])
        for which in (0, 1)
    ]
    on_dark, on_light = [
        ",".join([f"{page} {element}" for page in pages])
        for pages in (DARK_PAGES, LIGHT_PAGES)
    ]
    rules = "".join(
        [f"{element} .{name}{{color:var(--vx-{name})}}" for name in STYLES.values()]
    )
    return (
        f"<style>{element}{{{light}}}@media screen{{"
        f"@media (prefers-color-scheme:dark){{{element}{{{dark}}}}}"
        f"{on_dark}{{{dark}}}{on_light}{{{light}}}}}{rules}</style>"
    )


@runtime_checkable
class Closed(Protocol):
    """Anything with a program inside, as closed jaxprs have."""

    @property
    def jaxpr(self) -> Program: ...


def program_of(program: Program | Closed) -> Program:
    return program.jaxpr if isinstance(program, Closed) else program


def known(source: Place) -> bool:
    """Whether the user's line is known."""
    return source.line > 0


def html(program: Program | Closed) -> str:
    """The printed program as coloured HTML; the user's lines are tooltips.

    >>> from verax.ir.jaxpr import empty_jaxpr
    >>> html(empty_jaxpr((), ())).endswith("</pre>")
    True
    """
    jaxpr = program_of(program)
    plain = print_jaxpr(jaxpr)
    tips = line_tips(jaxpr, plain)
    lines = [
        f'<span title="{escaped(tip)}">{coloured(line)}</span>'
        if tip
        else coloured(line)
        for line, tip in zip(plain.splitlines(), tips, strict=True)
    ]
    sheet = style_sheet("pre.verax-program")
    wrapped = "<style>@media print{pre.verax-program{white-space:pre-wrap}}</style>"
    text = "\n".join(lines)
    return (
        f'{sheet}{wrapped}<pre class="verax-program" style="line-height:1.35">'
        f"{text}</pre>"
    )


def line_tips(jaxpr: Program, text: str) -> list[str]:
    """The user's lines of the equations of `jaxpr` itself, beside the printed lines."""
    lines = text.splitlines()
    heads = {
        f"    {binders(e.outvars)} = {e.primitive.name}": line_of(e.source)
        for e in jaxpr.eqns
        if known(e.source) and e.outvars
    }
    return [heads.get(head(line), "") for line in lines]


def binders(variables: Sequence[Var]) -> str:
    """Variables with their types."""
    return " ".join([f"{letters(v.index)}:{aval_text(v.aval)}" for v in variables])


def head(line: str) -> str:
    """A printed equation up to the name of its primitive."""
    results, equals, rest = line.partition(" = ")
    return f"{results}{equals}{rest.split('[')[0].split(' ')[0]}" if equals else ""


def coloured(line: str) -> str:
    """One printed line with its words in colours."""
    out: list[str] = []
    start = 0
    while start < len(line):
        token = token_pattern().match(line, start)
        if token is None or token.lastgroup in (None, "end"):
            break
        kind, gap = str(token.lastgroup), token["gap"]
        word = escaped(token[kind])
        if token[kind] in KEYWORDS:
            word = f"<b>{word}</b>"
        elif kind in STYLES:
            word = f'<span class="{STYLES[kind]}">{word}</span>'
        out.append(escaped(gap) + word)
        start = token.end()
    return "".join(out) + escaped(line[start:])


def svg(program: Program | Closed) -> str:
    """A picture of the program: inputs on top, one box per equation, lines for uses.

    The programs inside an equation (of a call, a loop, a branch, a rule) are drawn in
    its box, outer ones first, as long as there are at most 400 equations in all; an
    equation that is not opened says how many it holds. The tooltip of a box is its
    equation and the user's line.

    Raises:
        ValueError: the program itself has more than 400 equations.
    """
    jaxpr = program_of(program)
    if len(jaxpr.eqns) > SHOWN:
        raise ValueError(
            f"a picture of {len(jaxpr.eqns)} equations would be unreadable; show at "
            f"most {SHOWN}, for example after verax.transforms.dce of some outputs"
        )
    drawn = picture(jaxpr, open_levels(jaxpr))
    width, height = drawn.width + 2 * MARGIN, drawn.height + 2 * MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="verax-picture" role="img" '
        f'width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" style="max-width:100%;height:auto" '
        f'font-family="ui-monospace,Menlo,Consolas,monospace" font-size="12">'
        f"<title>a program of {len(jaxpr.eqns)} equations</title>"
        f"{style_sheet('svg.verax-picture')}"
        f'<rect width="100%" height="100%" rx="6" fill="var(--vx-back)"/>'
        f'<g transform="translate({MARGIN} {MARGIN})">{drawn.text}</g></svg>'
    )


@frozen(repr=False)
class Picture(ReprMixin):
    """SVG with its size."""

    text: str
    width: float
    height: float


@define(eq=False, repr=False)
class Node(ReprMixin):
    """One box: what it says, what it reads, and the pictures in it."""

    label: str
    tip: str
    kind: str
    layer: int
    results: Sequence[Var] = ()
    reads: Sequence[Var] = ()
    bodies: Sequence[tuple[str, Picture]] = ()
    left: float = 0.0
    top: float = 0.0
    width: float = field(init=False)
    height: float = field(init=False)

    def __attrs_post_init__(self) -> None:
        across = [max(p.width, LETTER * len(name)) + GAP for name, p in self.bodies]
        self.width = max(len(self.label) * LETTER + 14, sum(across) + GAP)
        down = max([p.height for _, p in self.bodies], default=0.0)
        self.height = BOX + (down + TITLE + GAP if self.bodies else 0)

    @property
    def middle(self) -> float:
        return self.left + self.width / 2


def bodies_of(value: object, name: str = "") -> Iterator[tuple[str, Program]]:
    """The programs among params, with the names of their fields."""
    if isinstance(value, Program):
        yield name, value
    elif isinstance(value, tuple) and printed_fields(type(value)) is None:
        for number, item in enumerate(value):
            yield from bodies_of(item, f"{name} {number}")
    elif printed_fields(type(value)):
        for each in spoken_fields(value):
            yield from bodies_of(getattr(value, each), f"{name} {each}".strip())


def inner_programs(programs: Sequence[Program]) -> list[Program]:
    """The programs one level further in."""
    eqns = [eqn for program in programs for eqn in program.eqns]
    return [body for eqn in eqns for _, body in bodies_of(eqn.params)]


def equation_count(programs: Sequence[Program]) -> int:
    return sum([len(program.eqns) for program in programs])


def open_levels(jaxpr: Program) -> int:
    """The number of levels of nested programs that fit into a picture."""
    level, levels, shown = [jaxpr], 0, len(jaxpr.eqns)
    while level := inner_programs(level):
        shown += equation_count(level)
        if shown > SHOWN:
            break
        levels += 1
    return levels


def held(programs: Sequence[Program]) -> int:
    """The number of equations in programs, nested ones included."""
    inner = inner_programs(programs)
    return equation_count(programs) + (held(inner) if inner else 0)


def picture(jaxpr: Program, levels: int) -> Picture:
    """A program as layers of boxes: each box under all that it reads."""
    nodes = boxes(jaxpr, levels)
    rows = [
        [node for node in nodes if node.layer == layer]
        for layer in range(max([node.layer for node in nodes], default=-1) + 1)
    ]
    heights = [max([node.height for node in row], default=BOX) for row in rows]
    tops = [0.0, *accumulate([height + LAYER for height in heights])]
    makers = {var.index: node for node in nodes for var in node.results}
    for row, top in zip(rows, tops, strict=False):
        arrange(row, top, makers)
    width = max([node.left + node.width for node in nodes], default=0.0)
    lines = [line(makers[v.index], n) for n in nodes for v in dict.fromkeys(n.reads)]
    text = "".join([*lines, *[box(node) for node in nodes]])
    return Picture(text, width, max(0.0, tops[len(rows)] - LAYER))


def boxes(jaxpr: Program, levels: int) -> list[Node]:
    """The nodes of a program, with their layers: inputs, equations, outputs."""
    depth: dict[int, int] = {}
    nodes: list[Node] = []
    for var in (*jaxpr.constvars, *jaxpr.invars):
        depth[var.index] = 0
        name = binders([var])
        nodes.append(Node(name, name, "input", 0, results=(var,)))
    for eqn in jaxpr.eqns:
        reads = [a for a in eqn.invars if isinstance(a, Var)]
        layer = 1 + max([depth[a.index] for a in reads], default=-1)
        depth.update({var.index: layer for var in eqn.outvars})
        nodes.append(equation_node(eqn, reads, layer, levels))
    last = max([node.layer for node in nodes], default=-1) + 1
    outputs = [
        output_node(number, atom, last) for number, atom in enumerate(jaxpr.outvars)
    ]
    return [*nodes, *outputs]


def equation_node(eqn: Equation, reads: Sequence[Var], layer: int, levels: int) -> Node:
    """The box of an equation, with the programs in it as far as levels are left."""
    scalars = [repr(a) for a in eqn.invars if isinstance(a, Literal)]
    types = " ".join([aval_text(v.aval) for v in eqn.outvars])
    inner = list(bodies_of(eqn.params))
    closed = bool(inner) and levels == 0
    note = [f"({held([body for _, body in inner])} equations inside)"] if closed else []
    called = [str(getattr(eqn.params, "name", ""))] if inner else []
    words = [eqn.primitive.name, *filter(None, called), *scalars, "→", types, *note]
    label = " ".join(words)
    tip = f"{eqn!r}\n{line_of(eqn.source)}" if known(eqn.source) else repr(eqn)
    drawn = [(name, picture(body, levels - 1)) for name, body in inner if levels]
    return Node(label, tip, "equation", layer, eqn.outvars, reads, drawn)


def output_node(number: int, atom: Atom, layer: int) -> Node:
    name = f"output {number}"
    if isinstance(atom, Var):
        return Node(name, name, "output", layer, reads=(atom,))
    return Node(f"{name} = {atom!r}", f"{name} = {atom!r}", "output", layer)


def arrange(row: list[Node], top: float, makers: dict[int, Node]) -> None:
    """Place one layer: each box near the middle of what it reads, none overlapping."""

    def wished(node: Node) -> float:
        reads = [makers[v.index].middle for v in node.reads]
        return sum(reads) / len(reads) if reads else 0.0

    free = 0.0
    for node in sorted(row, key=wished):
        node.left = max(free, wished(node) - node.width / 2)
        node.top = top
        free = node.left + node.width + GAP


def box(node: Node) -> str:
    """A box with its words, and the pictures inside it."""
    inside = []
    left = node.left + GAP
    for name, drawn in node.bodies:
        wide = max(drawn.width, LETTER * len(name))
        x, y = left, node.top + BOX + TITLE
        inside.append(
            f'<text x="{x:.1f}" y="{y - 6:.1f}" font-size="10.5" '
            f'fill="var(--vx-soft)">{escaped(name)}</text>'
            f'<g transform="translate({x:.1f} {y:.1f})">{drawn.text}</g>'
        )
        left += wide + GAP
    centred = not node.bodies
    x = node.middle if centred else node.left + 8
    anchor = "middle" if centred else "start"
    kind = "frame" if node.bodies else node.kind
    round_ = BOX / 2 if node.kind != "equation" else 5
    return (
        f"<g><title>{escaped(node.tip)}</title>"
        f'<rect x="{node.left:.1f}" y="{node.top:.1f}" width="{node.width:.1f}" '
        f'height="{node.height:.1f}" rx="{round_:g}" fill="var(--vx-{kind})" '
        f'stroke="var(--vx-line)"/><text x="{x:.1f}" y="{node.top + 16:.1f}" '
        f'text-anchor="{anchor}" fill="var(--vx-text)">{escaped(node.label)}</text>'
        f"{''.join(inside)}</g>"
    )


def line(maker: Node, user: Node) -> str:
    """A line from the lower edge of a box to the upper edge of one that reads it."""
    x, y = maker.middle, maker.top + maker.height
    to_x, to_y = user.middle, user.top
    half = (y + to_y) / 2
    return (
        f'<path d="M{x:.1f} {y:.1f}C{x:.1f} {half:.1f} {to_x:.1f} {half:.1f} '
        f'{to_x:.1f} {to_y:.1f}" fill="none" stroke="var(--vx-line)"/>'
    )
