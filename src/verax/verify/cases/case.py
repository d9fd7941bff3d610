"""Floor 6: what a law is tried on, and what it says when it does not hold.

One idea: a case is a jaxpr, values, and a seed for all that the law itself chooses
(tangents, axes, masks), so a broken law prints a program that breaks it again::

    case = Case(jaxpr, stacks=(np.zeros((1, 3), np.float32),))
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from random import Random
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

import numpy as np
from attrs import field, frozen, has

from verax.api.custom.snapshots import Snapshot
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import (
    NARROWED,
    is_complex,
    is_extended,
    is_inexact,
    numpy_dtype,
    real_dtype,
)
from verax.ir.forms.parser import parse_jaxpr
from verax.ir.jaxpr import Jaxpr, Params, Primitive, field_names
from verax.ir.records import ReprMixin
from verax.ir.text.printer import print_jaxpr
from verax.ir.walk import used_consts, walk
from verax.ops.table import PRIMITIVES
from verax.rules.rows.builder import Builder
from verax.rules.rows.row import NDArray, Row, RuleTable, Sample, SomeRow, names
from verax.rules.values.state import widths_of
from verax.transforms.engine.engine import literal_value
from verax.verify.cases.tolerance import Difference

# -----------------------------------------------------------------------------
# A block of code in which 64-bit numbers are kept.
#
# Derivatives are held to differences in double precision, whatever the
# configuration of the process says::
#
#     with double_precision():
#         engine.jvp(jaxpr_on_float64, (True,))


def double_precision(enabled: bool = True) -> AbstractContextManager[None]:
    """Keep 64-bit constants as they are in this thread, within the block."""
    return widths_of((), enabled)


def is_double(jaxpr: Jaxpr) -> bool:
    """Whether a program takes or gives 64-bit numbers."""
    return any(aval.dtype in NARROWED for aval in (*jaxpr.in_avals, *jaxpr.out_avals))


# -----------------------------------------------------------------------------
# How a program elsewhere can get at a value of this process.
#
# What has a name in an imported module can be imported again; for the rest, a
# comment says what to define::
#
#     import_lines("log_cosh_p", row)     # ["from mylib.rows import log_cosh_p"]


OWN = "verax"
INSTALLED = ("site-packages", "dist-packages")


@frozen(repr=False)
class Place(ReprMixin):
    """A name in a module, and the folder that must be on the path to import it."""

    module: str
    name: str
    root: str | None


def find(value: object) -> Place | None:
    """The place from which `value` can be imported, or None.

    Of several modules that hold it, the one that was imported last is taken: whoever
    imports a value from its home enters the list of modules before that home.
    """
    home = home_of(value)
    if home is not None:
        return home
    out: Place | None = None
    for module_name, module in list(sys.modules.items()):
        if module_name == "__main__" or not isinstance(module, ModuleType):
            continue
        for name, held in list(vars(module).items()):
            if held is value and name.isidentifier() and root_of(module) is not None:
                out = Place(module_name, name, root_of(module))
    return out


def described(value: object) -> str:
    """The description of a value, without the place in memory that it may show."""
    return str(getattr(value, "__qualname__", None) or repr(value))


def home_of(value: object) -> Place | None:
    """The place that a function says it has, if it is there."""
    name = getattr(value, "__qualname__", None)
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    if not isinstance(name, str) or module is None or module.__name__ == "__main__":
        return None
    root = root_of(module)
    if root is None or getattr(module, name, None) is not value:
        return None
    return Place(module.__name__, name, root)


def root_of(module: ModuleType) -> str | None:
    """The folder to put on the path: "" where none is needed, None if there is none."""
    file = getattr(module, "__file__", None)
    if file is None or not str(file).endswith(".py"):
        return None
    name = module.__name__
    if name.split(".")[0] == OWN or any(part in str(file) for part in INSTALLED):
        return ""
    steps = len(name.split(".")) - (Path(file).name != "__init__.py")
    return str(Path(file).resolve().parents[steps])


def import_lines(values: Mapping[str, object]) -> Sequence[str]:
    """Lines of Python that bind each name to its value, or say what to define.

    >>> import_lines({"f": import_lines})
    ['from verax.verify.cases.case import import_lines as f']
    >>> import_lines({"p": object()})[0].startswith("p = ...  # define")
    True
    """
    places = {name: find(value) for name, value in values.items()}
    roots = dict.fromkeys(p.root for p in places.values() if p is not None and p.root)
    lines = ["import sys"] if roots else []
    lines += [f"sys.path.insert(0, {root!r})" for root in roots]
    for name, place in places.items():
        if place is None:
            lines.append(
                f"{name} = ...  # define {described(values[name])} as your program "
                "does: no imported module has a name for it"
            )
        else:
            alias = "" if place.name == name else f" as {name}"
            lines.append(f"from {place.module} import {place.name}{alias}")
    return lines


REVERSE_ONLY = "custom_vjp_call"
FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType, partial, Snapshot)


class Skipped(Exception):
    """This one case says nothing about the law; the text is the reason."""

    __module__ = "verax.verify"


@frozen(repr=False)
class Case(ReprMixin):
    """A program and values for it.

    Every stack holds several values of one operand along its first dimension: laws
    about one call use the first, laws about batches use more. `seed` decides what the
    law itself chooses. `smooth` says for each operand whether derivatives by it are
    those of the values (they are not where a row declares a derivative by convention,
    as rounding does); if it is empty, all are. `row` is the row that the program was
    made from, if it was. `snippet` gives the lines that try the case again, where its
    program alone does not do.
    """

    __module__ = "verax.verify"

    jaxpr: Jaxpr
    stacks: tuple[NDArray, ...]
    seed: int = 0
    smooth: tuple[bool, ...] = ()
    row: Row[Params] | None = field(default=None, repr=False)
    snippet: Callable[["Case"], Sequence[str]] | None = field(
        default=None, repr=False, eq=False
    )

    @property
    def values(self) -> tuple[NDArray, ...]:
        """The operands of the first call."""
        return self.at(0)

    @property
    def depth(self) -> int:
        """The number of calls the stacks hold."""
        return min((len(s) for s in self.stacks), default=1)

    @property
    def active(self) -> tuple[bool, ...]:
        """Flags of the operands with tangents: inexact ones with honest derivatives."""
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


@frozen(eq=False, repr=False)
class Evidence(ReprMixin):
    """Everything that is needed to see a broken law again.

    `got` and `want` are both values and `first` is where they first differ; `after` is
    the program that a transformation made of that of the case.
    """

    law: str
    what: str
    case: Case
    got: object = None
    want: object = None
    first: Difference | None = None
    after: Jaxpr | None = None
    rules: RuleTable = field(factory=RuleTable)

    def __str__(self) -> str:
        case = self.case
        lines = [f"{self.law}: {self.what}"]
        if case.row is not None:
            eqn = case.jaxpr.eqns[0]
            lines.append(f"row: {case.row.name}, params: {eqn.params}")
        lines.append(f"operands: {types_text(case.jaxpr.in_avals)}")
        lines += [f"  {i}: {array_text(x)}" for i, x in enumerate(case.values)]
        if self.got is not None or self.want is not None:
            lines.append(f"got:  {result_text(self.got)}")
            lines.append(f"want: {result_text(self.want)}")
        if self.first is not None:
            lines.append(f"first difference {self.first}")
        lines += ["before:", *indented(print_jaxpr(case.jaxpr))]
        if self.after is not None:
            lines += ["after:", *indented(print_jaxpr(self.after))]
        snippet = snippet_lines(self.law, case, self.rules)
        return "\n".join([*lines, "to see it again:", *[f"    {t}" for t in snippet]])

    @property
    def snippet(self) -> str:
        """A program that breaks the law in the same way."""
        return "\n".join(snippet_lines(self.law, self.case, self.rules)) + "\n"


class LawBroken(AssertionError):
    """A law does not hold; the text has everything that is needed to see it again."""

    __module__ = "verax.verify"

    def __init__(self, evidence: Evidence) -> None:
        super().__init__(evidence)
        self.evidence = evidence

    def __str__(self) -> str:
        return str(self.evidence)


def broken(
    law: str,
    case: Case,
    what: str,
    *,
    got: object = None,
    want: object = None,
    first: Difference | None = None,
    after: Jaxpr | None = None,
) -> LawBroken:
    """The error for a law that does not hold on `case`."""
    return LawBroken(Evidence(law, what, case, got, want, first, after))


def indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.split("\n")]


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


def snippet_lines(law: str, case: Case, rules: RuleTable) -> Iterator[str]:
    """The lines of a program that tries the law on the case, under the same rules."""
    if case.snippet is not None:
        yield from case.snippet(case)
        return
    used = primitives(case.jaxpr)
    own = {f"{identifier(n)}_p": p for n, p in used.items() if PRIMITIVES.get(n) != p}
    changed = [(p, row) for p, row in rules.replaced.items() if p is not row]
    table = {f"{identifier(p.name)}_p": p for p, _ in changed}
    other = {f"other_{identifier(p.name)}_p": row for p, row in changed}
    yield "import ml_dtypes"
    yield "import numpy as np"
    yield "from numpy import inf, nan"
    yield "from verax import verify"
    for name, primitive in table.items():
        if PRIMITIVES.get(primitive.name) is primitive:
            yield f"{name} = verify.row_of({primitive.name!r})"
            continue
        yield from import_lines({name: primitive})
    yield from import_lines({**own, **other})
    yield "case = verify.read_case("
    yield '    """'
    yield from indented(print_jaxpr(case.jaxpr))
    yield '    """,'
    yield f"    [{', '.join(map(array_text, case.stacks))}],"
    yield f"    seed={case.seed},"
    if not all(case.smooth):
        yield f"    smooth={case.smooth},"
    if case.row is not None:
        yield "    single=True,"
    if own:
        yield f"    rows=[{', '.join(own)}],"
    constants = [np.asarray(c) for c in constants_of(case.jaxpr)]
    if constants:
        yield f"    consts=[{', '.join(map(array_text, constants))}],"
    yield ")"
    pairs = ", ".join(f"{p}: {row}" for p, row in zip(table, other, strict=True))
    yield f"verify.hold({law!r}, case" + (f", rules={{{pairs}}})" if pairs else ")")


def identifier(name: str) -> str:
    """A name for a variable from the name of a primitive."""
    return "".join(c if c.isalnum() else "_" for c in name)


def read_case(
    text: str,
    stacks: Sequence[NDArray],
    *,
    seed: int = 0,
    smooth: Sequence[bool] = (),
    single: bool = False,
    rows: Iterable[SomeRow] = (),
    consts: Sequence[object] = (),
) -> Case:
    """The case of a printed program; what printed counterexamples call.

    Each of the `stacks` holds values of one operand along its first dimension. `rows`
    are those that the library does not have, `consts` the array constants, in the order
    of the text. `single` says that the program is one call of a row.

    >>> sine = "{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }"
    >>> read_case(sine, [np.array([1.0, 2.0], np.float32)]).jaxpr
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }

    Raises:
        ValueError: the stacks do not go with the operands.
    """
    known = {**PRIMITIVES, **names(rows)}
    jaxpr = parse_jaxpr(text, known, consts)
    check_stacks(jaxpr.in_avals, stacks)
    row = jaxpr.eqns[0].primitive if single else None
    assert row is None or isinstance(row, Row)
    return Case(jaxpr, tuple(stacks), seed, tuple(smooth), row)


def check_stacks(avals: Sequence[ShapedArray], stacks: Sequence[NDArray]) -> None:
    """Raise unless there is a stack of values for each operand, or none at all.

    Raises:
        ValueError: there is not.
    """
    if stacks and len(stacks) != len(avals):
        raise ValueError(
            f"the program takes {len(avals)} operands, and there are values for "
            f"{len(stacks)}"
        )
    for i, (x, aval) in enumerate(zip(stacks, avals, strict=False)):
        if not (aval.symbolic or is_extended(aval.dtype)) and x.shape[1:] != aval.shape:
            shape = ", ".join(map(str, ("n", *aval.shape)))
            raise ValueError(
                f"operand {i} is {aval}: give n values of it as one array of shape "
                f"[{shape}], not {list(x.shape)}"
            )


def reverse_only(jaxpr: Jaxpr) -> bool:
    """Whether the program has a rule of the user's for reverse mode alone."""
    return any(eqn.primitive.name == REVERSE_ONLY for _, eqn in walk(jaxpr))


def holds_functions(jaxpr: Jaxpr) -> bool:
    """Whether Python functions stand in the params: custom rules, callbacks.

    Such a program has no text that parses back, and its rules compare by identity.
    """
    return any(
        is_function(getattr(eqn.params, name))
        for _, eqn in walk(jaxpr)
        if has(type(eqn.params))
        for name in field_names(type(eqn.params))
    )


def is_function(value: object, depth: int = 3) -> bool:
    """Whether a value of params is a function, or a record or tuple that holds one."""
    if isinstance(value, FUNCTIONS):
        return True
    if isinstance(value, Jaxpr) or depth == 0:
        return False
    if isinstance(value, tuple):
        return any(is_function(item, depth - 1) for item in value)
    kind = type(value)
    return has(kind) and any(
        is_function(getattr(value, name), depth - 1) for name in field_names(kind)
    )


def constants_of(jaxpr: Jaxpr) -> list[object]:
    """The array constants of a program, in the order of its text."""
    return [literal_value(use.literal) for use in used_consts(jaxpr)]


def primitives(jaxpr: Jaxpr) -> dict[str, Primitive]:
    """The primitives of a program by name, those of nested programs included."""
    return {eqn.primitive.name: eqn.primitive for _, eqn in walk(jaxpr)}


def types_text(avals: Iterable[ShapedArray]) -> str:
    """Types as they stand in a message."""
    return "(" + ", ".join(map(str, avals)) + ")"
