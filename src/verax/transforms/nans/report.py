"""Floor 3: where a NaN or an infinity comes from, as a value and as a report.

One idea: a finding is the equation with what is known of it; the message is made when
it is read::

    print(finding)
    finding.primitive, finding.source.line, finding.backward, finding.operands
"""

import linecache
from collections.abc import Callable, Sequence

import numpy as np
from attrs import evolve, frozen

from verax.ir.jaxpr import UNKNOWN_SOURCE, Atom, Eqn, Literal, Source
from verax.ir.library import Explorable
from verax.ir.walk import Path
from verax.rules.values.source import ElementError
from verax.transforms.nans.probe import Level, Place

SHOWN = 6
"""Elements of an array in a report."""


@frozen(eq=False, repr=False)
class Finding(Explorable):
    """The first equation that made a NaN or an infinity of operands without any.

    `eqn` is None where no equation did: what is bad came in with `bad_inputs`, the
    inputs that were bad already. `levels` are the calls, loops and branches around the
    equation, outermost first; `path` leads to it through the nested jaxprs, as in
    `verax.ir.walk`. `operands` and `results` are its values, None if they cannot be had
    (a program with effects is not run again). What `find_nans` returns keeps the
    arguments of the call, for `explore`.
    """

    __module__ = "verax.debug"

    function: str
    kind: str
    place: Place | None
    operands: tuple[np.ndarray, ...] | None
    results: tuple[np.ndarray, ...] | None
    bad_inputs: tuple[str, ...]
    again: Callable[[], object] | None = None
    """Traces the function again, on the same arguments; None if they are not kept."""

    @property
    def eqn(self) -> Eqn | None:
        return None if self.place is None else self.place.eqn

    @property
    def path(self) -> Path:
        return () if self.place is None else self.place.path

    @property
    def levels(self) -> tuple[Level, ...]:
        return () if self.place is None else self.place.levels

    @property
    def primitive(self) -> str:
        """The name of the primitive, empty if no equation is to blame."""
        return "" if self.eqn is None else self.eqn.primitive.name

    @property
    def source(self) -> Source:
        """The user's line: that of the equation or else of the nearest call around."""
        places = [] if self.eqn is None else [self.eqn.source]
        places += [level.eqn.source for level in reversed(self.levels)]
        known = [source for source in places if source.code is not None]
        return known[0] if known else UNKNOWN_SOURCE

    @property
    def transformation(self) -> str:
        """What derived the equation from the line, such as `transpose(jvp)`."""
        origins = [] if self.eqn is None else [self.eqn.source.origin]
        origins += [level.eqn.source.origin for level in reversed(self.levels)]
        return next(filter(None, origins), "")

    @property
    def backward(self) -> bool:
        """Whether the equation belongs to the backward pass of a derivative."""
        return "transpose" in self.transformation

    @property
    def index(self) -> tuple[int, ...] | None:
        """Where the first bad element of the result is; None if it is not known.

        Under `vmap`, one of the numbers is that of the batch element, mostly the first.
        """
        for value in self.results or ():
            places = np.argwhere(bad_in(value, self.kind))
            if len(places):
                return tuple(map(int, places[0]))
        return None

    def __repr__(self) -> str:
        what = self.primitive or ", ".join(self.bad_inputs)
        return f"<Finding: {self.kind} from {what}>"

    def __str__(self) -> str:
        return "\n".join(report(self))


def bad_in(value: np.ndarray, kind: str) -> np.ndarray:
    """Which elements are of the kind, `NaN` or `infinity`; integers never are."""
    if value.dtype.kind in "biu":
        return np.zeros(value.shape, bool)
    try:
        return np.isnan(value) if kind == "NaN" else np.isinf(value)
    except TypeError:  # keys
        return np.zeros(value.shape, bool)


def encountered(kind: str) -> str:
    """How the report about a `NaN` or an `infinity` begins."""
    return f"invalid value ({'nan' if kind == 'NaN' else 'inf'}) encountered in"


def report(finding: Finding) -> list[str]:
    """The lines of the report."""
    eqn = finding.eqn
    if eqn is None:
        came = ", ".join(finding.bad_inputs)
        what = f"{encountered(finding.kind)} {finding.function}"
        return [f"{what}: not made by any equation; it came in with {came}"]
    derived = finding.transformation
    phase = " in the backward pass" if finding.backward else ""
    where = f"{phase} ({derived})" if derived else ""
    lines = [
        f"{encountered(finding.kind)} {finding.function}: made by "
        f"{finding.primitive}{where}"
    ]
    source = finding.source
    if source.code is not None:
        lines.append(f"  line      {source.file}:{source.line} ({source.function})")
        text = linecache.getline(source.file, source.line).strip()
        lines += [f"              {text}"] if text else []
    lines.append(f"  equation  {eqn!r}")
    lines += operand_lines("operand", eqn.invars, finding.operands, finding.kind)
    lines += operand_lines("result", eqn.outvars, finding.results, finding.kind)
    lines += [f"  inside    {level}" for level in finding.levels]
    if finding.bad_inputs:
        lines.append(f"  inputs    bad already: {', '.join(finding.bad_inputs)}")
    return lines


def operand_lines(
    word: str,
    atoms: Sequence[Atom],
    values: Sequence[np.ndarray] | None,
    kind: str,
) -> list[str]:
    """One line for each value: its name, type, elements, and how many are bad."""
    lines = []
    for i, atom in enumerate(atoms):
        name = f"{word} {i}".ljust(9)
        shown = "" if values is None else f" = {elements(values[i])}"
        constant = ", a constant" if isinstance(atom, Literal) else ""
        lines.append(f"  {name} {atom.aval}{shown}{constant}{count(values, i, kind)}")
    return lines


def count(values: Sequence[np.ndarray] | None, i: int, kind: str) -> str:
    """How many elements are bad, and where the first is."""
    if values is None or not values[i].shape:
        return ""
    places = np.argwhere(bad_in(values[i], kind))
    if not len(places):
        return ""
    first = ", ".join(map(str, places[0]))
    return f"; {len(places)} of {values[i].size} are {kind}, the first at [{first}]"


def elements(value: np.ndarray) -> str:
    """The values of a small array in full, of others the ends."""
    text = np.array2string(value, threshold=SHOWN, edgeitems=2, separator=", ")
    return " ".join(text.split())


class NonFinite(ElementError):
    """A result is NaN, or infinite, while `debug_nans` or `debug_infs` looks for it.

    `finding` says where it was made; None if the program could not be searched.
    """

    __module__ = "verax.errors"

    def __init__(self, message: str, finding: Finding | None = None) -> None:
        super().__init__(message)
        self.finding = finding

    def at(self, eqn: Eqn) -> "NonFinite":
        """The error, where the operation that was run is `eqn` of a program."""
        found = self.finding
        if found is None or found.place is None:
            return self
        place = found.place
        if place.levels:
            outer = evolve(place.levels[0], eqn=eqn)
            place = evolve(place, levels=(outer, *place.levels[1:]))
        else:
            place = evolve(place, eqn=eqn)
        located = evolve(found, place=place)
        return NonFinite(str(located), located)
