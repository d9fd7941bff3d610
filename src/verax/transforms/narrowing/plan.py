"""Floor 3: what is rounded to a narrower type, as a value.

One idea: a product may be narrow if its row says how it sums in a wide type, and what
moves elements follows them; everything else is wide, so that a primitive that nobody
has thought of is safe. Places that stay wide are named by what an equation shows::

    plan = Narrowing(bfloat16, keep=(Keep("softmax"), Keep("model.py:26")))
    plan.product(eqn)       # the params of the narrow product, or None
"""

from collections.abc import Callable

import numpy as np
from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import DType, float32, float64, is_float, numpy_dtype
from verax.ir.jaxpr import Eqn, Jaxpr, Params, Source
from verax.ir.records import ReprMixin
from verax.ops.calls.call import NamedCall
from verax.rules.rows.costs import flops_of
from verax.rules.rows.row import Narrow, Work, no_flops, traits_of
from verax.rules.values.memo import kept_with, memo
from verax.rules.values.state import Context, current_context

PROGRAMS = 1 << 10
WIDE = (float32, float64)

type Place = tuple[str, int]
"""A file and a line."""


def place_of(source: Source) -> Place:
    """The line that an equation comes from."""
    return source.file, source.line


@frozen(repr=False)
class Keep(ReprMixin):
    """A place that stays wide.

    `what` is a line, as 26 or "model.py:26"; the name of a primitive, of the function
    that an equation is written in, or of a function that is called; or a predicate.
    """

    what: int | str | Callable[[Eqn], bool]

    def __call__(self, eqn: Eqn) -> bool:
        """Whether an equation is meant."""
        what = self.what
        if isinstance(what, int):
            return eqn.source.line == what
        if not isinstance(what, str):
            return bool(what(eqn))
        file, _, line = what.rpartition(":")
        if file and line.isdigit():
            return eqn.source.line == int(line) and eqn.source.file.endswith(file)
        called = eqn.params.name if isinstance(eqn.params, NamedCall) else None
        written = eqn.source.function.replace(".<locals>", "")
        names = (eqn.primitive.name, called, written, written.rpartition(".")[2])
        return what in names


@frozen(repr=False)
class Narrowing(ReprMixin):
    """What is rounded, and to which type.

    Attributes:
        to: the narrow type.
        keep: places that stay wide.
        lines: the only lines whose products are narrow; None for all.
        elementwise: whether what is computed of products element by element, at little
            cost, is narrow.
        sums: whether sums are narrow too, those over devices among them.
    """

    to: DType
    keep: tuple[Keep, ...] = ()
    lines: frozenset[Place] | None = None
    elementwise: bool = False
    sums: bool = False

    def narrows(self, aval: ShapedArray) -> bool:
        """Whether values of a type are ever rounded."""
        dtype = aval.dtype
        return dtype in WIDE and dtype.itemsize > self.to.itemsize

    def suits(self, aval: ShapedArray) -> bool:
        """Whether a value is narrow already, or may become so."""
        return aval.dtype == self.to or self.narrows(aval)

    def dtype_of(self, aval: ShapedArray) -> DType:
        """The dtype of the narrow version of a value."""
        return self.to if self.narrows(aval) else aval.dtype

    @property
    def has_infinity(self) -> bool:
        """Whether what overflows stays large, so that comparisons see it."""
        return bool(np.isinf(np.float32(np.inf).astype(numpy_dtype(self.to))))

    def kept(self, eqn: Eqn) -> bool:
        """Whether an equation stays as it is."""
        return any([keep(eqn) for keep in self.keep])

    def product(self, eqn: Eqn) -> Params | None:
        """The params of an equation that becomes a narrow product, else None."""
        accumulate = traits_of(eqn.primitive).accumulate
        if accumulate is None or len(eqn.invars) != 2 or len(eqn.outvars) != 1:
            return None
        ins, out = [a.aval for a in eqn.invars], eqn.outvars[0].aval
        may = all(map(self.suits, ins)) and any(map(self.narrows, ins))
        if not may or not self.narrows(out) or self.is_sum(eqn):
            return None
        if self.kept(eqn):
            return None
        if self.lines is not None and place_of(eqn.source) not in self.lines:
            return None
        return accumulate(eqn.params, out.dtype)

    def is_sum(self, eqn: Eqn) -> bool:
        """Whether a product is no more than a sum, as that of two vectors is."""
        ins, out = [a.aval for a in eqn.invars], eqn.outvars[0].aval
        if any([aval.symbolic for aval in (*ins, out)]):
            return False
        elements = sum([aval.size for aval in (*ins, out)])
        return (flops_of(eqn, ins, (out,)) or 0.0) <= elements

    def moves(self, eqn: Eqn) -> bool:
        """Whether rounding the operands of an equation is rounding its results."""
        traits = traits_of(eqn.primitive)
        if not traits.moves or eqn.effects:
            return False
        return traits.flops is no_flops or self.has_infinity

    def is_light(self, eqn: Eqn) -> bool:
        """Whether an equation on narrow operands is computed narrow."""
        traits = traits_of(eqn.primitive)
        cheap = traits.elementwise and traits.work is Work.CHEAP
        return self.elementwise and (cheap or self.moves(eqn)) and not eqn.effects

    def is_narrow_sum(self, eqn: Eqn) -> bool:
        """Whether an equation is a sum that is to be narrow."""
        return (
            self.sums
            and traits_of(eqn.primitive).narrow is Narrow.SUM
            and all([self.narrows(a.aval) for a in (*eqn.invars, *eqn.outvars)])
            and not self.kept(eqn)
        )

    def touches(self, jaxpr: Jaxpr) -> bool:
        """Whether a program, or one inside, has anything to narrow."""
        return kept_with(jaxpr, has_narrow, current_context(), self, jaxpr)


@memo(PROGRAMS)
def has_narrow(context: Context, plan: Narrowing, jaxpr: Jaxpr) -> bool:
    """`Narrowing.touches`, once per program."""
    return any([is_touched(plan, eqn) for eqn in jaxpr.eqns])


def is_touched(plan: Narrowing, eqn: Eqn) -> bool:
    """Whether an equation, or one inside, is narrowed."""
    if plan.product(eqn) is not None or plan.is_narrow_sum(eqn):
        return True
    inside = list(eqn.params.subjaxprs(aside=False))
    return bool(inside) and not plan.kept(eqn) and any(map(plan.touches, inside))


def narrow_type(dtype: DType) -> DType:
    """The dtype that values are rounded to.

    Raises:
        TypeError: it is not one of real floats.
    """
    if not is_float(dtype):
        raise TypeError(f"narrow takes a type of floats for `to`, not {dtype}")
    return dtype
