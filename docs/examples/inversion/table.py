"""The table of inverses: how each primitive is solved for the operand that is missing.

One idea: an elementwise rule is the inverse function alone, since its pivots are what
the jvp of the row says::

    lax.exp_p: elementwise(lambda known, y: vnp.log(y))
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from attrs import evolve
from pyrsistent import pmap

import verax
import verax.numpy as vnp
from docs.examples.inversion.elimination import (
    Inverses,
    Known,
    NotInvertible,
    Rule,
    inverted,
)
from verax import Array, lax
from verax.ir.jaxpr import Primitive
from verax.ops.calls.call import inlined, jit_p
from verax.ops.calls.checkpoint import checkpoint_p
from verax.ops.control.scan import scan_p
from verax.ops.custom.jvp import custom_jvp_call_p
from verax.ops.custom.vjp import custom_vjp_call_p
from verax.rules.rows.infer import chosen


def elementwise(solve: Callable[[Known, Array], Array]) -> Rule:
    """The rule of a row that acts on each element: `solve` gives the operand."""

    def rule(known: Known) -> tuple[Sequence[Array], Array | float]:
        (y,), place = known.results, known.place
        if known.avals[place].shape != y.shape:
            raise NotInvertible("one scalar operand is solved for by many results")
        x = solve(known, y)

        def along(u: Array) -> Array:
            xs = [u if i == place else z for i, z in enumerate(known.operands)]
            return known.row.call(known.params, *xs)

        _, slope = verax.jvp(along, (x,), (vnp.ones_like(x),))
        return [x], vnp.sum(vnp.log(vnp.abs(slope)))

    return rule


def moving(solve: Callable[[Known, Array], Array]) -> Rule:
    """The rule of a row that moves elements about, with a determinant of one."""
    return lambda known: ([solve(known, known.results[0])], 0.0)


def other_side(known: Known, y: Array) -> Array:
    """x - b or a - x solved for x."""
    return y + known.other if known.place == 0 else known.other - y


def of_quotient(known: Known, y: Array) -> Array:
    """x / b or a / x solved for x."""
    return y * known.other if known.place == 0 else known.other / y


def odd_root(known: Known, y: Array) -> Array:
    power: int = known.params.y
    if power % 2 == 0:
        raise NotInvertible(f"x ** {power} is the same for x and -x")
    root: Array = vnp.sign(y) * vnp.abs(y) ** (1 / power)
    return root


def matrix(known: Known) -> tuple[Sequence[Array], Array | float]:
    """x @ W or W @ x, for a square matrix W and any number of vectors."""
    ((left, right), batch), x = known.params.dimension_numbers, known.place
    other, y = known.other, known.results[0]
    if batch != ((), ()) or len(left) != 1 or other.ndim != 2:
        raise NotInvertible("dot_general is inverted for vectors times one matrix")
    inner, own = (left[0], right[0])[x], (right[0], left[0])[x]
    weights = other if own == 0 else other.T
    if weights.shape[0] != weights.shape[1]:
        raise NotInvertible(f"a matrix of shape {other.shape} has no inverse")
    rows = y if x == 0 else vnp.moveaxis(y, 0, -1)
    solved = vnp.linalg.solve(weights.T, rows.reshape(-1, weights.shape[0]).T).T
    count = prod(rows.shape[:-1])
    actual = vnp.moveaxis(solved.reshape(rows.shape), -1, inner)
    return [actual], count * vnp.linalg.slogdet(weights)[1]


def pieces(known: Known) -> tuple[Sequence[Array], Array | float]:
    """The operands of a concatenation are slices of it."""
    axis = known.params.dimension
    ends = list(np.cumsum([aval.shape[axis] for aval in known.avals]))
    parts = vnp.split(known.results[0], ends[:-1], axis)
    return chosen(known.missing, parts), 0.0


def expanded(known: Known, y: Array) -> Array:
    if prod(known.avals[0].shape) != y.size:
        raise NotInvertible("broadcasting copies elements")
    return y.reshape(known.avals[0].shape)


def transposed(known: Known, y: Array) -> Array:
    return vnp.transpose(y, [int(i) for i in np.argsort(known.params.permutation)])


def of_call(known: Known) -> tuple[Sequence[Array], Array | float]:
    """The inverse of an inner function is a call of its inverse."""
    jaxpr = inverted(known.params.jaxpr, known.missing, known.table)
    given = [x for x in known.operands if x is not None]
    params = evolve(known.params, jaxpr=jaxpr, name=f"inverse of {known.params.name}")
    *actual, log_det = jit_p.bind(params, *given, *known.results)
    return actual, log_det


def inside(known: Known) -> tuple[Sequence[Array], Array | float]:
    """A function with rules of its own is inverted for what it computes."""
    jaxpr = inverted(known.params.jaxpr, known.missing, known.table)
    given = [x for x in known.operands if x is not None]
    *actual, log_det = inlined(jaxpr, [*given, *known.results])
    return actual, log_det


def differences(known: Known, y: Array) -> Array:
    axis, back = known.params.axis, known.params.reverse
    end = vnp.zeros_like(lax.slice_in_dim(y, 0, 1, axis=axis))
    if back:
        return -vnp.diff(y, axis=axis, append=end)
    return vnp.diff(y, axis=axis, prepend=end)


def of_scan(known: Known) -> tuple[Sequence[Array], Array | float]:
    """A loop over layers is undone from the last step to the first."""
    p = known.params
    consts, carry, xs = p.parts(known.operands)
    if any(x is None for x in consts) or any(x is not None for x in carry):
        raise NotInvertible(
            "scan is inverted where its carries are unknown and its constants known"
        )
    jaxpr = inverted(p.jaxpr, known.missing, known.table)
    fixed, rows = [x for x in consts if x is not None], [x for x in xs if x is not None]
    ends, ys = p.results(known.results)

    def step(state: Any, row: Any) -> Any:
        after, total = state
        *actual, log_det = inlined(jaxpr, [*fixed, *row[0], *after, *row[1]])
        return (actual[: p.num_carry], total + log_det), actual[p.num_carry :]

    zero = vnp.zeros((), jaxpr.out_avals[-1].dtype)
    (start, total), rest = lax.scan(
        step, (ends, zero), (rows, ys), length=p.length, reverse=not p.reverse
    )
    return [*start, *rest], total


ONE: dict[Primitive, Rule] = {
    lax.neg_p: elementwise(lambda k, y: -y),
    lax.add_p: elementwise(lambda k, y: y - k.other),
    lax.sub_p: elementwise(other_side),
    lax.mul_p: elementwise(lambda k, y: y / k.other),
    lax.div_p: elementwise(of_quotient),
    lax.exp_p: elementwise(lambda k, y: vnp.log(y)),
    lax.log_p: elementwise(lambda k, y: vnp.exp(y)),
    lax.expm1_p: elementwise(lambda k, y: vnp.log1p(y)),
    lax.log1p_p: elementwise(lambda k, y: vnp.expm1(y)),
    lax.tanh_p: elementwise(lambda k, y: vnp.arctanh(y)),
    lax.atanh_p: elementwise(lambda k, y: vnp.tanh(y)),
    lax.sinh_p: elementwise(lambda k, y: vnp.arcsinh(y)),
    lax.asinh_p: elementwise(lambda k, y: vnp.sinh(y)),
    lax.logistic_p: elementwise(lambda k, y: vnp.log(y) - vnp.log1p(-y)),
    lax.erf_p: elementwise(lambda k, y: lax.erf_inv(y)),
    lax.erf_inv_p: elementwise(lambda k, y: lax.erf(y)),
    lax.cbrt_p: elementwise(lambda k, y: y * y * y),
    lax.integer_pow_p: elementwise(odd_root),
    lax.reshape_p: moving(lambda k, y: y.reshape(k.avals[0].shape)),
    lax.squeeze_p: moving(lambda k, y: y.reshape(k.avals[0].shape)),
    lax.broadcast_in_dim_p: moving(expanded),
    lax.transpose_p: moving(transposed),
    lax.rev_p: moving(lambda k, y: lax.rev(y, k.params.dimensions)),
    lax.convert_element_type_p: moving(lambda k, y: y.astype(k.avals[0].dtype)),
    lax.cumsum_p: moving(differences),
    lax.dot_general_p: matrix,
}
SEVERAL: dict[Primitive, Rule] = {
    lax.concatenate_p: pieces,
    jit_p: of_call,
    scan_p: of_scan,
    checkpoint_p: inside,
    custom_jvp_call_p: inside,
    custom_vjp_call_p: inside,
}
INVERSES = Inverses(pmap(ONE), pmap(SEVERAL))
