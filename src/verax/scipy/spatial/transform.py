"""Floor 6: rotations in three dimensions, and interpolation between them.

A rotation is a pytree of one array, its quaternions (x, y, z, w) of shape (4,) or
(n, 4), so it passes through every transformation::

    turn = Rotation.from_euler("z", 90, degrees=True)
    turn.apply(verax.numpy.array([1.0, 0.0, 0.0]))          # [0, 1, 0]
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Self

from verax import numpy as vnp
from verax.ir.dtypes import DTypeLike
from verax.numpy.arguments.arguments import ArrayLike, inexact_arrays
from verax.random.continuous import normal
from verax.random.keys import one_key
from verax.rules.values.array import Array
from verax.scipy.spatial import quaternions

__all__ = ["Rotation", "Slerp"]


def components(name: str, x: ArrayLike, *shape: int) -> Array:
    """`x` as floating-point numbers whose last dimensions are `shape`."""
    (out,) = inexact_arrays(name, vnp.asarray(x))
    if out.shape[-len(shape) :] != shape:
        sizes = ", ".join(map(str, shape))
        raise ValueError(
            f"{name} takes an array of shape (..., {sizes}), not {out.aval}"
        )
    return out


def parsed_axes(name: str, seq: str) -> tuple[list[int], bool]:
    """The numbers of the axes, and whether they turn with the body (upper case).

    Raises:
        ValueError: not one to three letters of one case, or one twice in a row.
    """
    intrinsic = seq.isupper()
    axes = ["xyz".find(letter) for letter in (seq.lower() if intrinsic else seq)]
    if not 1 <= len(axes) <= 3 or -1 in axes:
        raise ValueError(
            f"{name}: seq must be one to three of 'x', 'y', 'z', or of 'X', 'Y', 'Z', "
            f"not {seq!r}"
        )
    if any(a == b for a, b in pairwise(axes)):
        raise ValueError(f"{name}: consecutive axes must differ, not {seq!r}")
    return axes, intrinsic


class Rotation(NamedTuple):
    """One rotation, or a row of them.

    Make one with `from_quat`, `from_matrix`, `from_rotvec`, `from_euler` or `from_mrp`.

    >>> turn = Rotation.from_euler("z", 90, degrees=True)
    >>> (turn * turn).as_rotvec(degrees=True).round().tolist()
    [0.0, 0.0, 180.0]
    """

    quat: Array

    @classmethod
    def concatenate(cls, rotations: Sequence["Rotation"]) -> Self:
        """The rows of several objects, one after the other."""
        return cls(vnp.concatenate([rotation.quat for rotation in rotations]))

    @classmethod
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> Self:
        """Rotations about one to three axes, one after the other.

        Args:
            seq: the axes: "x", "y", "z" are fixed in space, "X", "Y", "Z" turn with
                the body.
            angles: shape (len(seq),) or (n, len(seq)); a number for one axis.
            degrees: whether the angles are degrees, not radians.

        Raises:
            ValueError: the axes or the shape of the angles do not fit.
        """
        axes, intrinsic = parsed_axes("from_euler", seq)
        array = vnp.asarray(angles)
        array = components(
            "from_euler", array if array.ndim else array[None], len(axes)
        )
        radians = vnp.deg2rad(array) if degrees else array
        return cls(quaternions.from_euler(axes, radians, intrinsic))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Self:
        """Rotations from orthogonal matrices of shape (3, 3) or (n, 3, 3)."""
        return cls(quaternions.from_matrix(components("from_matrix", matrix, 3, 3)))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> Self:
        """Rotations from modified Rodrigues parameters, shape (3,) or (n, 3)."""
        return cls(quaternions.from_mrp(components("from_mrp", mrp, 3)))

    @classmethod
    def from_quat(cls, quat: ArrayLike) -> Self:
        """Rotations from quaternions (x, y, z, w) of any length but zero."""
        return cls(quaternions.normalize(components("from_quat", quat, 4)))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> Self:
        """Rotations about vectors of shape (3,) or (n, 3), by their lengths."""
        array = components("from_rotvec", rotvec, 3)
        return cls(quaternions.from_rotvec(vnp.deg2rad(array) if degrees else array))

    @classmethod
    def identity(cls, num: int | None = None, dtype: DTypeLike = float) -> Self:
        """The rotation that moves nothing, or `num` of them."""
        one = vnp.array([0.0, 0.0, 0.0, 1.0], dtype)
        return cls(one if num is None else vnp.broadcast_to(one, (num, 4)))

    @classmethod
    def random(cls, random_key: ArrayLike, num: int | None = None) -> Self:
        """One rotation, or `num` of them, distributed uniformly."""
        shape = (4,) if num is None else (num, 4)
        key = one_key("Rotation.random", random_key)
        return cls(quaternions.normalize(normal(key, shape)))

    # A rotation is a tuple because its pytree is one, but it counts and selects
    # rotations, not fields.
    def __getitem__(self, indexer: object) -> "Rotation":  # type: ignore[override]  # see above
        if self.single:
            raise TypeError("a single rotation takes no index")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        if self.single:
            raise TypeError("a single rotation has no length")
        return self.quat.shape[0]

    def __mul__(self, other: "Rotation") -> "Rotation":  # type: ignore[override]  # see above
        """First `other`, then this rotation."""
        return Rotation.from_quat(quaternions.compose(self.quat, other.quat))

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """The vectors, of shape (3,) or (n, 3), turned; turned back for `inverse`."""
        array = components("apply", vectors, 3)
        matrix = self.as_matrix()
        subscripts = "...kj,...k->...j" if inverse else "...jk,...k->...j"
        return vnp.einsum(subscripts, matrix, array)

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """The angles about three axes, shape (3,) or (n, 3).

        At a pole, where only a sum or difference of two angles is determined, the
        third angle is zero.

        Raises:
            ValueError: `seq` does not name three axes (see `from_euler`).
        """
        axes, intrinsic = parsed_axes("as_euler", seq)
        if len(axes) != 3:
            raise ValueError(f"as_euler: seq must name three axes, not {seq!r}")
        angles = quaternions.as_euler(self.quat, axes, intrinsic)
        return vnp.rad2deg(angles) if degrees else angles

    def as_matrix(self) -> Array:
        """The matrices, shape (3, 3) or (n, 3, 3)."""
        return quaternions.as_matrix(self.quat)

    def as_mrp(self) -> Array:
        """The modified Rodrigues parameters, axis * tan(angle / 4)."""
        return quaternions.as_mrp(self.quat)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """The axes, scaled by the angles."""
        vectors = quaternions.as_rotvec(self.quat)
        return vnp.rad2deg(vectors) if degrees else vectors

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """The quaternions (x, y, z, w), or (w, x, y, z) for `scalar_first`.

        `canonical` chooses between q and -q: w > 0, and if w is zero the first of x,
        y, z that is not.
        """
        out = quaternions.canonical(self.quat) if canonical else self.quat
        return vnp.roll(out, 1, axis=-1) if scalar_first else out

    def inv(self) -> "Rotation":
        """The rotation that undoes this one."""
        return Rotation(quaternions.inverse(self.quat))

    def magnitude(self) -> Array:
        """The angles, between 0 and pi, of shape () or (n,)."""
        return quaternions.magnitude(self.quat)

    def mean(self, weights: ArrayLike | None = None) -> "Rotation":
        """The rotation with the least weighted mean square of chordal distances.

        Markley et al., "Averaging quaternions", 2007.

        Raises:
            TypeError: this is a single rotation.
            ValueError: there is not one weight a rotation.
        """
        count, dtype = len(self), self.quat.dtype
        w = vnp.ones(count, dtype) if weights is None else vnp.asarray(weights, dtype)
        if w.shape != (count,):
            raise ValueError(
                f"mean takes one weight a rotation, shape ({count},), not {w.shape}"
            )
        _, vectors = vnp.linalg.eigh((w[None, :] * self.quat.T) @ self.quat)
        return Rotation(vectors[:, -1])

    @property
    def single(self) -> bool:
        """Whether this is one rotation and not a row of them."""
        return self.quat.ndim == 1


class Slerp(NamedTuple):
    """Interpolation between rotations at constant angular velocity.

    >>> ends = Rotation.from_rotvec(vnp.array([[0, 0, 0], [0, 0, 90]]), degrees=True)
    >>> middle = Slerp.init(vnp.array([0.0, 2.0]), ends)(1.0)
    >>> middle.as_rotvec(degrees=True).round().tolist()
    [0.0, 0.0, 45.0]
    """

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> Self:
        """The interpolation through `rotations` at increasing `times`.

        Raises:
            TypeError: `rotations` is not a `Rotation`.
            ValueError: there are fewer than two, or not one time for each.
        """
        if not isinstance(rotations, Rotation):
            raise TypeError(
                f"Slerp.init takes a Rotation, not a {type(rotations).__name__}"
            )
        if rotations.single or len(rotations) == 1:
            raise ValueError("Slerp.init takes at least two rotations")
        array = vnp.asarray(times, rotations.quat.dtype)
        if array.shape != (len(rotations),):
            raise ValueError(
                f"Slerp.init takes one time a rotation, shape ({len(rotations)},), "
                f"not {array.shape}"
            )
        starts, ends = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(array, vnp.diff(array), starts, (starts.inv() * ends).as_rotvec())

    def __call__(self, times: ArrayLike) -> Rotation:
        """The rotations at `times`, a number or a vector.

        Raises:
            ValueError: `times` has more than one dimension.
        """
        array = vnp.asarray(times, self.times.dtype)
        if array.ndim > 1:
            raise ValueError(
                f"Slerp takes a time or a vector of times, not {array.aval}"
            )
        flat = array if array.ndim else array[None]
        last = self.timedelta.shape[0] - 1
        i = vnp.clip(vnp.searchsorted(self.times, flat) - 1, 0, last)
        part = (flat - self.times[i]) / self.timedelta[i]
        turned = quaternions.from_rotvec(self.rotvecs[i] * part[:, None])
        result = quaternions.compose(self.rotations.quat[i], turned)
        return Rotation.from_quat(result if array.ndim else result[0])
