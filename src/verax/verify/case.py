"""Floor 6: what a law is tried on, and what it says when it does not hold.

One idea: a case is a jaxpr, values, and a seed for all that the law itself chooses
(tangents, axes, masks), so a broken law prints a program that breaks it again::

    case = Case(jaxpr, stacks=(np.zeros((1, 3), np.float32),))
"""

from collections.abc import Iterable, Iterator
from random import Random

import numpy as np
from attrs import field, frozen

from verax.ir.avals import ShapedArray
from verax.ir.consts import used_consts
from verax.ir.dtypes import is_complex, is_inexact, numpy_dtype, real_dtype
from verax.ir.jaxpr import Jaxpr, Params, Primitive
from verax.ir.printer import print_jaxpr
from verax.ir.walk import walk
from verax.rules.builder import Builder
from verax.rules.row import NDArray, Row, Sample
from verax.verify.close import Difference


class Skipped(Exception):
    """This one case says nothing about the law; the text is the reason."""


@frozen
class Case:
    """A program and values for it.

    Every stack holds several values of one operand along its first dimension: laws
    about one call use the first, laws about batches use more. `seed` decides what the
    law itself chooses. `smooth` says for each operand whether derivatives by it are
    those of the values (they are not where a row declares a derivative by convention,
    as rounding does); if it is empty, all are. `row` is the row that the program was
    made from, if it was.
    """

    jaxpr: Jaxpr
    stacks: tuple[NDArray, ...]
    seed: int = 0
    smooth: tuple[bool, ...] = ()
    row: Row[Params] | None = field(default=None, repr=False)

    @property
    def values(self) -> tuple[NDArray, ...]:
        """The operands of the first call."""
        return self.at(0)

    @property
    def depth(self) -> int:
        """How many calls the stacks hold."""
        return min((len(s) for s in self.stacks), default=1)

    @property
    def active(self) -> tuple[bool, ...]:
        """Which operands have tangents: inexact ones with honest derivatives."""
        avals = self.jaxpr.in_avals
        smooth = self.smooth or (True,) * len(avals)
        return tuple(
            [is_inexact(a.dtype) and s for a, s in zip(avals, smooth, strict=True)]
        )

    def at(self, i: int) -> tuple[NDArray, ...]:
        """The operands of call `i`."""
        return tuple([read_only(s[i]) for s in self.stacks])

    def random(self) -> Random:
        """The source of what the law chooses, the same at each call."""
        return Random(self.seed)


def read_only(x: NDArray) -> NDArray:
    """`x` as an array that no rule can write into."""
    array = np.asarray(x).copy()
    array.setflags(write=False)
    return array


def traced[P: Params](row: Row[P], sample: Sample[P]) -> Jaxpr:
    """The program of the one call `row[sample.params]` on `sample.avals`."""
    builder = Builder("a law")
    inputs = [builder.input(aval) for aval in sample.avals]
    return builder.finish(builder.bind(row, sample.params, inputs))[0]


class LawBroken(AssertionError):
    """A law does not hold; the text has everything that is needed to see it again."""


def broken(
    law: str,
    case: Case,
    what: str,
    *,
    got: object = None,
    want: object = None,
    first: Difference | None = None,
) -> LawBroken:
    """The error for a law that does not hold on `case`."""
    lines = [f"{law}: {what}"]
    if case.row is not None:
        eqn = case.jaxpr.eqns[0]
        lines.append(f"row: {case.row.name}, params: {eqn.params}")
    lines.append(f"operands: {types_text(case.jaxpr.in_avals)}")
    lines += [f"  {i}: {array_text(x)}" for i, x in enumerate(case.values)]
    if got is not None or want is not None:
        lines += [f"got:  {result_text(got)}", f"want: {result_text(want)}"]
    if first is not None:
        lines.append(f"first difference {first}")
    lines += ["to see it again:", *("    " + t for t in snippet(law, case))]
    return LawBroken("\n".join(lines))


def result_text(x: object) -> str:
    return array_text(x) if isinstance(x, np.ndarray) else str(x)


def array_text(x: NDArray) -> str:
    """Python text that makes `x` again, to the last bit."""
    if x.dtype.names is not None:
        return f"np.zeros({x.shape}, {x.dtype})"
    if is_complex(x.dtype):
        part = numpy_dtype(real_dtype(x.dtype))
        parts = np.ascontiguousarray(x).reshape(-1).view(part)
        text = f"np.array({flat_text(parts)}, '{part}').view('{x.dtype}')"
        return f"{text}.reshape({x.shape})"
    text = f"np.array({flat_text(x.reshape(-1))}, '{x.dtype}')"
    return text if x.ndim == 1 else f"{text}.reshape({x.shape})"


def flat_text(x: NDArray) -> str:
    """The elements of a vector; `nan` and `inf` as names."""
    return "[" + ", ".join(repr(item) for item in x.tolist()) + "]"


def snippet(law: str, case: Case) -> Iterator[str]:
    """The lines of a program that tries the law on the case."""
    yield "import ml_dtypes, numpy as np"
    yield "from numpy import inf, nan"
    yield "from verax.ir.parser import parse_jaxpr"
    yield "from verax.ops.core import CORE"
    yield "from verax.ops.table import ROWS, standard"
    yield "from verax.rules.row import names"
    yield "from verax.transforms.engine import StandardEngine"
    yield "from verax.verify.case import Case"
    yield "from verax.verify.laws import LAWS"
    yield 'jaxpr = parse_jaxpr("""'
    yield from print_jaxpr(case.jaxpr).split("\n")
    constants = [np.asarray(c) for c in used_consts(case.jaxpr)]
    if constants:
        yield '""", names(ROWS), [' + ", ".join(map(array_text, constants)) + "])"
    else:
        yield '""", names(ROWS))'
    yield "stacks = ("
    for stack in case.stacks:
        yield f"    {array_text(stack)},"
    yield ")"
    rest = f", {case.smooth}" if not all(case.smooth) else ""
    yield f"case = Case(jaxpr, stacks, {case.seed}{rest})"
    yield f"LAWS[{law!r}](StandardEngine(standard, CORE), case)"


def primitives(jaxpr: Jaxpr) -> dict[str, Primitive]:
    """The primitives of a program by name, those of nested programs included."""
    return {eqn.primitive.name: eqn.primitive for _, eqn in walk(jaxpr)}


def types_text(avals: Iterable[ShapedArray]) -> str:
    """Types as they stand in a message."""
    return "(" + ", ".join(map(str, avals)) + ")"
