"""Floor 0: rows of texts in columns, as reports print them.

>>> print("\\n".join(columns([("line", "flops"), ("x + y", "12")], left=1)))
line   flops
x + y     12
"""

from collections.abc import Iterator, Sequence


def columns(rows: Sequence[Sequence[str]], left: int | None = None) -> Iterator[str]:
    """The rows, whose cells stand below each other.

    The first `left` columns are flush left, by default all; those of numbers that
    follow are flush right, and the last is as it is.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            text.ljust(width) if left is None or i < left else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
