"""A generator of random numbers that counts by itself, as NumPy's do (floor 6).

It is a key and a reference to a counter; each draw folds the counter into the key. So
it works under `jit`, `grad` and `vmap` as far as references do::

    rng = stateful_rng(42)
    rng.normal(size=3), rng.normal(size=3)     # other numbers

>>> rng = stateful_rng(42)
>>> rng.uniform()
Array(0.5302608, dtype=float32)
>>> rng.uniform()
Array(0.72766423, dtype=float32)
"""

from collections.abc import Sequence
from operator import index

import numpy as np
from attrs import frozen

import verax.numpy as vnp
from verax import random
from verax.api.tracing.apply import is_tracing
from verax.backend.pytrees import flatten
from verax.dtypes import issubdtype, prng_key
from verax.ir.avals import Shape, is_reference
from verax.ir.records import ReprMixin
from verax.ref import new_ref
from verax.rules.values.array import Array
from verax.rules.values.reference import Ref
from verax.tree_util import register_pytree_node_class
from verax.typing import ArrayLike, DTypeLike

__all__ = ["StatefulPRNG", "stateful_rng"]

type Size = int | Sequence[int] | None


def drawn_shape(size: Size, *parameters: ArrayLike) -> Shape:
    """The shape of a draw: as asked for, or that of the parameters together."""
    if size is None:
        return np.broadcast_shapes(*[np.shape(x) for x in parameters])
    if isinstance(size, int | np.integer):
        return (index(size),)
    return tuple(map(index, size))


@register_pytree_node_class
@frozen(eq=False, repr=False)
class StatefulPRNG(ReprMixin):
    """A key, and a reference to the number of draws made with it.

    Raises:
        ValueError: the key is no typed key, or the counter no reference.
    """

    _base_key: Array
    _counter: Array | Ref

    def __attrs_post_init__(self) -> None:
        leaves = flatten((self._base_key, self._counter))[0]
        if len(leaves) != 2 or type(leaves[0]) is object:
            return  # a structure that is only looked at
        dtype = getattr(self._base_key, "dtype", None)
        if isinstance(self._base_key, Array) and not issubdtype(dtype, prng_key):
            raise ValueError(
                f"Expected base_key to be a typed PRNG key; got {self._base_key}"
            )
        if isinstance(self._counter, Array | int) and not is_reference(self._counter):
            raise ValueError(
                f"Expected counter to be a scalar integer ref; got {self._counter}"
            )

    def tree_flatten(self) -> tuple[tuple[object, object], None]:
        """The key and the counter."""
        return (self._base_key, self._counter), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: Sequence[Array]) -> "StatefulPRNG":
        """A generator of a key and a counter."""
        return cls(*children)

    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """A new key, or an array of them; the counter goes up by one.

        Raises:
            ValueError: this is several generators, for `vmap`.
        """
        if self._base_key.shape:
            raise ValueError(
                "cannot operate on split stateful generator: it is one for each "
                "element of a verax.vmap; pass it there"
            )
        key = random.fold_in(self._base_key, self._counter[...])
        self._counter[...] += 1
        sizes = drawn_shape(shape)
        return random.split(key, sizes) if sizes else key

    def random(self, size: Size = None, dtype: DTypeLike = float) -> Array:
        """Floats in [0, 1)."""
        return random.uniform(self.key(), drawn_shape(size), dtype)

    def uniform(
        self,
        low: ArrayLike = 0,
        high: ArrayLike = 1,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
    ) -> Array:
        """Floats in [low, high), of the shape of the bounds if no `size` is given."""
        shape = drawn_shape(size, low, high)
        return random.uniform(self.key(), shape, dtype, low, high)

    def normal(
        self,
        loc: ArrayLike = 0,
        scale: ArrayLike = 1,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
    ) -> Array:
        """Normal samples around `loc` with the standard deviation `scale`."""
        samples = random.normal(self.key(), drawn_shape(size, loc, scale), dtype)
        out = vnp.asarray(loc) + vnp.asarray(scale) * samples
        return out.astype(samples.dtype)

    def integers(
        self,
        low: ArrayLike,
        high: ArrayLike | None = None,
        size: Size = None,
        *,
        dtype: DTypeLike = int,
    ) -> Array:
        """Integers in [low, high), or in [0, low) without `high`."""
        first, last = (0, low) if high is None else (low, high)
        shape = drawn_shape(size, first, last)
        return random.randint(self.key(), shape, first, last, dtype)

    def split(self, num: int | Sequence[int]) -> "StatefulPRNG":
        """Independent generators in one object, each for an element of a `vmap`."""
        keys = self.key(num)
        return StatefulPRNG(keys, new_ref(vnp.zeros(keys.shape, int)))

    def spawn(self, n_children: int) -> list["StatefulPRNG"]:
        """A list of independent generators."""
        return [StatefulPRNG(key, new_ref(0)) for key in self.key(n_children)]


def stateful_rng(
    seed: ArrayLike | None = None, *, impl: str | None = None
) -> StatefulPRNG:
    """A generator that starts at `seed`, or at a number of the system's without one.

    `impl` names the implementation of its key, as in `verax.random.key`.

    Raises:
        TypeError: there is no seed, within a function that is being traced.
    """
    if seed is None:
        if is_tracing():
            raise TypeError(
                "When used within transformed code, stateful_rng() requires an "
                "explicit seed to be set: the program would have the same one each time"
            )
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    return StatefulPRNG(random.key(seed, impl=impl), new_ref(0))
