"""Floor 3: wider arithmetic for the equations of a program.

One idea: an arithmetic widens values, and runs an equation on wide operands; what has a
meaning in its own dtype only runs in that, between conversions::

    wide = InFloat64(engine)
    wide.run(eqn, [wide.widen(x) for x in operands])
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from attrs import define, evolve, field

from verax.ir.dtypes import complex128, float64, is_complex, is_inexact, stored_dtype
from verax.ir.jaxpr import Eqn, Params
from verax.ir.records import ReprMixin
from verax.ops.elementwise.arith import nextafter_p
from verax.ops.elementwise.convert import bitcast_convert_type_p, reduce_precision_p
from verax.rules.rows.row import Engine, EvaluateRule, NDArray
from verax.rules.values.state import widths_of
from verax.transforms.comparing.running import InDtype
from verax.transforms.engine.engine import evaluate_eqn

type Wide = NDArray
type Prepared = tuple[Eqn, EvaluateRule[Params] | None, Params]
"""An equation, its rule on wide operands, if that may be called, and its params."""


def has_own_bits(eqn: Eqn) -> bool:
    """Whether the results of an equation depend on the dtype by their meaning."""
    row = eqn.primitive
    return row is nextafter_p or row is bitcast_convert_type_p


class Arithmetic(Protocol):
    """Wider arithmetic: a name, and how values and equations are there."""

    @property
    def name(self) -> str:
        """The name in reports."""
        ...

    def widen(self, value: NDArray) -> Wide:
        """A value as it is here; it keeps all of its digits."""
        ...

    def run(self, eqn: Eqn, operands: Sequence[Wide]) -> list[Wide]:
        """The results of an equation on wide operands."""
        ...


def run_narrow(
    arithmetic: Arithmetic, engine: Engine, eqn: Eqn, operands: Sequence[Wide]
) -> list[Wide]:
    """The results of an equation in its own dtypes, widened."""
    with np.errstate(all="ignore"):
        narrow = [
            np.asarray(x).astype(stored_dtype(a.aval.dtype), copy=False)
            for x, a in zip(operands, eqn.invars, strict=True)
        ]
    return [arithmetic.widen(x) for x in evaluate_eqn(engine, eqn, narrow)]


def widened_params(arithmetic: Arithmetic, params: Params) -> Params:
    """Params with wide dtypes for others."""
    changes: dict[str, object] = {}
    for name, old in params.items():
        if isinstance(old, np.dtype) and is_inexact(old):
            changes[name] = arithmetic.widen(np.empty(0, old)).dtype
    changed: Params = evolve(params, **changes) if changes else params
    return changed


def prepared(arithmetic: Arithmetic, engine: Engine, eqn: Eqn) -> Prepared:
    """How an equation runs on wide operands at once, if it can."""
    inner = next(eqn.params.subjaxprs(), None) is not None
    if inner or has_own_bits(eqn):
        return eqn, None, eqn.params
    row = engine.rules[eqn.primitive]
    return eqn, row.evaluate, widened_params(arithmetic, eqn.params)


def called(
    arithmetic: Arithmetic, engine: Engine, known: Prepared, operands: Sequence[Wide]
) -> list[Wide] | None:
    """What the rule makes of wide operands; None unless the results are as wide."""
    eqn, evaluate, params = known
    if evaluate is None:
        return None
    try:
        outs = evaluate(engine, params, operands)
    except (TypeError, ValueError, AttributeError):
        return None
    results = [np.asarray(x) for x in outs]
    for x, v in zip(results, eqn.outvars, strict=True):
        due = v.aval.dtype
        if is_inexact(due):
            due = arithmetic.widen(np.empty(0, stored_dtype(due))).dtype
        if x.dtype != due:
            return None
    return results


@define(eq=False, repr=False)
class InFloat64(ReprMixin):
    """Float64, or complex128, in NumPy."""

    engine: Engine
    inner: InDtype = field(init=False)
    retyped: dict[int, tuple[Eqn, Eqn | None]] = field(factory=dict)
    direct: dict[int, Prepared] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.inner = InDtype(self.engine, float64)

    @property
    def name(self) -> str:
        return "float64"

    def widen(self, value: NDArray) -> Wide:
        dtype = value.dtype
        if dtype == np.float64 or not is_inexact(dtype):
            return value
        return value.astype(complex128 if is_complex(dtype) else float64)

    def run(self, eqn: Eqn, operands: Sequence[Wide]) -> list[Wide]:
        known = self.direct.get(id(eqn))
        if known is None:
            known = self.direct[id(eqn)] = prepared(self, self.engine, eqn)
        if eqn.primitive is reduce_precision_p:
            return list(operands)
        outs = called(self, self.engine, known, operands)
        if outs is not None:
            return outs
        own = self.wider(eqn)
        if own is not None:
            with widths_of((float64,)):
                return evaluate_eqn(self.engine, own, list(operands))
        return run_narrow(self, self.engine, eqn, operands)

    def wider(self, eqn: Eqn) -> Eqn | None:
        """The equation in wide dtypes; None where it is not the same there."""
        if id(eqn) not in self.retyped:
            self.retyped[id(eqn)] = eqn, self.inner.retyped(eqn)
        return self.retyped[id(eqn)][1]


# -----------------------------------------------------------------------------
# Wider than float64: the extended floats of the machine.


@define(eq=False, repr=False)
class InExtended(ReprMixin):
    """The machine's extended floats, `np.longdouble`: 64 bits of digits on x86.

    `refused` are the names of operations that ran in their own dtypes.
    """

    engine: Engine
    refused: set[str] = field(factory=set)
    direct: dict[int, Prepared] = field(factory=dict)

    @property
    def name(self) -> str:
        return f"longdouble ({np.finfo(np.longdouble).nmant + 1} bits)"

    def widen(self, value: NDArray) -> Wide:
        dtype = value.dtype
        if dtype == np.longdouble or not is_inexact(dtype):
            return value
        return value.astype(np.clongdouble if is_complex(dtype) else np.longdouble)

    def run(self, eqn: Eqn, operands: Sequence[Wide]) -> list[Wide]:
        if eqn.primitive is reduce_precision_p:
            return list(operands)
        known = self.direct.get(id(eqn))
        if known is None:
            known = self.direct[id(eqn)] = prepared(self, self.engine, eqn)
        outs = called(self, self.engine, known, operands)
        if outs is not None:
            return outs
        if any(is_inexact(v.aval.dtype) for v in eqn.outvars):
            self.refused.add(eqn.primitive.name)
        return run_narrow(self, self.engine, eqn, operands)
