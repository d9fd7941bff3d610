"""Floor 0: a program as HTML for notebooks, and as a picture of what feeds what.

Both are text made of the printer's words, without a package or a script. HTML is the
printed program with colours and the user's lines as tooltips; SVG is one box per
equation in layers, with the programs inside an equation drawn inside its box::

    html(closed)    # what a notebook shows
    svg(closed)     # <svg xmlns=...> of the program
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, Protocol, runtime_checkable

from attrs import define, field, frozen

from verax.ir.atoms import Atom, Literal, Var, letters
from verax.ir.records import ReprMixin
from verax.ir.text.printer import (
    Equation,
    Place,
    Program,
    aval_text,
    line_of,
    print_jaxpr,
    printed_fields,
    spoken_fields,
)
from verax.ir.text.tokens import token_pattern

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
    """What has a program inside, as closed jaxprs have."""

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
    found: list[str] = []
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
        found.append(escaped(gap) + word)
        start = token.end()
    return "".join(found) + escaped(line[start:])


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


def size_of(programs: Sequence[Program]) -> int:
    return sum([len(program.eqns) for program in programs])


def open_levels(jaxpr: Program) -> int:
    """How many levels of nested programs fit into a picture."""
    level, levels, shown = [jaxpr], 0, len(jaxpr.eqns)
    while level := inner_programs(level):
        shown += size_of(level)
        if shown > SHOWN:
            break
        levels += 1
    return levels


def held(programs: Sequence[Program]) -> int:
    """The number of equations in programs, nested ones included."""
    inner = inner_programs(programs)
    return size_of(programs) + (held(inner) if inner else 0)


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
