"""Floor 6: programs pinned in files: a test fails once a program is another.

One idea: a program is text that does not depend on the process, so a file of it, with
its figures on top, is both the expectation of a test and what a reviewer reads::

    verify.assert_same_program("loss.jaxpr", loss, weights, batch)

A variable is called by what made it (`dot_general2`), so that one more equation leaves
the lines of all others as they are; and an inner program that runs at several places is
written at the first.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher, unified_diff
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np
from attrs import evolve, field, frozen

from verax.api.inspect.make_jaxpr import Numbers, make_jaxpr
from verax.api.jit import PjitFunction
from verax.api.tracing.wrapping import function_name
from verax.explorer.collectives import Collective, Collectives, collectives as talk
from verax.explorer.rows.jaxpr import Table
from verax.explorer.rows.row import fill_live
from verax.ir.atoms import Atom, Identity, Literal, Var, array_literal, letters
from verax.ir.forms.saving import array_bytes
from verax.ir.jaxpr import (
    NO_PARAMS,
    UNKNOWN_SOURCE,
    ClosedJaxpr,
    Eqn,
    Jaxpr,
    Source,
)
from verax.ir.records import ReprMixin
from verax.ir.text.printer import (
    Commented,
    Equation,
    Layout,
    Printer,
    Program,
    lines,
    prefixed,
)
from verax.ir.walk import count_eqns
from verax.ops.parallel.meeting import CollectiveParams
from verax.rules.rows.costs import Costs, bytes_of, is_choice, trips
from verax.rules.values.conversions import check_callable, shown
from verax.rules.values.lazy import loaded

VARIABLE: Final = "VERAX_UPDATE_PROGRAMS"
"""The environment variable that has the files written."""
ACCEPT: Final = (
    f"{VARIABLE}=1 in the environment, pytest --verax-update (with the plugin "
    "verax.verify.plugin), or update=True"
)

# -----------------------------------------------------------------------------
# The figures of a program, by name.
#
# They are those of the explorer, from types alone: a loop counts as often as it runs,
# but once where only values say how often; of branches the largest counts::
#
#     figures_of(closed)    # {"equations": 12, "flops": 3200, ..., "psum calls": 1}


ALWAYS: Final = ("equations", "flops", "bytes", "peak bytes")
"""The figures of every program; others are of the collectives that it has."""


class Tally:
    """Counts collectives, those in programs inside as often as these run."""

    def __init__(self) -> None:
        self.known: dict[int, Mapping[str, int]] = {}

    def of_program(self, jaxpr: Jaxpr) -> Mapping[str, int]:
        """The calls and bytes of the collectives of a program, by name."""
        if id(jaxpr) not in self.known:
            out: Counter[str] = Counter()
            for eqn in jaxpr.eqns:
                out.update(self.of(eqn))
            self.known[id(jaxpr)] = out
        return self.known[id(jaxpr)]

    def of(self, eqn: Eqn) -> Mapping[str, int]:
        """Those of one run of an equation."""
        params, name = eqn.params, eqn.primitive.name
        if params is NO_PARAMS:
            return {}
        if isinstance(params, CollectiveParams):  # one without operands moves nothing
            size = sum([bytes_of(a.aval) for a in eqn.invars])
            return {f"{name} calls": 1, f"{name} bytes": size} if eqn.invars else {}
        inner = [self.of_program(p) for p in params.subjaxprs(aside=False)]
        labels = dict.fromkeys([label for each in inner for label in each])
        times, together = int(trips(eqn) or 1), max if is_choice(eqn) else sum
        return {
            label: times * together([each.get(label, 0) for each in inner])
            for label in labels
        }


def equation_count(jaxpr: Jaxpr, known: dict[int, int]) -> int:
    """The number of equations, those inside once for each place where they run."""
    if id(jaxpr) not in known:
        known[id(jaxpr)] = len(jaxpr.eqns) + sum(
            [
                equation_count(inner, known)
                for eqn in jaxpr.eqns
                if eqn.params is not NO_PARAMS
                for inner in eqn.params.subjaxprs(aside=False)
            ]
        )
    return known[id(jaxpr)]


def figures_of(jaxpr: Jaxpr) -> dict[str, int]:
    """What a program costs, as far as its types say."""
    cost, table = Costs().of_program(jaxpr), Table()
    table.program(jaxpr, jaxpr)
    peak = fill_live(table.rows)
    figures = (
        equation_count(jaxpr, {}),
        round(cost.flops or 0),
        round(cost.bytes or 0),
        round(peak.bytes) if peak else 0,
    )
    counted = Tally().of_program(jaxpr)
    return dict(zip(ALWAYS, figures, strict=True)) | dict(sorted(counted.items()))


def talk_label(entry: Collective) -> str:
    """What collectives have in common that one figure counts."""
    axes = " and ".join([re.sub(r"\W", "_", axis) for axis in entry.axes])
    return f"{entry.kind} over {axes or 'devices'}"


def talk_figures(report: Collectives | None) -> dict[str, int]:
    """The runs of collectives in one run of a program, and their bytes on a device."""
    out: Counter[str] = Counter()
    for entry in () if report is None else report.entries:
        label = talk_label(entry)
        out.update({f"{label} calls": round(entry.times)})
        out.update({f"{label} bytes": round(entry.total)})
    return dict(sorted(out.items()))


def talk_lines(report: Collectives | None, names: Iterable[str]) -> list[str]:
    """The lines of the user's behind those figures that are named."""
    keys = set(names)
    return [
        f"{talk_label(entry)}: {entry.times:g} times {entry.bytes:,} bytes for "
        f"{place_in(entry.file, entry.line, entry.function)}: {entry.code}"
        for entry in (() if report is None else report.entries)
        if {f"{talk_label(entry)} {what}" for what in ("calls", "bytes")} & keys
    ]


# -----------------------------------------------------------------------------
# The text of a program, line by line, and the equations that the lines are of.


WIDTH: Final = 88
FEW: Final = 2
"""Programs of so few equations are written wherever they run."""
NUMBERED: Final = re.compile(r"(?s)(.*?)(?:  # (\d+))?")
DIGITS: Final = 12
"""The digits of the hash of a constant."""


@frozen(repr=False)
class Line(ReprMixin):
    """A line of a pinned program; of what it was made, where that is known."""

    text: str
    primitive: str = field(default="", eq=False)
    source: Source = field(default=UNKNOWN_SOURCE, eq=False)


def label_of(eqn: Equation) -> str:
    """A word for an equation: the name of the function that it calls, or its own."""
    name = getattr(eqn.params, "name", None)
    for each in (name, eqn.primitive.name):
        word = re.sub(r"\W+", "_", each).strip("_") if isinstance(each, str) else ""
        if word and not word[0].isdigit():
            return word
    return "value"


def variable_names(program: Program) -> dict[int, str]:
    """The names of variables: constants, letters for inputs, and what made the rest."""
    out: dict[int, str] = {}
    for number, var in enumerate(program.constvars):
        out[var.index] = f"const{number}"
    for number, var in enumerate(program.invars):
        out[var.index] = letters(number)
    taken, counts = set(out.values()), Counter[str]()
    for eqn in program.eqns:
        label = label_of(eqn)
        counts[label] += 1
        joint = "_" if label[-1].isdigit() else ""
        stem = f"{label}{joint}{counts[label]}"
        for number, var in enumerate(eqn.outvars):
            name = stem if len(eqn.outvars) == 1 else f"{stem}_{number}"
            while name in taken:
                name += "_"
            taken.add(name)
            out[var.index] = name
    return out


class PinnedPrinter(Printer):
    """Lays a program out; its equations are numbered by comments, for `program_lines`.

    `shared` are the inner programs that are written once, at their first place; without
    it, all are, and `uses` counts the places.
    """

    def __init__(self, shared: frozenset[Program] | None, consts: int) -> None:
        super().__init__(sources=False, types=True)
        self.shared = shared
        self.uses: Counter[Program] = Counter()
        self.references: dict[Program, str] = {}
        self.heads: Counter[str] = Counter()
        self.eqns: list[Equation] = []
        self.names: Mapping[int, str] = {}
        self.label = ""
        for _ in range(consts):  # those of the program itself have the first numbers
            next(self.numbers)

    def program(self, program: Program) -> Layout:
        """A program, or the reference to it if it stands above."""
        self.uses[program] += 1
        again = self.uses[program] > 1
        if self.shared is None:
            return "#" if again else self.written(program)
        if program not in self.shared:
            return self.written(program)
        if again:
            return self.references[program]
        self.heads[self.label] += 1
        number = self.heads[self.label]
        reference = f"#{self.label}" if number == 1 else f"#{self.label}_{number}"
        self.references[program] = reference
        return prefixed(f"{reference} ", self.written(program))

    def written(self, program: Program) -> Layout:
        """A whole program, with names of its own."""
        outer, label = self.names, self.label
        self.names = variable_names(program)
        out = super().program(program)
        self.names, self.label = outer, label
        return out

    def equation(self, eqn: Equation, used: frozenset[int]) -> Layout:
        """One equation, with its number as a comment."""
        self.label = label_of(eqn)
        layout = super().equation(eqn, used)
        self.eqns.append(eqn)
        return Commented(layout, str(len(self.eqns) - 1))

    def atom(self, atom: object) -> str:
        """An operand, by the name of this printer."""
        return self.names[atom.index] if type(atom) is Var else super().atom(atom)

    def binder(self, var: Var, name: str = "") -> str:
        """The definition of a variable, by the name of this printer."""
        return super().binder(var, name or self.names[var.index])

    def opaque(self, value: object) -> str:
        """An array by its hash; of any other object its name."""
        if isinstance(value, np.ndarray):
            return f"<{value.dtype}{list(value.shape)} {hash_of(value.tobytes())}>"
        return super().opaque(value)


def hash_of(data: bytes) -> str:
    """A short word for bytes."""
    return sha256(data).hexdigest()[:DIGITS]


def laid_out(jaxpr: Jaxpr) -> tuple[PinnedPrinter, Layout]:
    """A program as it is written, and the printer that did it."""
    count = len(jaxpr.constvars)
    draft = PinnedPrinter(None, count)
    draft.program(jaxpr)
    often = [program for program, number in draft.uses.items() if number > 1]
    shared = [p for p in often if isinstance(p, Jaxpr) and count_eqns(p) > FEW]
    printer = PinnedPrinter(frozenset(shared), count)
    return printer, printer.program(jaxpr)


def program_lines(closed: ClosedJaxpr) -> tuple[Line, ...]:
    """The lines of a program, then one for each array that it captures."""
    printer, layout = laid_out(closed.jaxpr)
    out: list[Line] = []
    ends: list[tuple[int, Line]] = []
    for text in reversed(list(lines(layout, 0, WIDTH))):
        match = NUMBERED.fullmatch(text)
        assert match is not None
        written, number = match.groups()
        indent = len(written) - len(written.lstrip())
        if number is not None:
            eqn = printer.eqns[int(number)]
            ends = [end for end in ends if end[0] < indent]
            ends.append((indent, Line("", eqn.primitive.name, source_of(eqn))))
        # What has no number belongs to the equation that ends below, and not inside it.
        around = [end for depth, end in ends if depth <= indent]
        out.append(evolve(around[-1], text=written) if around else Line(written))
    return (*reversed(out), *constant_lines(closed, printer))


def source_of(eqn: Equation) -> Source:
    """The user's line of an equation."""
    return eqn.source if isinstance(eqn.source, Source) else UNKNOWN_SOURCE


def constant_lines(closed: ClosedJaxpr, printer: PinnedPrinter) -> Iterable[Line]:
    """The arrays that a program captures: their types, and hashes of their values."""
    pairs = zip(closed.jaxpr.constvars, closed.consts, strict=True)
    held: list[tuple[str, Atom, Literal]] = [
        (f"const{number}", var, array_literal(value, var.aval))
        for number, (var, value) in enumerate(pairs)
    ]
    for use in closed.jaxpr.used_consts:
        assert isinstance(use.literal.key, Identity)
        held.append((printer.consts[use.literal.key], use.literal, use.literal))
    for name, atom, literal in held:
        reads = [eqn for eqn in closed.jaxpr.eqns if atom in eqn.invars]
        source = reads[0].source if reads else UNKNOWN_SOURCE
        yield Line(f"{name}:{atom.aval} is {value_hash(literal)}", "", source)


def value_hash(literal: Literal) -> str:
    """A short word for the value of a captured array.

    Raises:
        TypeError: it has none, since a function is being traced.
    """
    if hasattr(literal.value, "atom"):
        raise TypeError(
            f"the program captures a tracer of type {literal.aval}: pin programs "
            "outside of functions that are traced"
        )
    return hash_of(array_bytes(literal))


# -----------------------------------------------------------------------------
# A pinned program, and its file.
#
# The file says the version that wrote it, but what is compared are figures and lines::
#
#     verax program 1: loss, by verax 1.0.0
#
#     equations: 2
#     flops: 1,024
#     ...
#
#     { lambda ; a:f32[512]. let
#         sin1:f32[512] = sin a
#       ...


HEAD: Final = re.compile(r"verax program (\d+): (.*), by verax (\S+)")
FORMAT: Final = 1
FIGURE: Final = re.compile(r"([a-z][\w -]*): ([\d,]+)")


@frozen(repr=False)
class Pinned(ReprMixin):
    """A program as its file holds it.

    Attributes:
        name: the function's.
        version: of the verax that wrote it.
        figures: see `figures_of`.
        lines: its text, and the arrays that it captures.
    """

    name: str
    version: str
    figures: Mapping[str, int]
    lines: tuple[Line, ...]

    @property
    def text(self) -> str:
        """What the file holds."""
        figures = [f"{name}: {value:,}" for name, value in self.figures.items()]
        head = f"verax program {FORMAT}: {self.name}, by verax {self.version}"
        body = [line.text for line in self.lines]
        return "\n".join([head, "", *figures, "", *body, ""])


def pinned_of(
    name: str, closed: ClosedJaxpr, report: Collectives | None = None
) -> Pinned:
    """A program, ready to be compared or written, maybe with its collectives."""
    written = program_lines(closed)
    figures = figures_of(closed.jaxpr) | talk_figures(report)
    return Pinned(name, loaded("verax", "__version__"), figures, written)


class NotPinned(ValueError):
    """A file holds no pinned program.

    >>> import pathlib, tempfile, verax.numpy as vnp
    >>> from verax import verify
    >>> path = pathlib.Path(tempfile.mkdtemp(), "sine.jaxpr")
    >>> _ = path.write_text("nothing")
    >>> verify.assert_same_program(path, vnp.sin, 1.0)
    Traceback (most recent call last):
    ...
    verax.verify.NotPinned: ...
    """

    __module__ = "verax.verify"


def read_pinned(text: str) -> Pinned:
    """The program that a file holds.

    Raises:
        NotPinned: it is damaged, or holds something else.
    """
    head, *rest = [line.rstrip() for line in text.splitlines()] or [""]
    match = HEAD.fullmatch(head)
    if match is None:
        raise NotPinned(f"its first line is {shown(head)}, not 'verax program ...'")
    if int(match[1]) != FORMAT:
        raise NotPinned(f"it has format {match[1]}, and this verax reads {FORMAT}")
    figures: dict[str, int] = {}
    while rest and not rest[0].startswith("{"):
        line = rest.pop(0)
        figure = FIGURE.fullmatch(line)
        if figure is not None:
            figures[figure[1]] = int(figure[2].replace(",", ""))
        elif line:
            raise NotPinned(f"{shown(line)} is no figure of a program")
    missing = [name for name in ALWAYS if name not in figures]
    if missing or not rest:
        raise NotPinned(f"it lacks {', '.join(missing) or 'a program'}")
    while not rest[-1]:
        rest.pop()
    return Pinned(match[2], match[3], figures, tuple(map(Line, rest)))


# -----------------------------------------------------------------------------
# What differs between two pinned programs, in words.


MOST: Final = 40
"""The most lines of a difference that are shown."""
NEAR: Final = 400
"""The lines after the first different one in which a line is looked for."""
UNITS: Final = ("", "k", "M", "G", "T", "P")


def short_number(value: int) -> str:
    """A number for readers.

    >>> short_number(12), short_number(3_276_800), short_number(999_999)
    ('12', '3.28M', '1M')
    """
    scaled, unit = float(value), 0
    while scaled >= 999.5 and unit < len(UNITS) - 1:
        scaled, unit = scaled / 1000, unit + 1
    return f"{float(f'{scaled:.3g}'):g}{UNITS[unit]}"


def figure_change(name: str, old: int, new: int) -> str:
    """One figure that is another now.

    >>> figure_change("flops", 3_200_000, 6_400_000)
    'flops 3.2M -> 6.4M (+100 %)'
    >>> figure_change("flops", 3_200_000, 3_200_320)
    'flops 3,200,000 -> 3,200,320 (+0.01 %)'
    """
    before, after = short_number(old), short_number(new)
    if before == after:
        before, after = f"{old:,}", f"{new:,}"
    share = f" ({100 * (new - old) / old:+.3g} %)" if old else ""
    return f"{name} {before} -> {after}{share}"


def changed_figures(old: Pinned, new: Pinned) -> dict[str, tuple[int, int]]:
    """The figures that differ; 0 for those that one of them lacks."""
    names = dict.fromkeys([*old.figures, *new.figures])
    pairs = {n: (old.figures.get(n, 0), new.figures.get(n, 0)) for n in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def part_of(line: Line) -> str:
    """The part of a program that a line is of."""
    text = line.text.lstrip()
    outside = {"{": "the inputs", "c": "a captured array"}
    return line.primitive or outside.get(text[:1], "the results")


def place_of(line: Line) -> str:
    """The part of the program that a line is of, and the user's line with its text."""
    source, part = line.source, part_of(line)
    if source.code is None:
        return part
    code = source.text
    origin = f", by {source.origin}" if source.origin else ""
    place = place_in(source.file, source.line, f"{source.function}{origin}")
    said = f"{part}, from {place}"
    return f"{said}: {code}" if code else said


def place_in(file: str, line: int, function: str) -> str:
    """A line of a file, whose path is that from here if it is below."""
    path, folder = Path(file), Path.cwd()
    short = path.relative_to(folder) if path.is_relative_to(folder) else path
    return f"{short}:{line} ({function})"


def first_difference(old: Sequence[Line], new: Sequence[Line]) -> str:
    """The first lines that differ, and where they come from."""
    pairs = enumerate(zip(old, new, strict=False))
    unequal = (number for number, (a, b) in pairs if a.text != b.text)
    start = next(unequal, min(len(old), len(new)))
    before = [line.text for line in old[start : start + NEAR]]
    after = [line.text for line in new[start : start + NEAR]]
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    gone, come = blocks[0].a, blocks[0].b
    lost = [f"    - {text.strip()}" for text in before[: min(gone, 1)]]
    made = [f"    + {text.strip()}" for text in after[: min(come, 1)]]
    where = place_of(new[start]) if start < len(new) else "the end"
    word = "in" if made else "before"
    return "\n".join([f"first difference, {word} {where}", *lost, *made])


def line_differences(old: Pinned, new: Pinned) -> list[str]:
    """The lines that differ, with those around them, as far as they are few."""
    out = list(
        unified_diff(
            [line.text for line in old.lines],
            [line.text for line in new.lines],
            "the file",
            "now",
            n=2,
            lineterm="",
        )
    )
    left = len(out) - MOST + 1
    return [*out[: MOST - 1], f"... and {left} more lines"] if left > 1 else out


def changes(
    path: Path,
    old: Pinned,
    new: Pinned,
    reason: str,
    report: Collectives | None = None,
) -> str:
    """What a failed comparison says."""
    changed = changed_figures(old, new)
    figures = [figure_change(name, *pair) for name, pair in changed.items()]
    parts = [
        f"{reason}: {', '.join(figures) or 'no figure did'}",
        f"pinned in {path}",
        *talk_lines(report, [name for name, (a, b) in changed.items() if b > a]),
    ]
    if old.lines != new.lines:
        parts += [first_difference(old.lines, new.lines), *line_differences(old, new)]
    if old.version != new.version:
        parts.append(
            f"the file is by verax {old.version}, and this is {new.version}: verax may "
            "write another program for the same function"
        )
    return "\n".join([*parts, f"if this is meant, write the file again: {ACCEPT}"])


def grown(old: Pinned, new: Pinned, tolerance: float) -> list[str]:
    """The figures that are larger by more than their share `tolerance`."""
    pairs = changed_figures(old, new).items()
    return [name for name, (a, b) in pairs if b > a * (1 + tolerance)]


# -----------------------------------------------------------------------------
# The assertion.


def is_update_asked() -> bool:
    """Whether the environment asks for files to be written.

    Raises:
        ValueError: it says neither yes nor no.
    """
    word = os.environ.get(VARIABLE, "").lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("", "0", "false", "no", "off"):
        return False
    raise ValueError(f"{VARIABLE} is 1 or 0, not {word!r}")


def check_call(path: object, fun: object, exact: object, tolerance: object) -> None:
    """Raise unless `assert_same_program` is called as it should be."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            "assert_same_program takes the path of a file and then the function, not "
            f"{shown(path)} first"
        )
    check_callable("assert_same_program", fun)
    if not isinstance(exact, bool):
        raise TypeError(f"exact is True or False, not {shown(exact)}")
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float):
        raise TypeError(f"tolerance is a number such as 0.1, not {shown(tolerance)}")
    if not 0 <= tolerance < float("inf"):
        raise ValueError(f"tolerance is a share from 0.0 on, not {tolerance}")
    if exact and tolerance:
        raise ValueError(
            "tolerance is of figures, and exact=True wants the same program: pass "
            "exact=False with it"
        )


def read_file(path: Path) -> Pinned | None:
    """The program that is pinned in a file; None if there is no such file.

    Raises:
        NotPinned: it holds something else.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not the file of a program")
    if not path.exists():
        return None
    try:
        return read_pinned(path.read_text("utf-8"))
    except ValueError as error:  # also of bytes that are no text
        raise NotPinned(
            f"{path} is no pinned program: {error}. To write it anew: {ACCEPT}"
        ) from error


def write_file(path: Path, new: Pinned) -> None:
    """Write a program, unless the file holds the same already."""
    try:
        old = read_file(path)
    except NotPinned:
        old = None
    if old is not None and (old.lines, old.figures) == (new.lines, new.figures):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(new.text, "utf-8", newline="\n")


def assert_same_program(
    path: str | os.PathLike[str],
    fun: Callable[..., object],
    /,
    *args: object,
    exact: bool = True,
    tolerance: float = 0.0,
    update: bool | None = None,
    static_argnums: Numbers = None,
    axis_env: Sequence[tuple[str, int]] | None = None,
    collectives: bool = False,
    **kwargs: object,
) -> None:
    """Asserts that the program of a function is the one in a file.

    The function is traced, not run. The file holds its program and its figures:
    equations, flops, bytes, the peak of memory and what collectives move. The lines of
    the user's code are in messages alone, so code may move.

    Args:
        path: the file, to be kept under version control.
        fun: a function, jitted or not; one that takes a keyword of the names below is
            passed as `functools.partial`.
        args, kwargs: its arguments: arrays, scalars, `ShapeDtypeStruct`s, and pytrees
            of them.
        exact: whether the program must be the same. Otherwise its figures may only
            not grow.
        tolerance: the share by which figures may grow without `exact`: 0.1 is 10 %.
        update: whether the file is written, instead of compared; None for what the
            environment variable `VERAX_UPDATE_PROGRAMS` says.
        static_argnums, axis_env: as in `make_jaxpr`.
        collectives: whether the program is also compiled for its devices, which need
            not be there, and the collectives of each kind and axis are figures too;
            see `verax.debug.collectives`. Those of a newer compiler may differ.

    Raises:
        AssertionError: the program is another, a figure grew, or there is no file.
        TypeError: the arguments are wrong, or the call is inside a traced function.
        ValueError: so are options, or the file holds no program (`NotPinned`).

    >>> import tempfile, verax.numpy as vnp
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = f"{folder.name}/norm.jaxpr"
    >>> assert_same_program(file, lambda x: (x * x).sum(), vnp.ones(8), update=True)
    >>> assert_same_program(file, lambda y: (y * y).sum(), vnp.zeros(8))
    >>> assert_same_program(file, lambda x: (x + x).sum(), vnp.ones(8), exact=False)
    >>> folder.cleanup()
    """
    __tracebackhide__ = True
    check_call(path, fun, exact, tolerance)
    file, name = Path(path), function_name(fun)
    closed = make_jaxpr(fun, static_argnums, axis_env)(*args, **kwargs)
    report = read_talk(fun, args, kwargs, static_argnums) if collectives else None
    new = pinned_of(name, closed, report)
    if is_update_asked() if update is None else update:
        write_file(file, new)
        return
    old = read_file(file)
    if old is None:
        raise AssertionError(
            f"the program of {name} is not pinned yet: there is no file {file}. To "
            f"write it: {ACCEPT}; then commit it"
        )
    larger = grown(old, new, tolerance)
    talks = collectives and talked(old) != talked(new)
    if exact and (old.lines != new.lines or talks):
        reason = f"the program of {name} changed"
        raise AssertionError(changes(file, old, new, reason, report))
    if not exact and larger:
        reason = f"the program of {name} grew in {', '.join(larger)}"
        allowed = f", by more than {100 * tolerance:g} %" if tolerance else ""
        raise AssertionError(changes(file, old, new, reason + allowed, report))


def talked(pinned: Pinned) -> dict[str, int]:
    """The figures of a program that are of its collectives."""
    return {name: x for name, x in pinned.figures.items() if " over " in name}


def read_talk(
    fun: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    static_argnums: Numbers,
) -> Collectives:
    """The collectives of a function, jitted or not."""
    options: dict[str, Any] = {}
    if static_argnums is not None and not isinstance(fun, PjitFunction):
        options["static_argnums"] = static_argnums
    return talk(fun, **options)(*args, **kwargs)
