"""Floor 0: a program as HTML for notebooks, and as a picture of what feeds what.

One idea: both are text made of the printer's words, without a package or a script:
HTML is the printed program with colours and the user's lines as tooltips, SVG is one
box per equation, in layers, with a line from each result to each use::

    html(closed)    # what a notebook shows
    svg(closed)     # <svg xmlns=...> of the outer program
"""

from collections.abc import Sequence
from typing import Final, Protocol, runtime_checkable

from verax.ir.atoms import Literal, Var, letters
from verax.ir.printer import (
    Equation,
    Place,
    Program,
    aval_text,
    line_of,
    print_jaxpr,
)
from verax.ir.tokens import token_pattern

STYLES: Final = {
    "typed": "#1a6b8f",
    "aval": "#1a6b8f",
    "number": "#8a5a00",
    "string": "#3d7a2a",
    "word": "inherit",
}
KEYWORDS: Final = frozenset({"lambda", "let", "in"})
BOX, GAP, LAYER, MARGIN = 24, 14, 56, 12
"""Heights and distances of the picture, in pixels."""
LETTER: Final = 7.3
"""The width of a letter of the picture's font, in pixels."""
SHOWN = 400
"""The most equations in a picture: more would be unreadable."""


def escaped(text: str) -> str:
    """The text as HTML and XML write it."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;")


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
    >>> html(empty_jaxpr((), ())).startswith("<pre")
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
    return f'<pre style="line-height:1.3">{"\n".join(lines)}</pre>'


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
        elif STYLES.get(kind, "inherit") != "inherit":
            word = f'<span style="color:{STYLES[kind]}">{word}</span>'
        found.append(escaped(gap) + word)
        start = token.end()
    return "".join(found) + escaped(line[start:])


def svg(program: Program | Closed) -> str:
    """A picture of the program: inputs on top, one box per equation, lines for uses.

    Jaxprs inside equations are not opened: call it on those. The tooltip of a box is
    its equation and the user's line.

    Raises:
        ValueError: there are more than 400 equations.
    """
    jaxpr = program_of(program)
    if len(jaxpr.eqns) > SHOWN:
        raise ValueError(
            f"a picture of {len(jaxpr.eqns)} equations would be unreadable; show at "
            f"most {SHOWN}, for example after verax.transforms.dce of some outputs"
        )
    return Drawing(jaxpr).text()


class Drawing:
    """The boxes of a program, placed by layers: each under all that it reads."""

    def __init__(self, jaxpr: Program) -> None:
        self.jaxpr = jaxpr
        self.rows: dict[int, float] = {}
        self.depth: dict[int, int] = {}
        self.centres: dict[int, tuple[float, float]] = {}
        self.parts: list[str] = []
        self.width = 0.0
        self.bottom = 0.0

    def text(self) -> str:
        """The whole picture."""
        for var in (*self.jaxpr.constvars, *self.jaxpr.invars):
            self.depth[var.index] = 0
            name = binders([var])
            self.box((var,), name, 0, "#e8f1e4", name)
        for eqn in self.jaxpr.eqns:
            self.equation(eqn)
        last = max(self.depth.values(), default=0) + 1
        for number, atom in enumerate(self.jaxpr.outvars):
            name = f"output {number}"
            x, y = self.room(len(name), last)
            if isinstance(atom, Var):
                self.line(atom, x, y)
            else:
                name = f"{name} = {atom!r}"
            self.shape(name, x, y, "#f3e6e4", name)
        width, height = self.width + MARGIN, self.bottom + MARGIN
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
            f'height="{height:.0f}" font-family="monospace" font-size="12">'
            f"{''.join(self.parts)}</svg>"
        )

    def equation(self, eqn: Equation) -> None:
        """One box, and the lines to it."""
        reads = [a for a in eqn.invars if isinstance(a, Var)]
        layer = 1 + max([self.depth[a.index] for a in reads], default=0)
        scalars = [repr(a) for a in eqn.invars if isinstance(a, Literal)]
        types = " ".join([aval_text(v.aval) for v in eqn.outvars])
        label = " ".join([eqn.primitive.name, *scalars, "→", types])
        tip = f"{eqn!r}\n{line_of(eqn.source)}" if known(eqn.source) else repr(eqn)
        for var in eqn.outvars:
            self.depth[var.index] = layer
        x, y = self.box(eqn.outvars, label, layer, "#e6eef5", tip)
        for atom in dict.fromkeys(reads):
            self.line(atom, x, y)

    def box(
        self, results: Sequence[Var], label: str, layer: int, colour: str, tip: str
    ) -> tuple[float, float]:
        """A labelled box in a layer; the middle of its upper edge."""
        x, y = self.room(len(label), layer)
        for var in results:
            self.centres[var.index] = x, y + BOX
        self.shape(label, x, y, colour, tip)
        return x, y

    def room(self, size: int, layer: int) -> tuple[float, float]:
        """Where the next box of a layer goes: the middle of its upper edge."""
        left = self.rows.get(layer, MARGIN)
        wide = size * LETTER + 14
        self.rows[layer] = left + wide + GAP
        self.width = max(self.width, left + wide)
        y = MARGIN + layer * LAYER
        self.bottom = max(self.bottom, y + BOX)
        return left + wide / 2, y

    def shape(self, label: str, x: float, y: float, colour: str, tip: str) -> None:
        """Draw a box."""
        wide = len(label) * LETTER + 14
        self.parts.append(
            f'<g><title>{escaped(tip)}</title><rect x="{x - wide / 2:.1f}" y="{y:.1f}" '
            f'width="{wide:.1f}" height="{BOX}" rx="4" fill="{colour}" '
            f'stroke="#555"/><text x="{x:.1f}" y="{y + 16:.1f}" text-anchor="middle" '
            f'fill="#111">{escaped(label)}</text></g>'
        )

    def line(self, var: Var, x: float, y: float) -> None:
        """Draw a line from a result to a use."""
        from_x, from_y = self.centres[var.index]
        middle = (from_y + y) / 2
        self.parts.insert(
            0,
            f'<path d="M{from_x:.1f} {from_y:.1f}C{from_x:.1f} {middle:.1f} '
            f'{x:.1f} {middle:.1f} {x:.1f} {y:.1f}" fill="none" stroke="#999"/>',
        )
