"""Floor 3: what a comparison of two programs found, as values, as text and as a table.

One idea: the values are kept as they are, and texts are made when they are read::

    print(comparison)
    comparison.first.left.source.line, comparison.rows[0].difference.absolute
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

import numpy as np
from attrs import frozen

from verax.ir.jaxpr import Atom, Literal, Source
from verax.ir.records import ReprMixin
from verax.ir.text.columns import columns
from verax.ir.text.html import report, table
from verax.transforms.comparing.measures import (
    Difference,
    Element,
    Tolerance,
    brief,
    measure,
)
from verax.transforms.comparing.running import Values
from verax.transforms.comparing.scenes import (
    LEFT,
    RIGHT,
    Divergence,
    Executed,
    words_of,
)
from verax.transforms.comparing.walking import LineDifference, Side, Walk
from verax.transforms.nans import CONSTANT, describe

LINES: Final = 10
"""So many lines of a table are printed."""
SHOWN: Final = 6
"""Elements of an array in a report."""
WIDTH: Final = 160
"""Letters of an array in a report."""
HEADS: Final = ("absolute", "relative", "ULPs", "operation", "line")


@frozen(eq=False, repr=False)
class Comparison(ReprMixin):
    """What a comparison of two runs found.

    `left` and `right` name the two. `first` is where their values part, None if they
    agree. `rows` are the lines with a difference, however small, the largest first, as
    multiples of what is allowed; `outputs` are the differences of the outputs by their
    names, None where they are equal. So many pairs of values were `compared`.

    >>> import verax, verax.numpy as vnp
    >>> verax.debug.compare(vnp.sin, vnp.cos)(0.0)
    <Comparison: sin and cos part at sin and cos>
    """

    __module__ = "verax.debug"

    left: str
    right: str
    first: Divergence | None
    rows: tuple[LineDifference, ...]
    outputs: dict[str, Difference | None]
    compared: int

    @property
    def agrees(self) -> bool:
        """Whether no value is beyond the tolerance."""
        return self.first is None

    def __repr__(self) -> str:
        where = "agree" if self.first is None else f"part at {self.first.place}"
        return f"<Comparison: {self.left} and {self.right} {where}>"

    def __str__(self) -> str:
        return "\n".join([*headline(self), *table_lines(self)])

    def _repr_html_(self) -> str:
        """Shows it in a notebook: the equation, the user's lines, and the values."""
        first = self.first
        title = f"{self.left} and {self.right}"
        if first is None:
            parts = [table(f"{title} agree", (), [("compared", values_text(self))])]
        else:
            names = (self.left, self.right)
            facts = [*facts_of(names, first), ("difference", str(first.difference))]
            parts = [table(f"{title} part at {first.place}", (), facts)]
            values = [
                (name, aval, *[text.removeprefix(" = ") for text in texts])
                for name, aval, *texts in value_rows(first)
            ]
            heads = ("value", "type", *names)
            parts += [table("Values", heads, values)] if values else []
        rows = [row_texts(row) for row in self.rows]
        if rows:
            parts.append(table("Largest differences by line", HEADS, rows))
        return report(*parts)


def compare_sides(
    left: Side,
    right: Side,
    values: Values,
    names: Sequence[str],
    tolerance: Tolerance,
) -> Comparison:
    """The comparison of two programs on the same arguments; outputs have `names`."""
    walk = Walk((left, right), tolerance, names)
    outs, first = walk.run(values)
    ours, theirs = [
        given if side.outputs is None else list(side.outputs)
        for side, given in zip((left, right), outs, strict=True)
    ]
    atoms = (left.jaxpr.outvars, right.jaxpr.outvars)
    outputs = {
        name: measure(words_of(x, a), words_of(y, b), tolerance)
        for name, x, y, a, b in zip(names, ours, theirs, *atoms, strict=True)
    }
    parted = [
        (difference, name)
        for name, difference in outputs.items()
        if difference and difference.parts
    ]
    if first is None and parted:  # as a whole, though no equation does
        first = Divergence(None, None, parted[0][0], output=parted[0][1])
    rows = sorted(walk.lines.values(), key=lambda row: -row.difference.excess)
    return Comparison(
        left.name,
        right.name,
        first,
        tuple(rows),
        outputs,
        walk.compared + len(outs[LEFT]),
    )


# -----------------------------------------------------------------------------
# The text: which equation, the line, the values, and the other lines.


def values_text(comparison: Comparison) -> str:
    """How many values were compared."""
    count = comparison.compared
    return f"{count:,} value{'s' * (count != 1)}"


def headline(comparison: Comparison) -> list[str]:
    """The lines about where values part first."""
    first = comparison.first
    both = f"{comparison.left} and {comparison.right}"
    if first is None:
        return [f"{both} agree: {values_text(comparison)} compared"]
    names = (comparison.left, comparison.right)
    lines = [f"{both} part at {first.place}"]
    lines += [f"  {name.ljust(10)} {text}" for name, text in facts_of(names, first)]
    for name, aval, *texts in value_rows(first):
        shown = dict(zip(texts, names, strict=True))
        same = len(shown) == 1
        for text, who in shown.items():
            lines.append(
                f"  {name.ljust(10)} {aval}{text}{'' if same else f' in {who}'}"
            )
            name, aval = "", " " * len(aval)
    difference = first.difference
    lines.append(f"  {'difference':10} {difference}{at_index(difference)}")
    elements = [
        f"{number(x)} in {who}"
        for x, who in zip((difference.left, difference.right), names, strict=True)
    ]
    return [*lines, f"{'':13}{', '.join(elements)}{count_text(difference)}"]


def number(value: Element) -> str:
    """An element in as many digits as tell floats apart."""
    return f"{value:.9g}" if isinstance(value, float | complex) else str(value)


def at_index(difference: Difference) -> str:
    """The place of the worst element, in an array."""
    return f" at [{', '.join(map(str, difference.index))}]" if difference.index else ""


def count_text(difference: Difference) -> str:
    """How many elements are beyond the tolerance."""
    if difference.size == 1:
        return ""
    return f"; {difference.count:,} of {difference.size:,} are beyond the tolerance"


def facts_of(names: tuple[str, str], first: Divergence) -> list[tuple[str, str]]:
    """What is known of the two equations, by name."""
    sides = (first.left, first.right)
    if sides == (None, None):
        text = "each equation agrees, the compiled program as a whole does not"
        return [("made by", text)]
    facts = []
    for name in ("line", "code", "derived by", "equation"):
        texts = [fact(name, side) for side in sides]
        if texts[0] == texts[1]:
            facts += [(name, texts[0])] if texts[0] else []
            continue
        both = zip(texts, names, strict=True)
        facts += [(name, f"{text} in {who}") for text, who in both if text]
    left = first.left or first.right
    levels = left.levels if left is not None else ()
    facts += [("inside", str(level)) for level in levels]
    for name, eqns in zip(names, (first.only_left, first.only_right), strict=True):
        facts += [(f"only in {name}", f"{eqn!r}, at {eqn.source}") for eqn in eqns]
    return facts


def fact(name: str, side: Executed | None) -> str:
    """What is known of an equation; an output that none makes is an input."""
    if side is None:
        return "an input or a constant" if name == "equation" else ""
    source = side.source
    texts = {"line": place_of(source), "derived by": source.origin}
    texts |= {"code": "" if source.code is None else source.text}
    return texts.get(name, repr(side.eqn))


def place_of(source: Source) -> str:
    """A line of the user's, in words."""
    if source.code is None:
        return ""
    return f"{source.file}:{source.line} ({source.function})"


def value_rows(first: Divergence) -> list[tuple[str, str, str, str]]:
    """Operands and results: name, type, and the elements in both."""
    left, right = first.left, first.right
    if left is None or right is None:
        return []
    sides = (left, right)
    operands = [paired(x.eqn.invars, x.operands) for x in sides]
    results = [paired(x.eqn.outvars, x.results) for x in sides]
    rows = []
    for word, (ours, theirs) in (("operand", operands), ("result", results)):
        for k, pair in enumerate(zip_longest(ours, theirs)):
            texts = [" is missing" if one is None else value_text(*one) for one in pair]
            ((atom, _), *_) = [one for one in pair if one is not None]
            rows.append((f"{word} {k}", str(atom.aval), texts[LEFT], texts[RIGHT]))
    return rows


def paired(
    atoms: Sequence[Atom], values: Sequence[np.ndarray]
) -> list[tuple[Atom, np.ndarray]]:
    """Atoms with their values."""
    return list(zip(atoms, values, strict=True))


def value_text(atom: Atom, value: np.ndarray) -> str:
    """The elements of a value."""
    constant = f", {CONSTANT}" if isinstance(atom, Literal) else ""
    return f" = {elements(value)}{constant}"


def elements(value: np.ndarray) -> str:
    """The values of a small array in full, of others the ends."""
    edge = 2 if value.ndim < 2 else 1
    text = np.array2string(value, threshold=SHOWN, edgeitems=edge, separator=", ")
    line = " ".join(text.split())
    return line if len(line) <= WIDTH else f"{line[:WIDTH]}…"


def table_lines(comparison: Comparison) -> list[str]:
    """The table of the largest differences by line."""
    rows = [row_texts(row) for row in comparison.rows[:LINES]]
    if not rows:
        return []
    table = [f"  {row}" for row in columns([HEADS, *rows])]
    lines = ["largest differences by line", *table]
    left = len(comparison.rows) - len(rows)
    return [*lines, *[f"  and {left:,} more lines, in .rows" for _ in range(left > 0)]]


def row_texts(row: LineDifference) -> tuple[str, str, str, str, str]:
    """A line of the table: the difference, the operation, the user's lines."""
    difference = row.difference
    places = [place_of(row.left) or "unknown", place_of(row.right) or "unknown"]
    where = " and ".join(dict.fromkeys(places))
    inside = ", ".join([describe(level) for level in row.levels])
    return (
        f"{brief(difference.absolute)}{'*' * difference.parts}",
        brief(difference.relative),
        "" if difference.ulps is None else brief(difference.ulps),
        " and ".join(dict.fromkeys(row.primitives)),
        f"{where}, in {inside}" if inside else where,
    )
