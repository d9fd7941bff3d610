"""Floor 6: when two results of the same mathematics count as equal.

One idea: the unit is the rounding error of the result's own dtype, and what an
ill-conditioned program does to rounding errors is measured, not guessed::

    difference(np.float32([1.0]), np.float32([1.0000001]), ulps=4)    # None

The allowances, and why each is there:

* integers and booleans are equal or not;
* NaN equals NaN whatever its payload, and infinities have a sign; 0.0 equals -0.0,
  for sums may start from either;
* floats may differ by a few units in the last place: NumPy and XLA use other
  polynomials for the same function, and fuse multiplication and addition differently;
* below the smallest normal number anything goes: XLA flushes subnormals on CPU;
* a number within the same distance of the largest one equals infinity;
* the parts of a complex number are measured by its absolute value, for both compute
  products whose terms cancel; if it is not finite, only that is compared: C leaves
  open which part of an infinite product is NaN.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import evolve, fields, frozen, has

from verax.ir.avals import ShapedArray, finfo
from verax.ir.dtypes import (
    complex128,
    float0,
    float64,
    is_complex,
    is_float,
    is_inexact,
    numpy_dtype,
    real_dtype,
)
from verax.ir.jaxpr import (
    Atom,
    Eqn,
    Jaxpr,
    Literal,
    NoParams,
    Params,
    array_literal,
    scalar_literal,
)
from verax.ir.records import ReprMixin
from verax.ir.walk import interpret
from verax.ops.calls.call import inline
from verax.rules.rows.builder import Builder
from verax.rules.rows.infer import inferred
from verax.rules.rows.row import Engine, NDArray, SomeRow, SomeSample
from verax.transforms.engine.engine import evaluate_eqn, literal_value

ULPS = 16.0
"""Special functions of NumPy and XLA have errors of up to about eight units each."""


@frozen(repr=False)
class Difference(ReprMixin):
    """The first element in which two results differ, and by how much it might."""

    index: tuple[int, ...]
    got: object
    want: object
    allowed: float

    def __str__(self) -> str:
        return (
            f"at {list(self.index)}: {self.got!r} instead of {self.want!r} (a distance "
            f"of {self.allowed:.3g} is allowed)"
        )


def difference(
    got: NDArray,
    want: NDArray,
    *,
    ulps: float = ULPS,
    slack: NDArray | None = None,
) -> Difference | None:
    """The first difference between arrays of one shape and dtype, or None.

    `slack` is what may be added to the distance, element by element; NaN there means
    that the element is not determined and may be anything.
    """
    if got.shape != want.shape or got.dtype != want.dtype:
        kinds = [f"{x.dtype}{list(x.shape)}" for x in (got, want)]
        return Difference((), kinds[0], kinds[1], 0.0)
    if got.dtype == float0 or got.size == 0:
        return None
    extra = np.zeros(got.shape) if slack is None else slack
    allowed = np.broadcast_to(np.asarray(extra, np.float64), got.shape)
    if is_inexact(got.dtype):
        equal, allowed = inexact_equal(got, want, ulps, allowed)
    else:
        equal = got == want
    wrong = np.argwhere(~(equal | np.isnan(allowed)))
    if not len(wrong):
        return None
    index = tuple(int(i) for i in wrong[0])
    return Difference(index, got[index], want[index], float(allowed[index]))


def inexact_equal(
    got: NDArray, want: NDArray, ulps: float, slack: NDArray
) -> tuple[NDArray, NDArray]:
    """Flags of elements that count as equal, and the distances allowed."""
    limits = finfo(got.dtype)
    eps, tiny, top = float(limits.eps), float(limits.tiny), float(limits.max)
    a, b = exact(got), exact(want)
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(a), np.abs(b))
        allowed = ulps * eps * np.where(np.isfinite(size), size, 0.0) + tiny + slack
        near = np.abs(a - b) <= allowed
        edge = top * (1 - ulps * eps)
    if is_complex(got.dtype):
        finite_a, finite_b = np.isfinite(a), np.isfinite(b)
        large = (np.abs(a) >= edge) | (np.abs(b) >= edge)
        return near | (~finite_a & ~finite_b) | (large & ~(finite_a & finite_b)), (
            allowed
        )
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    full = (np.abs(a) >= edge) & (np.abs(b) >= edge) & (np.sign(a) == np.sign(b))
    return same | full | near, allowed


def exact(x: NDArray) -> NDArray:
    """The elements in double precision."""
    with np.errstate(all="ignore"):  # a signalling NaN is an invalid operand
        return x.astype(np.complex128 if is_complex(x.dtype) else np.float64)


def nudged(x: NDArray, random: np.random.Generator) -> NDArray:
    """`x` with every inexact element about one unit in the last place away."""
    if not is_inexact(x.dtype) or x.size == 0:
        return x
    part = numpy_dtype(real_dtype(x.dtype))
    eps = float(finfo(x.dtype).eps)
    with np.errstate(all="ignore"):
        if is_complex(x.dtype):
            flat: NDArray = np.ascontiguousarray(x).reshape(-1).view(part)
            turn = 1 + eps * random.choice((-1.0, 1.0), flat.shape)
            return np.asarray(flat * turn, part).view(x.dtype).reshape(x.shape)
        step = 1 + eps * random.choice((-1.0, 1.0), x.shape)
        wide = x.astype(np.float64) * step
        return np.asarray(wide).astype(x.dtype)


def sensitivity(
    engine: Engine,
    jaxpr: Jaxpr,
    args: Sequence[NDArray],
    *,
    jumps: bool = False,
    runs: int = 4,
) -> list[NDArray]:
    """The change of each output if every rounding goes the other way.

    The program runs a few times with its operands and all results of equations nudged
    by one unit in the last place: another implementation that is exact for operands
    within their rounding error must be accepted. With `jumps`, outputs that jump (a
    comparison of two rounded numbers) are NaN: not determined.
    """
    jaxpr = inline(jaxpr)  # the equations of calls round too
    base = engine.evaluate(jaxpr, args)
    spread = [np.zeros(x.shape) for x in base]
    for run in range(runs):
        outs = nudged_outputs(engine, jaxpr, args, np.random.default_rng(run))
        spread = [
            np.maximum(s, moved(x, y, jumps=jumps))
            for s, x, y in zip(spread, outs, base, strict=True)
        ]
    return spread


def nudged_outputs(
    engine: Engine, jaxpr: Jaxpr, args: Sequence[NDArray], random: np.random.Generator
) -> list[NDArray]:
    """The outputs of a program, with its operands and all results nudged."""

    def results(eqn: Eqn, operands: list[NDArray]) -> list[NDArray]:
        return [nudged(x, random) for x in evaluate_eqn(engine, eqn, operands)]

    with np.errstate(all="ignore"):
        inputs = [nudged(x, random) for x in args]
        return interpret(jaxpr, inputs, results, literal_value)


def own_errors(
    engine: Engine, jaxpr: Jaxpr, args: Sequence[NDArray], *, runs: int = 4
) -> list[NDArray]:
    """The distance of a row's evaluate rule from itself on numbers with more digits.

    A rule that cancels, such as `1 + tanh(x)` at -5, is no truth about its last digits;
    one that is exact stays as strict as it is. Zeros where the rule does not take wider
    numbers, and where it overflows: that is for the rule to avoid.
    """
    (eqn,) = jaxpr.eqns
    evaluate = engine.rules[eqn.primitive].evaluate
    out = [np.zeros(v.aval.shape) for v in eqn.outvars]
    if evaluate is None:
        return out
    for run in range(runs):
        random = np.random.default_rng(run)
        near = [nudged(x, random) if run else x for x in args]
        try:
            with np.errstate(all="ignore"):
                plain = evaluate_eqn(engine, eqn, near)
                wide = evaluate(engine, eqn.params, [wider(x) for x in near])
                away = [
                    exact(np.asarray(x) - y) for x, y in zip(wide, plain, strict=True)
                ]
        except Exception:  # the author's code, on dtypes that it may not know
            return out
        if [x.shape for x in away] != [x.shape for x in out]:
            return out
        out = [
            np.maximum(e, np.where(np.isfinite(x), np.abs(x), 0.0))
            for e, x in zip(out, away, strict=True)
        ]
    return out


def wider(x: NDArray) -> NDArray:
    """The same numbers in a dtype with more digits; what is no float as it is."""
    if not is_float(x.dtype):
        return x
    with np.errstate(all="ignore"):
        return x.astype(np.longdouble if x.dtype == np.float64 else np.float64)


def moved(x: NDArray, y: NDArray, *, jumps: bool) -> NDArray:
    """The distance of two runs, element by element; NaN for jumps if they count."""
    lost = np.nan if jumps else 0.0
    if x.dtype == float0:
        return np.zeros(x.shape)
    if not is_inexact(x.dtype):
        return np.where(x == y, 0.0, lost)
    a, b = exact(x), exact(y)
    with np.errstate(all="ignore"):
        distance = np.abs(a - b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.isfinite(a) & np.isfinite(b)
    return np.where(same, 0.0, np.where(finite, distance, lost))


def subnormals(x: NDArray) -> bool:
    """Whether any element is a number that XLA on CPU takes for zero."""
    return bool(np.any(flushed(x) != x)) if is_inexact(x.dtype) else False


def flushed(x: NDArray) -> NDArray:
    """`x` with zeros for subnormal numbers."""
    if not is_inexact(x.dtype) or x.dtype.itemsize == 1:
        return x
    tiny = float(finfo(x.dtype).tiny)
    if is_complex(x.dtype):
        part = numpy_dtype(real_dtype(x.dtype))
        flat = np.ascontiguousarray(x).reshape(-1).view(part)
        return flushed(flat).view(x.dtype).reshape(x.shape)
    with np.errstate(all="ignore"):
        small = np.abs(x.astype(np.float64)) < tiny
        return np.where(small, np.zeros((), x.dtype), x).astype(x.dtype)


# -----------------------------------------------------------------------------
# Calls in double precision, for central differences need the digits.
#
# A call in float64 is the same mathematics, so types and those params that
# name an inexact dtype are widened together, also those of programs inside the params::
#
#     widened(sin_p, Sample(NO_PARAMS, (f32[3],)))     # Sample(NO_PARAMS, (f64[3],))


def widened(row: SomeRow, sample: SomeSample) -> SomeSample:
    """The call in double precision, or as it is if its row does not take that."""
    avals = tuple([wide_aval(aval) for aval in sample.avals])
    for change in (wide_params, unchanged):
        try:
            params = change(sample.params)
            inferred(row, params, *avals)
        except (TypeError, ValueError):
            continue
        return evolve(sample, params=params, avals=avals)
    return sample


def unchanged[P: Params](params: P) -> P:
    return params


def wide_aval(aval: ShapedArray) -> ShapedArray:
    """The type in double precision; integers and booleans stay."""
    if is_float(aval.dtype):
        return aval.with_dtype(float64, aval.weak_type)
    if is_complex(aval.dtype):
        return aval.with_dtype(complex128, aval.weak_type)
    return aval


def wide_params[P: Params](params: P) -> P:
    """Params with double precision for all that they say about inexact dtypes.

    Those are dtypes and types among the fields, and the programs that they hold.

    Raises:
        TypeError: an equation inside does not take double precision.
    """
    if isinstance(params, NoParams) or not has(type(params)):
        return params
    wide: P = wide_record(params)
    return wide


def wide_record(record: Any) -> Any:
    """The record with wide fields; itself, if no field changes."""
    changed = {}
    for attribute in fields(type(record)):
        before = getattr(record, attribute.name)
        after = wide_value(before)
        if after is not before:
            changed[attribute.name] = after
    return evolve(record, **changed) if changed else record


def wide_value(value: Any) -> object:
    """The value of a field in double precision, the same object if nothing changes."""
    if isinstance(value, np.dtype):
        return wide_dtype(value)
    if isinstance(value, ShapedArray):
        return wide_aval(value)
    if isinstance(value, Jaxpr):
        return wide_jaxpr(value)
    if isinstance(value, tuple):
        items = tuple([wide_value(item) for item in value])
        same = all(a is b for a, b in zip(items, value, strict=True))
        return value if same or type(value) is not tuple else items
    # Rules of custom calls are records that hold programs, and algorithms of products
    # hold dtypes; engines are none of both.
    if has(type(value)) and any(has_width(value, a.name) for a in fields(type(value))):
        return wide_record(value)
    return value


def has_width(record: object, name: str) -> bool:
    return isinstance(getattr(record, name), Jaxpr | np.dtype)


def wide_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """The program in double precision, equation by equation."""
    builder = Builder("a law")
    inputs = builder.input_atoms(map(wide_aval, jaxpr.in_avals))

    def write(eqn: Eqn, ins: Sequence[Atom]) -> list[Atom]:
        outs = builder.bind(eqn.primitive, wide_params(eqn.params), ins)
        return [builder.atom(x) for x in outs]

    return builder.close(interpret(jaxpr, inputs, write, wide_literal))[0]


def wide_literal(atom: Literal) -> Literal:
    """The literal with a wide constant."""
    aval = wide_aval(atom.aval)
    if aval is atom.aval:
        return atom
    value = np.asarray(atom.value).astype(numpy_dtype(aval.dtype))
    return array_literal(value, aval) if aval.shape else scalar_literal(value, aval)


def wide_dtype(dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    if is_float(dtype):
        return float64
    return complex128 if is_complex(dtype) else dtype
