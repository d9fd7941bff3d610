"""A primitive with a kernel of one's own: h_t = a_t h_(t-1) + b_t along the last axis.

One idea: a linear recurrence (exponential smoothing, state-space layers) is linear in
b, and its derivative and its adjoint are recurrences again; so a row of two rules is
differentiable to every order in both modes::

    h = recurrence(a, b)                     # h_0 = b_0
    h = recurrence(a, b, reverse=True)       # h_t = a_t h_(t+1) + b_t, from the end

The adjoint of b: if g is the cotangent of h, that of b is the recurrence of g in the
other direction, with the decays moved by one place. It means a loop in NumPy, compiles
to a call of that loop on the host, or to log2(T) steps of StableHLO, which run on every
device; `kernel` chooses. Reference: Blelloch, Prefix Sums and Their Applications
(1990), for the scan of (a, b).
"""

from collections.abc import Sequence
from random import Random
from typing import Any, Literal

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

import verax.numpy as vnp
from verax import Array, lax
from verax.extend import Domain, Params, Row, Sample, Zero
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float32, float64, is_float, stored_dtype
from verax.rules.rows.builder import program
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.row import Axis, Engine, Known, Linear, Tangent

type Kernel = Literal["host", "loop"]


@frozen(eq=False, repr=False)
class RecurrenceParams(Params):
    """Whether it starts at the end, and what computes it in compiled programs."""

    reverse: bool
    kernel: str


def typing(p: RecurrenceParams, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
    a, b = avals
    if a.shape != b.shape or a.dtype != b.dtype or not a.shape or not is_float(a.dtype):
        raise TypeError(
            "recurrence takes decays and inputs of one shape and one float dtype, with "
            f"time in the last dimension, not {a} and {b}"
        )
    return [b.strong()]


def on_host(p: RecurrenceParams, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """The kernel: a loop over time, over all else at once."""
    h = np.zeros_like(b)
    state = np.zeros(b.shape[:-1], b.dtype)
    steps = range(b.shape[-1])
    for t in reversed(steps) if p.reverse else steps:
        state = a[..., t] * state + b[..., t]
        h[..., t] = state
    return h


@frozen(cache_hash=True)
class HostKernel:
    """The kernel as compiled programs call it; equal ones are one function."""

    params: RecurrenceParams
    result: ShapedArray

    def __call__(self, *arrays: NDArray[Any]) -> Sequence[NDArray[Any]]:
        a, b = arrays
        return [on_host(self.params, a, b)]

    def blanks(self) -> Sequence[NDArray[Any]]:
        """What stands for the result where another part of the program has failed."""
        return [np.zeros(self.result.shape, stored_dtype(self.result.dtype))]


def doubling(p: RecurrenceParams, a: Array, b: Array) -> Array:
    """The composition: after step k, h reaches 2^k places back."""
    length, reach = b.shape[-1], 1
    while reach < length:
        b = b + a * moved(b, reach, p.reverse)
        a = a * moved(a, reach, p.reverse)
        reach *= 2
    return b


def moved(x: Array, places: int, back: bool) -> Array:
    """x later by so many places, or earlier if `back`; zeros come in."""
    ends = (-places, places) if back else (places, -places)
    pads = [(0, 0, 0)] * (x.ndim - 1) + [(*ends, 0)]
    return lax.pad(x, vnp.zeros((), x.dtype), pads)


def lower(
    e: Emitter, p: RecurrenceParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    if p.kernel == "host":
        return e.callback(HostKernel(p, outs[0]), xs, outs, effect=False, ordered=False)
    avals = [x.aval for x in xs]
    return e.inline(program(avals, lambda a, b: (doubling(p, a, b),)), xs)


def jvp(
    engine: Engine, p: RecurrenceParams, xs: Sequence[Array], ts: Sequence[Tangent]
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """dh_t = a_t dh_(t-1) + (da_t h_(t-1) + db_t): the same decays, other inputs."""
    a, b = xs
    da, db = ts
    h = recurrence_p.call(p, a, b)
    if isinstance(da, Zero):
        assert not isinstance(db, Zero)
        return (h,), (recurrence_p.call(p, a, db),)
    inputs = da * moved(h, 1, p.reverse)
    if not isinstance(db, Zero):
        inputs = inputs + db
    return (h,), (recurrence_p.call(p, a, inputs),)


def transpose(
    engine: Engine, p: RecurrenceParams, cts: Sequence[Tangent], xs: Sequence[Known]
) -> Sequence[Tangent | None]:
    """The recurrence in the other direction: g_t + a_(t+1) times what comes later."""
    a, b = xs
    (g,) = cts
    if isinstance(a, Linear):
        raise NotImplementedError("recurrence is linear in its inputs, not in decays")
    if isinstance(g, Zero):
        return None, Zero(b.aval)
    back = RecurrenceParams(not p.reverse, p.kernel)
    return None, recurrence_p.call(back, moved(a, 1, not p.reverse), g)


def batch(
    engine: Engine,
    p: RecurrenceParams,
    size: int,
    xs: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """The batch goes to the front: the kernel takes any dimensions before time."""
    full = [
        vnp.broadcast_to(x, (size, *x.shape))
        if axis is None
        else vnp.moveaxis(x, axis, 0)
        for x, axis in zip(xs, axes, strict=True)
    ]
    return (recurrence_p.call(p, *full),), (0,)


def draw(random: Random) -> Sample[RecurrenceParams]:
    """A call for the tests, empty and short ones among them."""
    shape = random.choice([(5,), (2, 4), (3, 1), (0,), (2, 0), (1, 8), (0, 3)])
    aval = ShapedArray(shape, random.choice([float32, float64]))
    params = RecurrenceParams(random.random() < 0.5, random.choice(["host", "loop"]))
    return Sample(params, (aval, aval))


recurrence_p: Row[RecurrenceParams] = Row(
    "recurrence",
    RecurrenceParams,
    typing=typing,
    evaluate=lambda engine, p, xs: [on_host(p, *xs)],
    jvp=jvp,
    transpose=transpose,
    batch=batch,
    lower=lower,
    draw=draw,
    domains=(Domain(-1.5, 1.5, special=(0.0, 1.0)), Domain(-3, 3, special=(0.0,))),
)


def recurrence(
    a: Array, b: Array, *, reverse: bool = False, kernel: Kernel = "loop"
) -> Array:
    """h with h_t = a_t h_(t-1) + b_t along the last axis, and h_0 = b_0.

    Args:
        a: decays, `f[..., T]`; the first (the last, if `reverse`) meets no state.
        b: inputs of the same shape and dtype.
        reverse: start at the end.
        kernel: what compiled programs run: the "host"'s NumPy, or a "loop" of XLA.

    Raises:
        TypeError: shapes or dtypes differ, or there is no dimension of time.

    >>> recurrence(vnp.full(4, 0.5), vnp.ones(4)).tolist()
    [1.0, 1.5, 1.75, 1.875]
    """
    if kernel not in ("host", "loop"):
        raise ValueError(f'kernel is "host" or "loop", not {kernel!r}')
    return recurrence_p.call(RecurrenceParams(reverse, kernel), a, b)


def pullback(a: Array, b: Array, g: Array) -> tuple[Array, Array]:
    """The vjp written out by hand, to which the derived one is held in the tests.

    The cotangents of a and b for the cotangent g of `recurrence(a, b)`.
    """
    db = recurrence(moved(a, 1, back=True), g, reverse=True)
    return db * moved(recurrence(a, b), 1, back=False), db
