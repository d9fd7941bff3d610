"""Floor 4: the text of one function: operations, the regions inside them, constants.

One idea: a value is a number in the order in which values are made, and a scalar
constant is written once, before its first use, so the same calls give the same text::

    text = FunctionText()
    x = text.name(f32_8)
    (y,) = text.op("stablehlo.sine", (x,), (f32_8,))
    text.lines                # ['    %2 = "stablehlo.sine"(%1) : ...']
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final, NoReturn

import numpy as np
from attrs import frozen

from verax.backend.lowering.mlir_text import (
    FRONTEND,
    dense,
    frontend,
    mlir_type,
    stored_shape,
    with_frontend,
)
from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import device_value
from verax.ir.jaxpr import Atom, Jaxpr, Params, Var
from verax.ir.records import ReprMixin
from verax.rules.rows.emitter import Constant, Operand, Region, i64s
from verax.rules.rows.infer import Mask
from verax.rules.rows.row import Engine, LowerRule, Row, SomeRow
from verax.rules.values.memo import pure
from verax.rules.values.state import widths_of
from verax.transforms.engine.templates import TEMPLATES, Avals

# What ends a region, of operations that do not take the usual one.
ENDS: Final = MappingProxyType({"sdy.manual_computation": "sdy.return"})


def scalar_bytes(value: object, aval: ShapedArray) -> bytes:
    """The bytes of a constant of type `aval`, by which constants are compared."""
    return device_value(value, aval.dtype).tobytes()


@frozen(repr=False)
class Summed(ReprMixin):
    """The values of a rule that have terms; the attribute that says so, for a type."""

    names: set[str]
    text: Callable[[ShapedArray], str | None]


class FunctionText:
    """The part of an `Emitter` that needs only the function itself."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0
        self.scalars: dict[tuple[Hashable, ...], Operand] = {}
        # What operations tell the compiler, as MLIR text.
        self.told = ""
        self.terms: Summed | None = None

    def label(self) -> str:
        """A fresh name."""
        self.count += 1
        return f"%{self.count}"

    def name(self, aval: ShapedArray) -> Operand:
        """A fresh operand of the given type."""
        return Operand(self.label(), aval)

    def used(self, x: Operand) -> Operand:
        """The operand with a name: a constant is written before its first use."""
        if x.name:
            return x
        key = (x.aval, scalar_bytes(x.value, x.aval))
        entry = self.scalars.get(key)
        if entry is None:
            entry = self.scalars[key] = self.name(x.aval)
            text = dense(x.value, x.aval)
            self.lines.append(f"    {entry.name} = stablehlo.constant {text}\n")
        return entry

    def op(
        self,
        name: str,
        /,
        operands: Sequence[Operand],
        results: Sequence[ShapedArray],
        regions: Sequence[tuple[Sequence[ShapedArray], Region]] = (),
        **attributes: str,
    ) -> tuple[Operand, ...]:
        """See `Emitter.op`."""
        xs = [x if x.name else self.used(x) for x in operands]
        ins = ", ".join([x.name for x in xs])
        types = ", ".join([mlir_type(x.aval) for x in xs])
        end = ENDS.get(name, "stablehlo.return")
        result = [self.region(region, end) for region in regions]
        bodies = f" ({', '.join(result)})" if result else ""
        extra = ""
        if self.told:
            attributes = {**attributes, FRONTEND: self.told}
        if attributes:
            extra = f" {{{', '.join([f'{k} = {v}' for k, v in attributes.items()])}}}"
        if len(results) == 1:
            out = self.name(results[0])
            self.lines.append(
                f'    {out.name} = "{name}"({ins}){bodies}{extra} : '
                f"({types}) -> {mlir_type(out.aval)}\n"
            )
            return (out,) if self.terms is None else self.with_terms(xs, (out,))
        label = self.label()
        made = ", ".join([mlir_type(aval) for aval in results])
        binding = f"{label}:{len(results)} = " if results else ""
        self.lines.append(
            f'    {binding}"{name}"({ins}){bodies}{extra} : ({types}) -> ({made})\n'
        )
        several = tuple([Operand(f"{label}#{i}", a) for i, a in enumerate(results)])
        return several if self.terms is None else self.with_terms(xs, several)

    def with_terms(
        self, operands: Sequence[Operand], results: tuple[Operand, ...]
    ) -> tuple[Operand, ...]:
        """Results in the rule of a linear row, which have terms if an operand has.

        XLA does not find that out.
        """
        terms = self.terms
        assert terms is not None
        if terms.names.isdisjoint([x.name for x in operands]):
            return results
        self.terms = None
        out = [
            self.op("sdy.sharding_constraint", (x,), (x.aval,), sharding=text)[0]
            if (text := terms.text(x.aval))
            else x
            for x in results
        ]
        self.terms = terms
        terms.names.update([x.name for x in out])
        return tuple(out)

    def region(self, region: tuple[Sequence[ShapedArray], Region], end: str) -> str:
        """The text of a region: a block with arguments, which `end` ends."""
        avals, body = region
        outer, self.lines = self.lines, []
        # What is written inside cannot be read outside; the reverse holds.
        around, self.scalars = self.scalars, dict(self.scalars)
        arguments = [self.name(aval) for aval in avals]
        outs = [self.used(x) for x in body(arguments)]
        inside, self.lines, self.scalars = "".join(self.lines), outer, around
        heads = ", ".join(f"{x.name}: {mlir_type(x.aval)}" for x in arguments)
        results = ", ".join(x.name for x in outs)
        types = ", ".join(mlir_type(x.aval) for x in outs)
        label = f"  ^bb0({heads}):\n" if arguments else ""
        return f'{{\n{label}{inside}    "{end}"({results}) : ({types}) -> ()\n    }}'

    @contextmanager
    def attributed(self, attributes: Sequence[tuple[str, str]]) -> Iterator[None]:
        """See `Emitter.attributed`."""
        outer, self.told = self.told, frontend(attributes) if attributes else ""
        try:
            yield
        finally:
            self.told = outer

    def mark(self, x: Operand, attributes: Sequence[tuple[str, str]]) -> None:
        """See `Emitter.mark`; nothing made an argument, and a constant has no place."""
        label = x.name.partition("#")[0]
        for i in reversed(range(len(self.lines))):
            lines = self.lines[i]
            for end in (" = ", ":"):
                start = lines.find(f"    {label}{end}") if label else -1
                if start >= 0:
                    self.lines[i] = marked(lines, start, attributes)
                    return

    def constant(self, value: Constant, aval: ShapedArray) -> Operand:
        """See `Emitter.constant`."""
        return Operand("", aval, value)

    def broadcast(self, x: Operand, shape: Shape, dimensions: Shape) -> Operand:
        """See `Emitter.broadcast`."""
        if x.aval.shape == shape and dimensions == tuple(range(len(shape))):
            return x
        aval = x.aval.with_shape(shape)
        if not x.name and not x.aval.shape:
            return Operand("", aval, x.value)
        wide, dims = list(shape), list(dimensions)
        if self.terms is not None:
            wide, dims = unstretched(x.aval.shape, shape, dimensions)
        extra = len(stored_shape(x.aval)) - x.aval.ndim
        places = (*dims, *(len(wide) + i for i in range(extra)))
        (out,) = self.op(
            "stablehlo.broadcast_in_dim",
            (x,),
            (x.aval.with_shape(wide),),
            broadcast_dimensions=i64s(places),
        )
        if len(wide) == len(shape):
            return out
        return self.op("stablehlo.reshape", (out,), (aval,))[0]


def unstretched(
    own: Shape, shape: Shape, dimensions: Shape
) -> tuple[list[int], list[int]]:
    """A broadcast that stretches no dimension, to what a reshape brings into `shape`.

    What would be stretched gets a new dimension beside it. XLA drops dimensions that it
    stretches by itself, and so loses that devices hold terms of the operand.
    """
    pairs = zip(own, dimensions, strict=True)
    stretched = {d for n, d in pairs if n != shape[d]}
    wide, places = list[int](), list[int]()
    for d, size in enumerate(shape):
        places.append(len(wide))
        wide += [1, size] if d in stretched else [size]
    return wide, [places[d] for d in dimensions]


def marked(lines: str, start: int, attributes: Sequence[tuple[str, str]]) -> str:
    """Lines of which the operation at `start` tells the compiler more."""
    stop = lines.index("\n", start)
    if lines[start:stop].endswith("{"):  # its regions follow: it is the last one
        stop = len(lines)
    operation = with_frontend(lines[start:stop], attributes)
    return f"{lines[:start]}{operation}{lines[stop:]}"


# -----------------------------------------------------------------------------
# The text of an equation, written once by its rule and then filled in.
#
# What a lowering rule writes depends only on (rules, primitive, params, types,
# which operands are constants, the platforms of the module), so it is a template, as
# derivatives are; every other equation of its kind is one formatting of a string::
#
#     text = equation_text(engine, CPU, sin_p, NO_PARAMS, (f32_8,), (f32_8,), (False,))
#     text.template        # '    %s = "stablehlo.sine"(%s) : (tensor<8xf32>) -> ...'
#
# Rules that need more than their operands (functions, meshes, the host) have no such
# text; they run each time.


MARK: Final = "\0"
type Scalar = Constant | None
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
        out = [same(needed, other) for other in self.needed]
        if True not in out:
            self.needed.append(needed)
            out.append(True)
        return Operand(f"{MARK}c{out.index(True)}{MARK}", x.aval)

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

    def refuse(self, *args: object, **options: object) -> NoReturn:
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
    out: list[Result] = []
    for x in results:
        if x.name:
            _, mark, rest = x.name.split(MARK)
            out.append((number(mark), rest))
        else:
            out.append(recorder.constant_of(x))
    lines = ["%s".join([p.replace("%", "%%") for p in line[::2]]) for line in pieces]
    orders = [tuple([number(mark) for mark in line[1::2]]) for line in pieces]
    order, last = tuple([i for part in orders for i in part]), len(avals)
    own = [needed for needed in recorder.needed if needed.place is None]
    return EquationText(
        "".join(lines),
        order,
        tuple(recorder.needed),
        recorder.count,
        tuple(out),
        len(own) + sum([line.count("\n") for line in lines]),
        tuple(zip(lines, orders, strict=True)),
        simple=order == (last, *range(last)) and out == [(last, "")],
    )


@pure(TEMPLATES)
def equation_text(
    engine: Engine,
    platforms: Platforms,
    row: SomeRow,
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


def is_empty(row: SomeRow, params: Params, outs: Avals) -> bool:
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
