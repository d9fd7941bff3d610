"""Floor 0: reports for notebooks: escaped tables, and long texts that are folded.

One idea: a report is a few tables of texts, and all that could go wrong with texts is
done here: they are escaped, cut where they are too long, and coloured so that they can
be read on light and on dark pages::

    report(table("Colours", ("name", "share"), [("red", Cell("3/4", hue=0))]))
"""

import re
from collections.abc import Sequence
from typing import Final

from attrs import frozen

from verax.ir.records import ReprMixin
from verax.ir.text.printer import escaped

ROWS: Final = 64
"""The most rows of a table."""
LINES: Final = 200
"""The most lines of a folded text."""
LETTERS: Final = 400
"""The most letters of a line: constants among code can have millions."""
CELL_LINES: Final = 20
"""The most lines in one cell of a table."""
NO_TEXT: Final = re.compile("[^\t\n -~\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What neither HTML nor XML may hold: control characters and halves of characters."""
GOLDEN_ANGLE: Final = 137.508
"""Degrees between two colours, so that none of many is close to the one before it."""
BLOCK: Final = ".verax-report"
SHEET: Final = (
    f"<style>{BLOCK}{{overflow-x:auto;line-height:1.4}}"
    f"{BLOCK} table{{border-collapse:collapse;margin:0 0 .8em;font-size:90%}}"
    f"{BLOCK} caption{{caption-side:top;text-align:left;color:inherit;"
    "font-weight:bold;padding:.3em 0;white-space:pre}"
    f"{BLOCK} th,{BLOCK} td{{border:1px solid #8886;padding:.15em .6em;color:inherit;"
    "text-align:left;vertical-align:top}"
    f"{BLOCK} thead th,{BLOCK} thead td{{background:#8882}}"
    f"{BLOCK} tbody th{{font-weight:normal;white-space:nowrap}}"
    f"{BLOCK} td,{BLOCK} pre{{font-family:ui-monospace,Menlo,Consolas,monospace}}"
    f"{BLOCK} td{{white-space:pre-wrap;overflow-wrap:break-word;max-width:60em}}"
    f"{BLOCK} .grid td{{white-space:nowrap}}"
    f"{BLOCK} details{{margin:0 0 .8em}}"
    f"{BLOCK} summary{{cursor:pointer}}"
    f"{BLOCK} pre{{overflow:auto;max-height:30em;margin:.3em 0;padding:.5em;"
    "font-size:85%;color:inherit;background:#8881;border:1px solid #8886}</style>"
)
"""Greys that let the page through, under the page's own colour of text."""


@frozen(repr=False)
class Cell(ReprMixin):
    """A text in a table; a ground of colour `hue`, in degrees, and a tooltip."""

    text: str
    hue: int | None = None
    tip: str = ""


type Row = Sequence[str | Cell]
"""The head of a row, then its cells."""


def hue_of(number: int) -> int:
    """A colour for each number, in degrees.

    >>> hue_of(0), hue_of(1), hue_of(2)
    (0, 137, 275)
    """
    return int(number * GOLDEN_ANGLE) % 360


def safe(text: str) -> str:
    """The text escaped, without what no page may hold.

    >>> safe("a<b\\x00")
    'a&lt;b\ufffd'
    """
    return escaped(NO_TEXT.sub("\ufffd", text))


def cut(text: str, most: int) -> tuple[str, int]:
    """At most so many lines, none too long, and the number of those left out.

    >>> cut("a\\nb\\nc", 2)
    ('a\\nb', 1)
    """
    lines = text.split("\n")
    shown = [x if len(x) <= LETTERS else f"{x[:LETTERS]}…" for x in lines[:most]]
    return "\n".join(shown), len(lines) - len(shown)


def report(*parts: str) -> str:
    """What a notebook shows: tables and folded texts, one below the other."""
    return f'{SHEET}<div class="verax-report">{"".join(parts)}</div>'


def table(
    caption: str,
    heads: Sequence[str],
    rows: Sequence[Row],
    *,
    rest: str = "",
    kind: str = "",
) -> str:
    """A table whose rows and columns have heads; there may be no row of heads.

    `rest` says below what is left out, by default how many rows; `kind` is a class.
    """
    if not rows and not rest:
        return f"<p><b>{safe(caption)}</b></p>"
    if len(rows) > ROWS and not rest:
        rest = f"and {len(rows) - ROWS:,} more"
    head = "".join([column_head(text) for text in heads])
    body = "".join([f"<tr>{line(row)}</tr>" for row in rows[:ROWS]])
    opening = f' class="{kind}"' if kind else ""
    width = max(len(heads), *[len(row) for row in rows[:ROWS]], 1)
    below = f'<tfoot><tr><td colspan="{width}">{safe(rest)}</td></tr></tfoot>'
    return (
        f"<table{opening}><caption>{safe(caption)}</caption>"
        f"{f'<thead><tr>{head}</tr></thead>' if heads else ''}"
        f"<tbody>{body}</tbody>{below if rest else ''}</table>"
    )


def column_head(text: str) -> str:
    """The head of a column; a corner without words is an ordinary cell."""
    return f'<th scope="col">{safe(text)}</th>' if text else "<td></td>"


def line(row: Row) -> str:
    """The cells of a row, of which the first is its head."""
    first, *others = [x if isinstance(x, Cell) else Cell(x) for x in row]
    head = f'<th scope="row"{looks(first)}>{words(first)}</th>'
    return head + "".join([f"<td{looks(x)}>{words(x)}</td>" for x in others])


def looks(cell: Cell) -> str:
    """The attributes of a cell."""
    ground = f"background:hsl({cell.hue} 70% 50%/.25)"
    colour = "" if cell.hue is None else f' style="{ground}"'
    return f'{colour} title="{safe(cell.tip)}"' if cell.tip else colour


def words(cell: Cell) -> str:
    """The text of a cell."""
    text, left = cut(cell.text, CELL_LINES)
    return safe(f"{text}\n…" if left else text)


def folded(summary: str, text: str, rest: str = "") -> str:
    """A text that shows when it is asked for; `rest` says where all of it is."""
    shown, left = cut(text, LINES)
    more = f"\n… {left:,} more lines{f': {rest}' if rest else ''}" if left else ""
    return (
        f"<details><summary>{safe(summary)}</summary>"
        f'<pre tabindex="0">{safe(shown + more)}</pre></details>'
    )
