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
from typing import Final

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
from verax.ir.records import ReprMixin
from verax.rules.rows.emitter import Operand, Region, i64s

# What ends a region, of operations that do not take the usual one.
ENDS: Final = MappingProxyType({"sdy.manual_computation": "sdy.return"})


def scalar_bytes(value: object, aval: ShapedArray) -> bytes:
    """The bytes of a constant of type `aval`, by which constants are compared."""
    return device_value(value, aval.dtype).tobytes()


@frozen(repr=False)
class Summed(ReprMixin):
    """Which values of a rule have terms; the attribute that says so, for a type."""

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
        found = self.scalars.get(key)
        if found is None:
            found = self.scalars[key] = self.name(x.aval)
            text = dense(x.value, x.aval)
            self.lines.append(f"    {found.name} = stablehlo.constant {text}\n")
        return found

    def op(
        self,
        name: str,
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
        found = [self.region(region, end) for region in regions]
        bodies = f" ({', '.join(found)})" if found else ""
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
        found = [
            self.op("sdy.sharding_constraint", (x,), (x.aval,), sharding=text)[0]
            if (text := terms.text(x.aval))
            else x
            for x in results
        ]
        self.terms = terms
        terms.names.update([x.name for x in found])
        return tuple(found)

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

    def constant(
        self, value: float | int | bool | complex | np.ndarray, aval: ShapedArray
    ) -> Operand:
        """See `Emitter.constant`."""
        return Operand("", aval, value)

    def broadcast(self, x: Operand, shape: Shape, dimensions: Shape) -> Operand:
        """See `Emitter.broadcast`."""
        if x.aval.shape == shape and dimensions == tuple(range(len(shape))):
            return x
        aval = x.aval.with_shape(shape)
        if not x.name and not x.aval.shape:
            return Operand("", aval, x.value)
        extra = len(stored_shape(x.aval)) - x.aval.ndim
        places = (*dimensions, *(len(shape) + i for i in range(extra)))
        (out,) = self.op(
            "stablehlo.broadcast_in_dim",
            (x,),
            (aval,),
            broadcast_dimensions=i64s(places),
        )
        return out


def marked(lines: str, start: int, attributes: Sequence[tuple[str, str]]) -> str:
    """Lines of which the operation at `start` tells the compiler more."""
    stop = lines.index("\n", start)
    if lines[start:stop].endswith("{"):  # its regions follow: it is the last one
        stop = len(lines)
    operation = with_frontend(lines[start:stop], attributes)
    return f"{lines[:start]}{operation}{lines[stop:]}"
