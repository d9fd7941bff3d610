"""Floor 6: the algebra of quaternions (x, y, z, w) that represent rotations.

Every function takes quaternions of shape (..., 4), of unit length unless it says
otherwise, and has derivatives at the identity too, where the angle is zero::

    as_rotvec(compose(from_rotvec(v), from_rotvec(-v)))    # zeros
"""

import math
from collections.abc import Sequence
from typing import Final

from verax import numpy as vnp
from verax.rules.values.array import Array

# Below this angle the ratios of an angle and its sine are taken from their series.
SMALL: Final = 1e-3
# Nearer than this to a pole, two of three Euler angles turn about the same axis.
POLE: Final = 1e-7


def dot(p: Array, q: Array) -> Array:
    """The inner products of vectors of shape (..., n), with shape (..., 1)."""
    return vnp.sum(p * q, axis=-1, keepdims=True)


def length(v: Array) -> Array:
    """Euclidean lengths, with shape (..., 1); the derivative at zero is zero."""
    squared = dot(v, v)
    positive = squared > 0
    return vnp.where(positive, vnp.sqrt(vnp.where(positive, squared, 1)), 0)


def normalize(q: Array) -> Array:
    """Quaternions of any length but zero, scaled to unit length."""
    return q / vnp.sqrt(dot(q, q))


def halves(q: Array) -> tuple[Array, Array]:
    """The vector part, shape (..., 3), and the scalar part, shape (..., 1)."""
    return q[..., :3], q[..., 3:]


def joined(vector: Array, scalar: Array) -> Array:
    return vnp.concatenate([vector, scalar], axis=-1)


def canonical(q: Array) -> Array:
    """Of q and -q, which are one rotation, the one whose first of (w, x, y, z) that
    is not zero is positive.
    """
    x, y, z, w = (q[..., i : i + 1] for i in range(4))
    leading = vnp.where(w != 0, w, vnp.where(x != 0, x, vnp.where(y != 0, y, z)))
    return vnp.where(leading < 0, -q, q)


def compose(p: Array, q: Array) -> Array:
    """The Hamilton product: first the rotation q, then p."""
    (u, a), (v, b) = halves(p), halves(q)
    return joined(a * v + b * u + vnp.cross(u, v), a * b - dot(u, v))


def inverse(q: Array) -> Array:
    vector, scalar = halves(q)
    return joined(-vector, scalar)


def magnitude(q: Array) -> Array:
    """The angles of rotation, between 0 and pi, with shape (...)."""
    vector, scalar = halves(q)
    return 2 * vnp.arctan2(length(vector), vnp.abs(scalar))[..., 0]


def from_rotvec(v: Array) -> Array:
    """Rotations about the vectors v, by angles equal to their lengths."""
    angle = length(v)
    small = angle <= SMALL
    squared = angle * angle
    safe = vnp.where(small, 1, angle)
    series = 0.5 - squared / 48 + squared * squared / 3840
    scale = vnp.where(small, series, vnp.sin(safe / 2) / safe)
    return joined(scale * v, vnp.cos(angle / 2))


def as_rotvec(q: Array) -> Array:
    """The vectors that point along the axes and are as long as the angles."""
    vector, scalar = halves(vnp.where(q[..., 3:] < 0, -q, q))
    angle = 2 * vnp.arctan2(length(vector), scalar)
    small = angle <= SMALL
    squared = angle * angle
    safe = vnp.where(small, 1, angle)
    series = 2 + squared / 12 + 7 * squared * squared / 2880
    return vnp.where(small, series, safe / vnp.sin(safe / 2)) * vector


def from_mrp(m: Array) -> Array:
    """Rotations from modified Rodrigues parameters, axis * tan(angle / 4)."""
    scale = 1 + dot(m, m)
    return joined(2 * m, 2 - scale) / scale


def as_mrp(q: Array) -> Array:
    vector, scalar = halves(vnp.where(q[..., 3:] < 0, -q, q))
    return vector / (1 + scalar)


def from_matrix(m: Array) -> Array:
    """Rotations from matrices of shape (..., 3, 3).

    For a rotation matrix, 4 q q' is linear in its entries; each row of it is q up to a
    factor, and the row with the greatest diagonal entry loses no digits.
    """
    trace = vnp.trace(m, axis1=-2, axis2=-1)
    rows = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        row = [m[..., i, n] + m[..., n, i] for n in range(3)]
        row[i] = 1 - trace + 2 * m[..., i, i]
        rows.append([*row, m[..., k, j] - m[..., j, k]])
    rows.append([*(row[3] for row in rows), 1 + trace])
    outer = vnp.stack([vnp.stack(row, axis=-1) for row in rows], axis=-2)
    best = vnp.argmax(vnp.diagonal(outer, axis1=-2, axis2=-1), axis=-1)
    chosen = vnp.take_along_axis(outer, best[..., None, None], axis=-2)
    return normalize(chosen[..., 0, :])


def as_matrix(q: Array) -> Array:
    """The matrices of shape (..., 3, 3)."""
    x, y, z, w = (q[..., i] for i in range(4))
    rows = (
        (x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), y * y - x * x - z * z + w * w, 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), z * z - x * x - y * y + w * w),
    )
    return vnp.stack([vnp.stack(row, axis=-1) for row in rows], axis=-2)


def about_axis(axis: int, angle: Array) -> Array:
    """Rotations about a coordinate axis, by angles of shape (...)."""
    half = angle / 2
    parts = [vnp.zeros_like(half)] * 3
    parts[axis] = vnp.sin(half)
    return vnp.stack([*parts, vnp.cos(half)], axis=-1)


def from_euler(axes: Sequence[int], angles: Array, intrinsic: bool) -> Array:
    """Rotations from angles of shape (..., n) about n axes, one after the other."""
    q = about_axis(axes[0], angles[..., 0])
    for i, axis in enumerate(axes[1:], 1):
        turn = about_axis(axis, angles[..., i])
        q = compose(q, turn) if intrinsic else compose(turn, q)
    return q


def as_euler(q: Array, axes: Sequence[int], intrinsic: bool) -> Array:
    """The angles, of shape (..., 3), about three axes; at a pole the third is zero.

    Bernardes and Viollet, "Quaternion to Euler angles conversion", 2022.
    """
    i, j, k = axes[::-1] if intrinsic else axes
    proper = i == k
    if proper:
        k = 3 - i - j
    sign = (i - j) * (j - k) * (k - i) // 2
    x, y, z, w = q[..., i], q[..., j], sign * q[..., k], q[..., 3]
    a, b, c, d = (w, x, y, z) if proper else (w - y, x + z, y + w, z - x)
    middle = 2 * vnp.arctan2(vnp.hypot(c, d), vnp.hypot(a, b))
    low, high = vnp.abs(middle) <= POLE, vnp.abs(middle - math.pi) <= POLE
    half_sum, half_difference = vnp.arctan2(b, a), vnp.arctan2(d, c)
    turned = 2 * half_difference * (1 if intrinsic else -1)
    merged = vnp.where(low, 2 * half_sum, turned)
    outer = half_sum - half_difference, half_sum + half_difference
    first, third = outer[::-1] if intrinsic else outer
    first = vnp.where(low | high, merged, first)
    third = vnp.where(low | high, 0, third)
    if not proper:
        middle = middle - math.pi / 2
        first, third = (sign * first, third) if intrinsic else (first, sign * third)
    angles = vnp.stack([first, middle, third], axis=-1)
    angles = vnp.where(angles < -math.pi, angles + 2 * math.pi, angles)
    return vnp.where(angles > math.pi, angles - 2 * math.pi, angles)
