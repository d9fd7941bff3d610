"""Floor 0: which arrays a program has captured, how large, and where they are used.

One idea: a jaxpr remembers its array constants and the first equation that reads each;
this shows them to explain why a program is large::

    print(captured_constants(verax.make_jaxpr(f)(x)))
    #     bytes  type           first used at
    # 4,194,304  f32[1024,1024] model.py:12 (loss)
"""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from attrs import frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.consts import close
from verax.ir.dtypes import DType
from verax.ir.jaxpr import ClosedJaxpr, Jaxpr, Source, UsedConst
from verax.ir.records import ReprMixin


class HasJaxpr(Protocol):
    """A trace, whose constants are still where the function used them."""

    @property
    def jaxpr(self) -> Jaxpr: ...


@runtime_checkable
class HasTrace(Protocol):
    """A stage of `jit` that knows its trace: `jit(f).trace(x)`."""

    @property
    def traced(self) -> HasJaxpr: ...


@frozen(eq=False, repr=False)
class CapturedConstant(ReprMixin):
    """One captured array: what it is, and the user's line that reads it first."""

    value: object
    aval: ShapedArray
    source: Source

    @property
    def shape(self) -> Shape:
        return self.aval.shape

    @property
    def dtype(self) -> DType:
        return self.aval.dtype

    @property
    def nbytes(self) -> int:
        """The bytes that the constant takes on a device."""
        return self.aval.size * self.aval.dtype.itemsize


@frozen(eq=False, repr=False)
class CapturedConstants:
    """The captured arrays of a program, the largest first; prints as a table."""

    __module__ = "verax.ir"

    items: tuple[CapturedConstant, ...]

    def __iter__(self) -> Iterator[CapturedConstant]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> CapturedConstant:
        return self.items[index]

    @property
    def nbytes(self) -> int:
        """The bytes of all of them."""
        return sum([item.nbytes for item in self.items])

    def __repr__(self) -> str:
        if not self.items:
            return "no captured constants"
        rows = [("bytes", "type", "first used at")]
        rows += [
            (f"{item.nbytes:,}", str(item.aval), line_of(item.source))
            for item in self.items
        ]
        sizes, types = (max(len(row[i]) for row in rows) for i in (0, 1))
        lines = [f"{a:>{sizes}}  {b:<{types}}  {c}" for a, b, c in rows]
        return "\n".join(lines)


def line_of(source: Source) -> str:
    """The line, or that only the outputs read the constant."""
    return "an output of the program" if source.code is None else str(source)


def captured_constants(program: Jaxpr | ClosedJaxpr | HasTrace) -> CapturedConstants:
    """The arrays that a program has closed over, nested programs included.

    `program` is a jaxpr, what `make_jaxpr` returns, or `jit(f).trace(x)`. Each object
    is listed once. Scalars are part of the program and not listed.

    Raises:
        TypeError: `program` is none of these.

    >>> from verax.ir.jaxpr import empty_jaxpr
    >>> captured_constants(empty_jaxpr((), ()))
    no captured constants
    """
    if not isinstance(program, Jaxpr | ClosedJaxpr):
        if not isinstance(program, HasTrace):
            raise TypeError(
                f"captured_constants takes a program, not {program!r:.60}; make one "
                "with verax.make_jaxpr(f)(*args) or verax.jit(f).trace(*args)"
            )
        program = program.traced.jaxpr
    jaxpr = close(program) if isinstance(program, ClosedJaxpr) else program
    found = [described(use) for use in jaxpr.used_consts]
    return CapturedConstants(tuple(sorted(found, key=lambda c: -c.nbytes)))


def described(use: UsedConst) -> CapturedConstant:
    return CapturedConstant(use.literal.value, use.literal.aval, use.source)
