"""Gradients in types of little range: the loss is scaled, its gradients are not.

One idea: float16 has nothing below 6e-8, where many gradients lie. So the loss is
multiplied by a large number before it is differentiated, and what comes out divided by
it in the wide type; where something overflows, the step is skipped and the number is
halved::

    scaled = loss_scale(verax.value_and_grad, scale)
    (loss, grads), scale = scaled(loss_of)(params, batch)

bfloat16 has the range of float32 and needs none of it.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple, overload

import numpy as np

import verax.numpy as vnp
from verax.api.tracing.wrapping import wraps
from verax.ir.dtypes import is_inexact
from verax.numpy.arguments.arguments import ArrayLike
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import check_callable, shown
from verax.tree import leaves as tree_leaves, map as tree_map

type Transformation = Callable[..., Callable[..., Any]]


class DynamicScale(NamedTuple):
    """A scale that adapts itself: doubled after many good steps, halved after a bad.

    It is a tree of arrays, and every step makes a new one.

    Attributes:
        scale: by what the loss is multiplied.
        good: the steps since it last changed.
        skipped: the steps so far whose gradients were not finite.
        finite: whether those of the last step were.
        interval: after so many good steps it grows.
        growth: by what it grows.
        backoff: by what it shrinks, to 1 at least.

    >>> from verax.rewrites import dynamic_scale
    >>> state = dynamic_scale(8.0, interval=2)
    >>> for finite in (True, True, False):
    ...     state = state.after(finite)
    >>> float(state.scale), int(state.skipped)
    (8.0, 1)
    """

    scale: Array
    good: Array
    skipped: Array
    finite: Array
    interval: Array
    growth: Array
    backoff: Array

    def after(self, finite: object) -> "DynamicScale":
        """The scale after a step whose gradients are finite, or not."""
        ok = vnp.asarray(finite)
        good = vnp.where(ok, self.good + 1, 0)
        grows = good >= self.interval
        larger = self.scale * self.growth
        up = vnp.where(grows & vnp.isfinite(larger), larger, self.scale)
        down = vnp.maximum(self.scale * self.backoff, 1.0)
        return self._replace(
            scale=vnp.where(ok, up, down),
            good=vnp.where(grows, 0, good),
            skipped=self.skipped + vnp.where(ok, 0, 1),
            finite=ok,
        )

    def select(self, new: object, old: object) -> Any:
        """`new` if the last gradients were finite, else `old`: trees of one structure.

        >>> import verax.numpy as vnp
        >>> from verax.rewrites import dynamic_scale
        >>> state = dynamic_scale().after(False)
        >>> float(state.select(vnp.array(1.0), vnp.array(2.0)))
        2.0
        """
        return tree_map(lambda x, y: vnp.where(self.finite, x, y), new, old)


DynamicScale.__module__ = "verax.rewrites"


def dynamic_scale(
    initial: float = 2.0**15,
    *,
    interval: int = 2000,
    growth: float = 2.0,
    backoff: float = 0.5,
) -> DynamicScale:
    """A scale that adapts itself, to begin with.

    Args:
        initial: the first scale.
        interval: after so many steps without overflow it grows.
        growth: the factor by which it grows, more than 1.
        backoff: the factor after a step that overflows, less than 1.

    Returns:
        A `DynamicScale`, which `loss_scale` takes.

    Raises:
        ValueError: a number makes no sense.

    >>> from verax.rewrites import dynamic_scale
    >>> float(dynamic_scale().scale)
    32768.0
    """
    if not (initial > 0 and interval > 0 and growth >= 1 and 0 < backoff <= 1):
        raise ValueError(
            "dynamic_scale takes a positive initial scale and interval, growth of at "
            f"least 1 and backoff of at most 1, not {initial}, {interval}, {growth}, "
            f"{backoff}"
        )
    return DynamicScale(
        vnp.float32(initial),
        vnp.int32(0),
        vnp.int32(0),
        vnp.bool_(True),
        vnp.int32(interval),
        vnp.float32(growth),
        vnp.float32(backoff),
    )


@overload
def loss_scale(
    value_and_grad: Transformation, scale: DynamicScale
) -> Callable[..., Callable[..., tuple[Any, DynamicScale]]]: ...
@overload
def loss_scale(value_and_grad: Transformation, scale: ArrayLike) -> Transformation: ...
def loss_scale(value_and_grad: Transformation, scale: ArrayLike | DynamicScale) -> Any:
    """`value_and_grad` of a loss that is scaled on its way back.

    Args:
        value_and_grad: `verax.value_and_grad`, or a library's, which takes
            `has_aux=True`.
        scale: a number, or a `DynamicScale`.

    Returns:
        A transformation that takes what `value_and_grad` takes. With a number, it gives
        the same results: the loss, and gradients that are scaled back in their own
        types. With a `DynamicScale`, it gives a pair: these results, and the scale for
        the next step, which says whether the gradients are `finite`. `select` skips an
        update if they are not.

    Raises:
        TypeError: `value_and_grad` is no function, or what it makes is called with
            something else than a loss.
        ValueError: the scale is a number that is not positive.

    >>> import verax, verax.numpy as vnp
    >>> from verax.rewrites import dynamic_scale, loss_scale, narrow
    >>> def loss(w, x):
    ...     return vnp.mean((x @ w) ** 2)
    >>> w, x = vnp.ones((4, 2)), vnp.ones((4, 4))
    >>> scaled = loss_scale(verax.value_and_grad, dynamic_scale())
    >>> (value, grads), scale = scaled(narrow(loss, to=vnp.float16))(w, x)
    >>> float(value), float(grads[0, 0]), bool(scale.finite)
    (16.0, 4.0, True)
    >>> loss_scale(verax.value_and_grad, 1024.0)(loss)(w, x)[0]
    Array(16., dtype=float32)
    """
    check_callable("loss_scale", value_and_grad)
    factor = scale.scale if isinstance(scale, DynamicScale) else scale
    if isinstance(factor, int | float) and not factor > 0:
        raise ValueError(f"loss_scale takes a positive scale, not {factor!r}")

    def transformation(
        fun: Callable[..., Any], *args: object, has_aux: bool = False, **kwargs: object
    ) -> Callable[..., object]:
        if not callable(fun):
            raise TypeError(
                "loss_scale takes value_and_grad itself, and what it gives takes the "
                "loss: loss_scale(verax.value_and_grad, scale)(loss)(*args), but the "
                f"loss is {shown(fun)}"
            )

        @wraps(fun)
        def scaled(*operands: object, **named: object) -> object:
            out = fun(*operands, **named)
            loss = out[0] if has_aux else out
            return loss * vnp.asarray(factor, aval_of(loss).dtype), out

        differentiated = value_and_grad(scaled, *args, has_aux=True, **kwargs)

        @wraps(fun)
        def call(*operands: object, **named: object) -> Any:
            (_, out), grads = differentiated(*operands, **named)
            unscaled = tree_map(lambda g: over(g, factor), grads)
            if not isinstance(scale, DynamicScale):
                return out, unscaled
            return (out, unscaled), scale.after(all_finite(grads))

        return call

    return transformation


def over(gradient: Array | np.ndarray, scale: object) -> Any:
    """A gradient without the scale, in its own type."""
    if not is_inexact(aval_of(gradient).dtype):
        return gradient
    return gradient / vnp.asarray(scale, gradient.dtype)


def all_finite(tree: object) -> Array:
    """Whether all numbers in a tree are finite.

    >>> bool(all_finite([vnp.ones(2), vnp.inf]))
    False
    """
    floats = [x for x in tree_leaves(tree) if is_inexact(aval_of(x).dtype)]
    flags = [vnp.isfinite(x).all() for x in floats]
    return reduce(vnp.logical_and, flags, vnp.bool_(True))
