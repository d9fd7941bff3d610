"""Pictures for the examples: charts as SVG, readable on light and dark pages.

A panel turns numbers into elements, which are strings; `write_svg` writes the file.
Text stays text, colours are classes, and the same numbers give the same bytes::

    panel = Panel((60, 40, 300, 200), (0, 10), (0.1, 5), log=True)
    write_svg(path, (400, 280), "Loss", panel.axes("step", "nats"), panel.line(x, y, 0))
"""

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import ArrayLike, NDArray

type Box = tuple[float, float, float, float]
type Pair = tuple[float, float]
type Pixels = NDArray[np.floating[Any]]

LIGHT = ("#ffffff", "#1f2328", "#656d76", "#d8dee4")
DARK = ("#0d1117", "#e6edf3", "#8d96a0", "#2b323b")
COLOURS_ON_LIGHT = ("#2563c9", "#d4620a", "#12805c", "#8446b8", "#b3261e")
COLOURS_ON_DARK = ("#75a8ff", "#ffa657", "#4cc9a0", "#cf9dff", "#ff8a80")
FONT = 'ui-sans-serif, system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif'
COMMON = f"""\
text {{ font: 12px {FONT}; stroke: none }}
.small {{ font-size: 11px }} .head {{ font-size: 15px; font-weight: 600 }}
.mono {{ font: 12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace }}
path {{ stroke-linejoin: round; stroke-linecap: round }}"""


def theme(greys: Sequence[str], colours: Sequence[str]) -> str:
    """CSS: the greys by name, and `s0 f0, s1 f1, ...` to stroke and to fill."""
    page, ink, faint, grid = greys
    rules = [
        f".page {{ fill: {page} }} text {{ fill: {ink} }}",
        f".faint {{ fill: {faint} }} .ink {{ stroke: {ink} }}",
        f".grid {{ stroke: {grid} }} .ground {{ fill: {grid} }}",
    ]
    for i, colour in enumerate(colours):
        rules.append(f".s{i} {{ stroke: {colour} }} .f{i} {{ fill: {colour} }}")
    return "\n".join(rules)


def write_svg(path: Path, size: Pair, title: str, *elements: str) -> None:
    """Write the elements into one picture of this width and height, in pixels."""
    width, height = size
    dark = theme(DARK, COLOURS_ON_DARK)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>\n{COMMON}\n{theme(LIGHT, COLOURS_ON_LIGHT)}",
        f"@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n</style>",
        f'<rect class="page" width="{width:g}" height="{height:g}" rx="8"/>',
        *elements,
        "</svg>",
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def label(
    x: float,
    y: float,
    string: str,
    kind: str = "",
    anchor: str = "start",
    width: float = 0,
) -> str:
    """One line of text at a place in pixels, of this width if it is not zero."""
    stretched = f' textLength="{width:g}" xml:space="preserve"' if width else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}"'
        f"{stretched}>{escape(string)}</text>"
    )


def stroke(
    path: str, kind: str, width: float = 1, opacity: float = 1, dashes: str = "none"
) -> str:
    """A path that is drawn along its line."""
    return (
        f'<path d="{path}" class="{kind}" fill="none" stroke-width="{width:g}" '
        f'stroke-opacity="{opacity:.3g}" stroke-dasharray="{dashes}"/>'
    )


def area(path: str, kind: str, opacity: float = 1) -> str:
    """A closed path that is filled."""
    return f'<path d="{path}" class="{kind}" fill-opacity="{opacity:.3g}"/>'


def legend(x: float, y: float, *names: str, first: int = 0) -> str:
    """Names below each other, each beside a stroke of its colour."""
    rows = []
    for i, name in enumerate(names):
        line = y + 18 * i
        rows.append(stroke(f"M{x:g} {line - 4:g}h16", f"s{first + i}", 2.5))
        rows.append(label(x + 23, line, name))
    return "\n".join(rows)


def portion(value: ArrayLike, ends: Pair, log: bool) -> Pixels:
    """Where numbers are between two ends, from 0 to 1."""
    scale: Callable[[ArrayLike], Pixels] = np.log if log else np.asarray
    low, high = scale(ends[0]), scale(ends[1])
    return np.asarray((scale(value) - low) / (high - low))


def ticks(ends: Pair, log: bool, count: int = 5) -> list[float]:
    """About `count` round numbers; if `log`, powers of ten, times 1, 2 and 5."""
    low, high = ends
    if log:
        powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
        factors = (1, 2, 5) if high / low < 100 else (1,)
        values = [m * 10.0**p for p in powers for m in factors]
        return [value for value in values if low * 0.999 <= value <= high * 1.001]
    rough = (high - low) / count
    power = 10.0 ** np.floor(np.log10(rough))
    step = power * min((1, 2, 5, 10), key=lambda m: abs(np.log(m * power / rough)))
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    return [float(round(step * i, 9)) + 0.0 for i in np.arange(first, last + 1)]


@frozen
class Panel:
    """A box of the picture (left, top, width, height), and the numbers at its edges."""

    box: Box
    xs: Pair
    ys: Pair
    log: bool = False
    log_x: bool = False

    def x(self, value: ArrayLike) -> Pixels:
        """Pixels from the left of the picture."""
        return self.box[0] + self.box[2] * portion(value, self.xs, self.log_x)

    def y(self, value: ArrayLike) -> Pixels:
        """Pixels from the top of the picture."""
        return self.box[1] + self.box[3] * (1 - portion(value, self.ys, self.log))

    def axes(
        self,
        xlabel: str = "",
        ylabel: str = "",
        title: str = "",
        xticks: Sequence[float] | None = None,
        yticks: Sequence[float] | None = None,
    ) -> str:
        """Grid, ticks and labels; the title and the vertical label stand above."""
        left, top, width, height = self.box
        right, bottom = left + width, top + height
        parts = [label(left, top - 26, title, "head")] if title else []
        parts.append(label(left, top - 8, ylabel, "faint small"))
        parts.append(label(right, bottom + 32, xlabel, "faint small", "end"))
        for value in ticks(self.xs, self.log_x) if xticks is None else xticks:
            x = float(self.x(value))
            parts.append(stroke(f"M{x:.1f} {top:g}V{bottom:g}", "grid"))
            parts.append(label(x, bottom + 16, f"{value:g}", "faint small", "middle"))
        for value in ticks(self.ys, self.log) if yticks is None else yticks:
            y = float(self.y(value))
            parts.append(stroke(f"M{left:g} {y:.1f}H{right:g}", "grid"))
            parts.append(label(left - 6, y + 4, f"{value:g}", "faint small", "end"))
        return "\n".join(parts)

    def points(self, x: ArrayLike, y: ArrayLike) -> str:
        """The inside of a path through points."""
        pairs = zip(self.x(x), self.y(y), strict=True)
        return "L".join(f"{a:.1f} {b:.1f}" for a, b in pairs)

    def line(
        self,
        x: ArrayLike,
        y: ArrayLike,
        kind: str,
        width: float = 1.8,
        opacity: float = 1,
        dashes: str = "none",
    ) -> str:
        """A line through points."""
        return stroke(f"M{self.points(x, y)}", kind, width, opacity, dashes)

    def band(
        self, x: ArrayLike, low: ArrayLike, high: ArrayLike, kind: str, opacity: float
    ) -> str:
        """The area between two lines."""
        back = self.points(np.flip(x), np.flip(low))
        return area(f"M{self.points(x, high)}L{back}Z", kind, opacity)

    def dots(
        self, x: ArrayLike, y: ArrayLike, kind: str, radius: float, opacity: float = 1
    ) -> str:
        """A dot at each point."""
        pairs = zip(np.ravel(self.x(x)), np.ravel(self.y(y)), strict=True)
        parts = [
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{radius:g}"/>' for a, b in pairs
        ]
        return f'<g class="{kind}" fill-opacity="{opacity:g}">{"".join(parts)}</g>'

    def bars(
        self, edges: ArrayLike, heights: ArrayLike, kind: str, opacity: float = 1
    ) -> str:
        """Bars that stand on the lower edge, each between two neighbours of `edges`."""
        ends, tops = self.x(edges), self.y(heights)
        floor = float(self.y(self.ys[0]))
        parts = [
            f"M{a + 0.4:.1f} {floor:.1f}V{top:.1f}H{b - 0.4:.1f}V{floor:.1f}Z"
            for a, b, top in zip(ends[:-1], ends[1:], tops, strict=True)
        ]
        return area("".join(parts), kind, opacity)

    def cells(self, values: NDArray[Any], kind: str) -> str:
        """A matrix as squares, its first row on top: 0 is clear, and 1 is opaque."""
        left, top, width, height = self.box
        w, h = width / values.shape[1], height / values.shape[0]
        levels = np.rint(20 * values)
        parts = []
        for level in range(1, 21):
            squares = [
                f"M{left + w * j:.1f} {top + h * i:.1f}h{w:.2f}v{h:.2f}h-{w:.2f}Z"
                for i, j in np.argwhere(levels == level)
            ]
            if squares:
                parts.append(area("".join(squares), kind, level / 20))
        return "\n".join(parts)
