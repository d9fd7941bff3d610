"""Floor 4: the text of an equation, written once by its rule and then filled in.

One idea: what a lowering rule writes depends only on (rules, primitive, params, types,
which operands are constants, the platforms of the module), so it is a template, as
derivatives are; every other equation of its kind is one formatting of a string::

    text = equation_text(engine, CPU, sin_p, NO_PARAMS, (f32_8,), (f32_8,), (False,))
    text.template        # '    %s = "stablehlo.sine"(%s) : (tensor<8xf32>) -> ...'

Rules that need more than their operands (functions, meshes, the host) have no such
text; they run each time.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

import numpy as np
from attrs import frozen

from verax.backend.lowering.function_writer import FunctionText, scalar_bytes
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import device_value
from verax.ir.jaxpr import Atom, Jaxpr, Params, Var
from verax.ir.records import ReprMixin
from verax.rules.rows.emitter import Operand, Region
from verax.rules.rows.masks import Mask
from verax.rules.rows.row import Engine, LowerRule, Row
from verax.rules.values.memo import pure
from verax.rules.values.state import widths_of
from verax.transforms.engine.templates import TEMPLATES, Avals

MARK: Final = "\0"
type Scalar = float | int | bool | complex | np.ndarray | None
type Platforms = tuple[str, ...]
type Rule = Callable[["Recorder", Sequence[Operand]], Sequence[Operand]]


@frozen(eq=False, repr=False)
class Needed(ReprMixin):
    """A constant of type `aval`: that of operand `place`, or else `value`."""

    aval: ShapedArray
    place: int | None
    value: Scalar = None


type Result = tuple[int, str] | Needed


@frozen(eq=False, repr=False)
class EquationText(ReprMixin):
    """Lines with `%s` for names; a name is an operand, a constant, or a fresh one.

    The names are those of the operands, then of the constants that are `needed`, which
    must be written before, then `fresh` new ones; `order` says which goes where. A
    result is the number of a name and what follows it, or a constant that is not
    written yet. `size` counts the lines, those of the rule's own constants included;
    `operations` are the template and its order in pieces, one for each operation.
    `simple` says that this is one operation: its one result, then its operands.
    """

    template: str
    order: tuple[int, ...]
    needed: tuple[Needed, ...]
    fresh: int
    results: tuple[Result, ...]
    size: int
    operations: tuple[tuple[str, tuple[int, ...]], ...] = ()
    simple: bool = False


class NeedsModule(Exception):
    """A rule needs what only the module under construction knows."""


class SeveralPlatforms(NeedsModule):
    """In a module for several platforms, a rule depends on the platform."""


def only(platforms: Platforms) -> str:
    """The platform of a module for one.

    Raises:
        SeveralPlatforms: it is for several.
    """
    if len(platforms) > 1:
        raise SeveralPlatforms
    return platforms[0]


def common_rule[P: Params](row: Row[P], platforms: Platforms) -> LowerRule[P]:
    """The rule that lowers a row on every one of these platforms.

    Raises:
        MissingRule: there is none on some platform.
        SeveralPlatforms: they differ.
    """
    rule, *others = [row.lowering(platform) for platform in platforms]
    if any([other is not rule for other in others]):
        raise SeveralPlatforms
    return rule


class Recorder(FunctionText):
    """An `Emitter` that writes one equation with marks instead of names."""

    def __init__(self, engine: Engine, platforms: Platforms, scalars: Mask) -> None:
        super().__init__()
        self.engine = engine
        self.platforms = platforms
        # What stands for the value of an operand that is a constant.
        self.unknown = [np.empty(()) if flag else None for flag in scalars]
        self.needed: list[Needed] = []
        self.inside = 0

    @property
    def platform(self) -> str:
        """See `Emitter.platform`."""
        return only(self.platforms)

    def label(self) -> str:
        """A mark for a fresh name."""
        self.count += 1
        return f"{MARK}f{self.count - 1}{MARK}"

    def constant_of(self, x: Operand) -> Needed:
        """The constant `x`: an operand, or a value that the rule knows."""
        for place, value in enumerate(self.unknown):
            if value is not None and value is x.value:
                return Needed(x.aval, place)
        return Needed(x.aval, None, x.value)

    def used(self, x: Operand) -> Operand:
        """A mark for a constant; within a region it is written there."""
        if x.name:
            return x
        needed = self.constant_of(x)
        if self.inside:
            if needed.place is not None:
                raise NeedsModule
            return super().used(x)
        found = [same(needed, other) for other in self.needed]
        if True not in found:
            self.needed.append(needed)
            found.append(True)
        return Operand(f"{MARK}c{found.index(True)}{MARK}", x.aval)

    def region(self, region: tuple[Sequence[ShapedArray], Region], end: str) -> str:
        """A region writes its own constants."""
        around, self.scalars = self.scalars, {}
        self.inside += 1
        text = super().region(region, end)
        self.inside -= 1
        self.scalars = around
        return text

    def inline(self, jaxpr: Jaxpr, operands: Sequence[Operand]) -> tuple[Operand, ...]:
        """See `Emitter.inline`."""
        env = list(operands)

        def read(atom: Atom) -> Operand:
            if isinstance(atom, Var):
                return env[atom.index]
            if atom.aval.shape:
                raise NeedsModule
            return Operand("", atom.aval, device_value(atom.value, atom.aval.dtype))

        for eqn in jaxpr.eqns:
            rule = common_rule(self.engine.rules[eqn.primitive], self.platforms)
            outs = tuple([v.aval for v in eqn.outvars])
            env += rule(self, eqn.params, [read(a) for a in eqn.invars], outs)
        return tuple([read(a) for a in jaxpr.outvars])

    @property
    def num_devices(self) -> int:
        """Raise, since it depends on the module."""
        raise NeedsModule

    def refuse(self, *args: Any, **options: Any) -> NoReturn:
        """Raise, since this needs more than the equation."""
        raise NeedsModule

    threaded = callback = call = embed = layout = batch = mark = refuse
    partitioned = meeting = typed_layout = refuse


def same(x: Needed, y: Needed) -> bool:
    """Whether two constants are the same."""
    if x.aval is not y.aval or x.place != y.place:
        return False
    if x.place is not None:
        return True
    return scalar_bytes(x.value, x.aval) == scalar_bytes(y.value, y.aval)


def recorded(
    engine: Engine, platforms: Platforms, avals: Avals, scalars: Mask, rule: Rule
) -> EquationText:
    """The text that a rule writes for operands of types `avals`.

    Raises:
        NeedsModule: it has no text of its own.
    """
    recorder = Recorder(engine, platforms, scalars)
    operands = [
        Operand(f"{MARK}o{i}{MARK}", aval)
        if value is None
        else Operand("", aval, value)
        for i, (aval, value) in enumerate(zip(avals, recorder.unknown, strict=True))
    ]
    results = rule(recorder, operands)
    starts = {"o": 0, "c": len(avals), "f": len(avals) + len(recorder.needed)}

    def number(mark: str) -> int:
        return starts[mark[0]] + int(mark[1:])

    pieces = [line.split(MARK) for line in recorder.lines]
    found: list[Result] = []
    for x in results:
        if x.name:
            _, mark, rest = x.name.split(MARK)
            found.append((number(mark), rest))
        else:
            found.append(recorder.constant_of(x))
    lines = ["%s".join([p.replace("%", "%%") for p in line[::2]]) for line in pieces]
    orders = [tuple([number(mark) for mark in line[1::2]]) for line in pieces]
    order, last = tuple([i for part in orders for i in part]), len(avals)
    own = [needed for needed in recorder.needed if needed.place is None]
    return EquationText(
        "".join(lines),
        order,
        tuple(recorder.needed),
        recorder.count,
        tuple(found),
        len(own) + sum([line.count("\n") for line in lines]),
        tuple(zip(lines, orders, strict=True)),
        simple=order == (last, *range(last)) and found == [(last, "")],
    )


@pure(TEMPLATES)
def equation_text(
    engine: Engine,
    platforms: Platforms,
    row: Row[Any],
    params: Params,
    avals: Avals,
    outs: Avals,
    scalars: Mask,
) -> EquationText:
    """The text of an equation.

    Raises:
        MissingRule: a platform has no rule.
        NeedsModule: it has none of its own. That is not remembered, for such params may
            hold a function of the host.
    """
    lower = common_rule(row, platforms)
    # Rules that trace functions mean the widths of their operands.
    with widths_of([aval.dtype for aval in (*avals, *outs)]):
        return recorded(
            engine, platforms, avals, scalars, lambda e, xs: lower(e, params, xs, outs)
        )


def is_empty(row: Row[Any], params: Params, outs: Avals) -> bool:
    """Whether an equation computes no element and does nothing else.

    XLA aborts the process on some loops over empty arrays: they are not worth writing.
    """
    empty = bool(outs) and all([0 in aval.shape for aval in outs])
    return empty and not params.effects and not row.hosted


def empty_text(outs: Avals) -> EquationText:
    """The text of an equation that computes no element: its results are constants."""
    results = [Needed(aval, None, 0) for aval in outs]
    return EquationText("", (), (), 0, tuple(results), 0)


def call_text(
    engine: Engine, symbol: str, avals: Avals, outs: Avals, scalars: Mask
) -> EquationText:
    """The text of a call of the function `symbol`."""

    def rule(e: Recorder, operands: Sequence[Operand]) -> Sequence[Operand]:
        return e.op("func.call", operands, outs, callee=symbol)

    return recorded(engine, (), avals, scalars, rule)
