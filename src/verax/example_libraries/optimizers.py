"""Optimizers as triples of functions, as `jax.example_libraries.optimizers` (floor 6).

One idea: an optimizer is written for one array, and `optimizer` maps it over trees::

    init, update, params_of = adam(1e-3)
    state = init(params)
    state = update(step, gradients, state)

>>> init, update, params_of = sgd(0.5)
>>> params_of(update(0, {"w": 2.0}, init({"w": 1.0})))
{'w': 0.0}
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from attrs import frozen

from verax import numpy as vnp
from verax.api.trees.pytrees import (
    register_pytree_node_class,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_unflatten,
)
from verax.ir.records import ReprMixin
from verax.rules.values.conversions import shown

__all__ = [
    "JoinPoint",
    "Optimizer",
    "OptimizerState",
    "Schedule",
    "adagrad",
    "adam",
    "adamax",
    "clip_grads",
    "constant",
    "exponential_decay",
    "inverse_time_decay",
    "l2_norm",
    "make_schedule",
    "momentum",
    "nesterov",
    "optimizer",
    "pack_optimizer_state",
    "piecewise_constant",
    "polynomial_decay",
    "rmsprop",
    "rmsprop_momentum",
    "sgd",
    "sm3",
    "unpack_optimizer_state",
]

type Schedule = Callable[[Any], Any]
"""The size of a step from its number."""


@register_pytree_node_class
class OptimizerState(NamedTuple):
    """The state of every parameter, flat, and the trees that it was flattened from."""

    packed_state: Any
    tree_def: Any
    subtree_defs: Any

    def tree_flatten(self) -> tuple[tuple[Any], tuple[Any, Any]]:
        return (self.packed_state,), (self.tree_def, self.subtree_defs)

    @classmethod
    def tree_unflatten(cls, aux: tuple[Any, Any], children: Any) -> "OptimizerState":
        return cls(children[0], *aux)


class Optimizer(NamedTuple):
    """An optimizer: makes a state, changes it by a gradient, reads parameters."""

    init_fn: Callable[[Any], Any]
    update_fn: Callable[[Any, Any, Any], Any]
    params_fn: Callable[[Any], Any]


def states_of(state: OptimizerState) -> list[object]:
    """The state of each parameter."""
    pairs = zip(state.subtree_defs, state.packed_state, strict=True)
    return [tree_unflatten(tree, leaves) for tree, leaves in pairs]


def packed(states: list[Any], tree: object) -> OptimizerState:
    """The states of the parameters as one."""
    flat = [tree_flatten(state) for state in states]
    leaves = tuple([leaves for leaves, _ in flat])
    return OptimizerState(leaves, tree, tuple([subtree for _, subtree in flat]))


def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """An optimizer of one array as one of trees of parameters.

    Raises:
        TypeError: when it is used, gradients have another structure than the
            parameters, or an update changes the structure of the state.
    """

    @functools.wraps(opt_maker)
    def make(*args: object, **kwargs: object) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def tree_init(params: object) -> OptimizerState:
            leaves, tree = tree_flatten(params)
            return packed([init(leaf) for leaf in leaves], tree)

        def tree_update(
            i: object, grads: object, state: OptimizerState
        ) -> OptimizerState:
            leaves, tree = tree_flatten(grads)
            if tree != state.tree_def:
                raise TypeError(
                    "the gradients passed to an optimizer must have the structure of "
                    f"its parameters, {state.tree_def}, not {tree}"
                )
            pairs = zip(leaves, states_of(state), strict=True)
            new = packed([update(i, g, s) for g, s in pairs], tree)
            for before, after in zip(state.subtree_defs, new.subtree_defs, strict=True):
                if before != after:
                    raise TypeError(
                        "the update of an optimizer must keep the structure of its "
                        f"state, {before}, but returned {after}"
                    )
            return new

        def tree_params(state: OptimizerState) -> object:
            return tree_unflatten(state.tree_def, map(get_params, states_of(state)))

        return Optimizer(tree_init, tree_update, tree_params)

    return make


def first(state: Any) -> Any:
    """The parameter, which comes first in a state."""
    return state[0]


@optimizer
def sgd(step_size: object) -> object:
    """Gradient descent: steps of `step_size`, a number or a schedule."""
    rate = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - rate(i) * g, lambda x: x


@optimizer
def momentum(step_size: object, mass: object) -> object:
    """Gradient descent whose velocity decays by `mass`."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * velocity, velocity

    return lambda x: (x, vnp.zeros_like(x)), update, first


@optimizer
def nesterov(step_size: object, mass: object) -> object:
    """Gradient descent with Nesterov's momentum, which looks one step ahead."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * (mass * velocity + g), velocity

    return lambda x: (x, vnp.zeros_like(x)), update, first


@optimizer
def adagrad(step_size: object, momentum: Any = 0.9) -> object:
    """Adagrad (Duchi, Hazan and Singer 2011), with momentum."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, m = state
        squares = squares + vnp.square(g)
        m = (1 - momentum) * (g * inverse_root(squares)) + momentum * m
        return x - rate(i) * m, squares, m

    return lambda x: (x, vnp.zeros_like(x), vnp.zeros_like(x)), update, first


def inverse_root(x: Any) -> object:
    """1 / sqrt(x), and 0 where x is 0."""
    return vnp.where(x > 0, 1.0 / vnp.sqrt(x), 0.0)


@optimizer
def rmsprop(step_size: object, gamma: Any = 0.9, eps: Any = 1e-8) -> object:
    """RMSProp: steps divided by the root of a running mean of squares."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares = state
        squares = squares * gamma + vnp.square(g) * (1 - gamma)
        return x - rate(i) * g / vnp.sqrt(squares + eps), squares

    return lambda x: (x, vnp.zeros_like(x)), update, first


@optimizer
def rmsprop_momentum(
    step_size: object, gamma: Any = 0.9, eps: Any = 1e-8, momentum: Any = 0.9
) -> object:
    """RMSProp with momentum."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, velocity = state
        squares = squares * gamma + vnp.square(g) * (1 - gamma)
        step = rate(i) * g / vnp.sqrt(squares + eps)
        velocity = momentum * velocity + step
        return x - velocity, squares, velocity

    return lambda x: (x, vnp.zeros_like(x), vnp.zeros_like(x)), update, first


@optimizer
def adam(step_size: object, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> object:
    """Adam (Kingma and Ba 2015)."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * vnp.square(g) + b2 * v
        mean = m / (1 - vnp.asarray(b1, m.dtype) ** (i + 1))
        square = v / (1 - vnp.asarray(b2, m.dtype) ** (i + 1))
        return x - rate(i) * mean / (vnp.sqrt(square) + eps), m, v

    return lambda x: (x, vnp.zeros_like(x), vnp.zeros_like(x)), update, first


@optimizer
def adamax(
    step_size: object, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8
) -> object:
    """AdaMax: Adam with the running maximum of gradients."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, u = state
        m = (1 - b1) * g + b1 * m
        u = vnp.maximum(b2 * u, vnp.abs(g))
        bias = 1 - vnp.asarray(b1, m.dtype) ** (i + 1)
        return x - (rate(i) / bias) * m / (u + eps), m, u

    return lambda x: (x, vnp.zeros_like(x), vnp.zeros_like(x)), update, first


@optimizer
def sm3(step_size: object, momentum: Any = 0.9) -> object:
    """SM3 (Anil, Gupta, Koren and Singer 2019): one accumulator for each slice."""
    rate = make_schedule(step_size)

    def init(x: object) -> object:
        array = vnp.asarray(x)
        sums = [vnp.zeros(size, array.dtype) for size in array.shape or (1,)]
        return array, vnp.zeros_like(x), sums

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, sums = state
        shape = vnp.shape(x)
        g = vnp.atleast_1d(g)
        dims = range(g.ndim)
        others = [tuple([d for d in dims if d != axis]) for axis in dims]
        spread = [vnp.expand_dims(v, o) for v, o in zip(sums, others, strict=True)]
        accumulated = functools.reduce(vnp.minimum, spread) + vnp.square(g)
        step = (g * inverse_root(accumulated)).reshape(shape)
        m = (1 - momentum) * step + momentum * m
        return x - rate(i) * m, m, [accumulated.max(o) for o in others]

    return init, update, first


def constant(step_size: object) -> Schedule:
    """The same size for every step."""
    return lambda i: step_size


def exponential_decay(
    step_size: object, decay_steps: object, decay_rate: object
) -> Schedule:
    """Sizes that shrink by `decay_rate` in `decay_steps` steps."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: object, decay_steps: object, decay_rate: object, staircase: bool = False
) -> Schedule:
    """Sizes divided by a number that grows with time, in stairs if asked."""

    def schedule(i: Any) -> Any:
        time = i / decay_steps
        return step_size / (1 + decay_rate * (vnp.floor(time) if staircase else time))

    return schedule


def polynomial_decay(
    step_size: Any, decay_steps: object, final_step_size: object, power: object = 1.0
) -> Schedule:
    """Sizes that go to `final_step_size` in `decay_steps` steps and stay there."""

    def schedule(i: object) -> Any:
        left = (1 - vnp.minimum(i, decay_steps) / decay_steps) ** power
        return left * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: object, values: object) -> Schedule:
    """One of `values` between any two boundaries.

    Raises:
        ValueError: they are not sequences, or there is not one value more.
    """
    edges, sizes = vnp.array(boundaries), vnp.array(values)
    if edges.ndim != 1 or sizes.ndim != 1:
        raise ValueError("piecewise_constant takes sequences of boundaries and values")
    if len(edges) != len(sizes) - 1:
        raise ValueError(
            "piecewise_constant takes one value more than boundaries, not "
            f"{len(sizes)} and {len(edges)}"
        )
    return lambda i: sizes[vnp.sum(i > edges)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A schedule, from itself or from a number.

    Raises:
        TypeError: it is neither.
    """
    if callable(scalar_or_schedule):
        schedule: Schedule = scalar_or_schedule
        return schedule
    if vnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(
        f"a step size is a number or a schedule, not {type(scalar_or_schedule)}"
    )


def l2_norm(tree: object) -> Any:
    """The root of the sum of the squares of all elements of the tree."""
    return vnp.sqrt(sum([vnp.vdot(x, x) for x in tree_leaves(tree)]))


def clip_grads(grad_tree: object, max_norm: object) -> Any:
    """The tree, scaled down where its norm is larger than `max_norm`."""
    norm = l2_norm(grad_tree)
    return tree_map(
        lambda g: vnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree
    )


@frozen(eq=False, repr=False)
class JoinPoint(ReprMixin):
    """The place of a tree inside another, where the inner one starts."""

    subtree: Any

    def __iter__(self) -> Iterator[Any]:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> object:
    """The state as a tree with a `JoinPoint` for each parameter, to be saved."""
    return tree_unflatten(opt_state.tree_def, map(JoinPoint, states_of(opt_state)))


def pack_optimizer_state(marked_pytree: object) -> OptimizerState:
    """The state that `unpack_optimizer_state` was called with.

    Raises:
        TypeError: a leaf is not a `JoinPoint`.
    """
    points, tree = tree_flatten(marked_pytree)
    for point in points:
        if not isinstance(point, JoinPoint):
            raise TypeError(
                f"pack_optimizer_state takes a tree of JoinPoints, not {shown(point)}"
            )
    return packed([point.subtree for point in points], tree)
