"""Floor 2: convolutions of few features, as sums of shifted products.

XLA has no code of its own for a CPU where each group has few features, as in depthwise
convolutions, and slow code for arrays of few features, as signals and pictures are. An
output is a sum of few products, one for each place of the window
and feature of a group, and each of them is a shifted array times one number a feature::

    y[n, c, i, j] = x[n, c, i, j] k[c, 0, 0] + x[n, c, i, j + 1] k[c, 0, 1] + ...

The cotangent of such a kernel has one number for each place of the window, the sum of
all products of the array, shifted by it, with the cotangent of the result.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Final

from attrs import evolve

from verax.ir.avals import Shape, ShapedArray
from verax.ops.calls.checkpoint import BARRIER, optimization_barrier_p
from verax.ops.conv.params import ConvParams
from verax.ops.elementwise.arith import add, mul
from verax.ops.reductions.reduce import reduce_sum
from verax.ops.structure.joining import concatenate
from verax.ops.structure.shape import (
    broadcast_in_dim,
    inverse,
    move_axis,
    reshape,
    transpose,
)
from verax.ops.structure.slicing import index_in_dim, pad, slice, slice_in_dim
from verax.ops.windows.geometry import dilated
from verax.rules.values.array import Array

TERMS: Final = 64
"""So many products make an element of the result at most: each is written out."""
FEATURES: Final = 8
"""So many features has a group at most."""
FEW: Final = 2
"""The same for the cotangent of a kernel, where groups may be convolved one by one."""
GROUPS: Final = 32
"""So few groups are convolved one by one, by XLA's code for one group."""
SUMS: Final = 16
"""So many batch elements are added one by one: sums of arrays, which are fast."""
WRITTEN: Final = 128
"""So many products are written out at most for the cotangent of a kernel."""
ONE_GROUP: Final = ((8, 128, 1 << 21), (31, 64, 1 << 14), (64, 27, 1 << 14))
"""Where one group pays: up to so many features of sums of so many products, which are
written out, and from so many in all. XLA's code is faster for more features."""
PAIRS: Final = 4
"""So many pairs of features has the cotangent of the only group of a kernel."""
PLACES: Final = 32
"""And so many places are in it."""

type Spec = tuple[int, ...]
type Convolve = Callable[[ConvParams, Array, Array], Array]


def suits(p: ConvParams, avals: Sequence[ShapedArray]) -> bool:
    """Whether the convolution is one of those above."""
    groups = max(p.feature_group_count, p.batch_group_count)
    if groups < p.feature_group_count * p.batch_group_count:
        return False
    x, k = [aval.shape for aval in avals]
    if not all([*x, *k, *[range(*part) for part in places(p, x, k)]]):
        return False  # nothing to compute
    return kind_of(p, x, k) is not None or 1 < groups <= GROUPS


def convolve(call: Convolve, p: ConvParams, x: Array, k: Array) -> Array:
    """The convolution, which `suits`; `call` convolves a single group."""
    function = kind_of(p, x.shape, k.shape)
    if function is None:
        return one_by_one(call, p, x, k)
    return function(p, x, k)


def kind_of(p: ConvParams, x: Shape, k: Shape) -> Convolve | None:
    """How to compute a convolution in groups of these shapes as shifted products."""
    dims = p.dimension_numbers
    if p.feature_group_count == p.batch_group_count == 1:
        return kind_of_one(p, x, k)
    if p.feature_group_count > 1:
        _, inner, *window = (k[i] for i in dims.rhs_spec)
        few = 0 < inner * prod(window) <= TERMS
        return of_groups if few and inner <= FEATURES else None
    inner = x[dims.lhs_spec[0]] // p.batch_group_count
    terms = inner * prod([len(range(*part)) for part in places(p, x, k)])
    most = FEATURES if p.batch_group_count > GROUPS else FEW
    return of_kernel if inner <= most and 0 < terms <= WRITTEN else None


def kind_of_one(p: ConvParams, x: Shape, k: Shape) -> Convolve | None:
    """How to compute a convolution of one group of these shapes.

    Where the array is spread, most products would be with zeros.
    """
    dims = p.dimension_numbers
    features, inner, *window = (k[i] for i in dims.rhs_spec)
    starts = [len(range(*part)) for part in places(p, x, k)]
    batch, terms = x[dims.lhs_spec[0]], inner * prod(window)
    products = batch * prod(starts) * features * terms
    if max(p.lhs_dilation, default=1) > 1:
        return None
    for most, written, least in ONE_GROUP:
        if features <= most and terms <= written and products >= least:
            return of_groups
    pairs, several = batch * features <= PAIRS, len(window) > 1
    sums = prod(starts) <= PLACES and prod(starts) < prod(window)
    return of_kernel if pairs and several and sums else None


def places(p: ConvParams, x: Shape, k: Shape) -> Iterator[tuple[int, int, int]]:
    """For each spatial dimension the starts of windows: from, to and by how much."""
    dims = p.dimension_numbers
    for i, (low, high) in enumerate(p.padding):
        size, window = x[dims.lhs_spec[2 + i]], k[dims.rhs_spec[2 + i]]
        whole = low + dilated(size, p.lhs_dilation[i]) + high
        last = whole - dilated(window, p.rhs_dilation[i])
        yield 0, last + 1, p.window_strides[i]


def padded(p: ConvParams, x: Array) -> Array:
    """The array with zeros around and between its elements."""
    config = [(0, 0, 0)] * x.ndim
    spatial = p.dimension_numbers.lhs_spec[2:]
    for axis, (low, high), step in zip(spatial, p.padding, p.lhs_dilation, strict=True):
        config[axis] = (low, high, step - 1)
    return pad(x, 0, config)


def shifted(x: Array, axes: Spec, parts: Sequence[range]) -> Array:
    """The places of these ranges in some dimensions."""
    starts, limits, strides = [0] * x.ndim, [*x.shape], [1] * x.ndim
    for axis, part in zip(axes, parts, strict=True):
        starts[axis], strides[axis] = part.start, part.step
        limits[axis] = part[-1] + 1 if part else part.start
    return slice(x, starts, limits, strides)


def of_groups(p: ConvParams, x: Array, k: Array) -> Array:
    """A convolution of groups that have few features."""
    dims, groups = p.dimension_numbers, p.feature_group_count
    axis, spatial = dims.lhs_spec[1], dims.lhs_spec[2:]
    kernel = transpose(k, dims.rhs_spec)
    features, inner, *window = kernel.shape
    whole = padded(p, x)
    starts = [range(*part) for part in places(p, x.shape, k.shape)]
    total: Array | None = None
    for tap in product(*map(range, window)):
        moves = zip(tap, p.rhs_dilation, starts, strict=True)
        parts = [range(i * d + r.start, i * d + r.stop, r.step) for i, d, r in moves]
        part = shifted(whole, spatial, parts)
        for i in range(inner):
            numbers = kernel_at(kernel, (i, *tap))
            own = of_feature(part, axis, groups, i, features // groups)
            term = mul(own, broadcast_in_dim(numbers, own.shape, (axis,)))
            total = term if total is None else add(total, term)
    assert total is not None
    return in_order(total, dims.lhs_spec, dims.out_spec)


def kernel_at(kernel: Array, place: Spec) -> Array:
    """The numbers of all output features at one place of the kernel."""
    starts, limits = (0, *place), (kernel.shape[0], *(i + 1 for i in place))
    return reshape(slice(kernel, starts, limits), (kernel.shape[0],))


def of_feature(x: Array, axis: int, groups: int, i: int, copies: int) -> Array:
    """Feature i of each group, so many times in a row."""
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    if x.shape[axis] != groups:
        parted = reshape(x, (*before, groups, x.shape[axis] // groups, *after))
        x = index_in_dim(parted, i, axis + 1, keepdims=False)
    if copies == 1:
        return x
    kept = tuple([a for a in range(x.ndim + 1) if a != axis + 1])
    spread = broadcast_in_dim(x, (*before, groups, copies, *after), kept)
    return reshape(spread, (*before, groups * copies, *after))


def added(batch: int, terms: int) -> int:
    """The number of batch elements that are added one by one: a divisor."""
    most = min(SUMS, WRITTEN // terms)
    return max([n for n in range(1, most + 1) if batch % n == 0])


def of_kernel(p: ConvParams, x: Array, ct: Array) -> Array:
    """The cotangent of the kernel of such a convolution, as a convolution itself.

    The features of `x` are its batch elements here, and its batch is in groups.
    """
    dims, groups = p.dimension_numbers, p.batch_group_count
    axis, batch, *spatial = dims.lhs_spec
    cotangent = in_order(ct, dims.rhs_spec, dims.lhs_spec)
    features, inner = cotangent.shape[axis], x.shape[axis] // groups
    whole = padded(p, x)
    sizes = [cotangent.shape[a] for a in spatial]
    starts = [range(*part) for part in places(p, x.shape, ct.shape)]
    window = [len(r) for r in starts]
    count = added(x.shape[batch], inner * prod(window))
    cotangents = in_parts(cotangent, batch, count)
    sums: list[Array] = []
    for i, *tap in product(range(inner), *starts):
        moves = zip(tap, p.rhs_dilation, sizes, strict=True)
        parts = [range(at, at + dilated(n, d), d) for at, d, n in moves]
        part = shifted(whole, tuple(spatial), parts)
        own = of_feature(part, axis, groups, i, features // groups)
        terms = map(mul, in_parts(own, batch, count), cotangents)
        sums.append(functools.reduce(add, terms))
    others = tuple([a for a in range(x.ndim) if a != axis])
    # In one loop with these sums, the terms would be added one element at a time.
    numbers = [
        reshape(reduce_sum(total, others), (1, features))
        for total in optimization_barrier_p.bind(BARRIER, *sums)
    ]
    full = reshape(concatenate(numbers, 0), (inner, *window, features))
    full = move_axis(full, x.ndim - 1, 1)
    return in_order(full, tuple(range(x.ndim)), dims.out_spec)


def in_parts(x: Array, axis: int, count: int) -> list[Array]:
    """So many parts of one size along a dimension."""
    size = x.shape[axis] // count
    starts = range(0, x.shape[axis], size)
    return [slice_in_dim(x, start, start + size, axis=axis) for start in starts]


def one_by_one(call: Convolve, p: ConvParams, x: Array, k: Array) -> Array:
    """A convolution of few groups, as one convolution for each."""
    dims = p.dimension_numbers
    groups = max(p.feature_group_count, p.batch_group_count)
    place = dims.lhs_spec[1 if p.feature_group_count > 1 else 0]
    single = evolve(p, feature_group_count=1, batch_group_count=1)
    pairs = zip(
        in_parts(x, place, groups), in_parts(k, dims.rhs_spec[0], groups), strict=True
    )
    outs = [call(single, *pair) for pair in pairs]
    return concatenate(outs, dims.out_spec[1])


def in_order(x: Array, spec: Spec, other: Spec) -> Array:
    """The array whose dimensions `spec` names, as `other` names them."""
    order = tuple([spec[i] for i in inverse(other)])
    return x if order == tuple(range(x.ndim)) else transpose(x, order)
