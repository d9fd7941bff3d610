"""Floor 5: functions with the user's own batching rule.

One idea: under a trace a call becomes one equation that holds the function's jaxpr and
the rule as a value; the rule is traced when it is batched::

    f = custom_vmap(lambda x: x * x)
    f.def_vmap(lambda axis_size, in_batched, xs: (xs * xs, in_batched[0]))
"""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import field, frozen

from verax.api.custom.arguments import (
    SortedArguments,
    describe_type,
    fits,
    sort_arguments,
    trace_body,
)
from verax.api.custom.base import (
    CallRules,
    call_eagerly,
    called,
    inner_rule,
    pair_of,
    rules_of_call,
)
from verax.api.custom.snapshots import Home, Snapshot, snapshots_at
from verax.api.tracing.apply import ENGINE, is_tracing
from verax.api.tracing.trace import trace
from verax.api.tracing.wrapping import function_name, look_like
from verax.backend import pytrees
from verax.backend.pytrees import result_tree
from verax.ir.avals import ShapedArray, is_reference
from verax.ir.jaxpr import Jaxpr
from verax.ops.custom.vmap import CustomVmapParams, custom_vmap_call_p
from verax.rules.rows.leaks import leaked
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.sizes import ShapeError
from verax.rules.values.state import entered

type Mask = tuple[bool, ...]


@frozen(cache_hash=True, repr=False)
class UserVmap(CallRules):
    """A batching rule, for the calls with arguments of some types."""

    rule: Snapshot = field(repr=False)

    @property
    def functions(self) -> tuple[Snapshot, ...]:
        """See `CallRules.functions`."""
        return (self.rule,)

    @property
    def purpose(self) -> str:
        """The name of the rule in messages."""
        return f"the vmap rule of {self.name}"

    def batched(self, size: int, in_batched: Mask) -> tuple[Jaxpr, Mask]:
        """See `VmapRule.batched`."""
        return self.kept(traced_batch, size, in_batched)

    def call(
        self, size: int, in_batched: Mask, leaves: tuple[object, ...]
    ) -> tuple[list[Array], Mask]:
        """Call the rule; results, and which of them are stacked."""
        flags = list(self.tree.unflatten(in_batched))
        args = (size, flags, *self.tree.unflatten(leaves))
        takes = f"the axis size, which arguments are batched and what {self.name} takes"
        result = called(self.rule.value, self.purpose, takes, args)
        pair = pair_of(self.purpose, "output, output batched", result)
        rule = f"custom vmap rule ({function_name(self.rule.value)})"
        tree, marked = (pytrees.flatten(part)[1] for part in pair)
        if tree != marked:
            raise ShapeError(
                "structure of output value and output batching specification returned "
                f"by {rule} do not match: they are {tree} and {marked}"
            )
        if tree != self.out_tree:
            raise ShapeError(
                f"structure of output returned by {rule} does not match that of "
                f"original custom-vmapped function {self.name}: they are {tree} and "
                f"{self.out_tree}"
            )
        outs, marks = (pytrees.flatten(part)[0] for part in pair)
        mask = tuple(map(bool, marks))
        pairs = zip(outs, self.out_avals, mask, strict=True)
        return [self.typed(i, size, *pair) for i, pair in enumerate(pairs)], mask

    def typed(
        self, i: int, size: int, x: object, aval: ShapedArray, stacked: bool
    ) -> Array:
        """A result in the type that is due.

        Raises:
            TypeError: shape or dtype differ.
        """
        due = aval.stacked(size) if stacked else aval
        given = aval_of(x)
        if given.shape != due.shape or not fits(given, due):
            raise TypeError(
                f"output {i} of {self.purpose} is {describe_type(given)}, but "
                f"{describe_type(due)} is due, as out_batched is {stacked}"
            )
        return ENGINE.core.convert(x, due.dtype, due.weak_type)


def traced_batch(rule: UserVmap, size: int, in_batched: Mask) -> tuple[Jaxpr, Mask]:
    """The rule traced on its own.

    Raises:
        LeakedTracer: it closes over a tracer.
        NotImplementedError: it closes over a reference.
    """
    masks: list[Mask] = []

    def flat(*leaves: object) -> list[Array]:
        outs, mask = rule.call(size, in_batched, leaves)
        masks.append(mask)
        return outs

    flat.__name__ = rule.purpose
    avals = [
        a.stacked(size) if flag else a
        for a, flag in zip(rule.avals, in_batched, strict=True)
    ]
    _, tree = pytrees.flatten(((0,) * len(avals), {}))
    with entered(rule.context):
        traced = trace(flat, tree, avals, rule.purpose)
    if traced.captured:
        raise leaked(traced.captured[0])
    if any([is_reference(use.literal) for use in traced.jaxpr.used_consts]):
        raise NotImplementedError(
            f"{rule.purpose} closes over a mutable reference; pass it to {rule.name} "
            "as an argument"
        )
    return traced.jaxpr, masks[0]


class custom_vmap(Home):
    """A function whose batched form is given by a rule.

    The rule takes the size, for each argument the tree of what is stacked in its
    leaves, and the arguments with stacks in dimension 0; it returns the output and the
    tree of what is stacked in it.

    >>> import verax, verax.numpy as vnp
    >>> f = verax.custom_batching.custom_vmap(lambda x: x + 1)
    >>> rule = f.def_vmap(lambda axis_size, in_batched, x: (x + axis_size, True))
    >>> verax.vmap(f)(vnp.zeros(3)).tolist()
    [3.0, 3.0, 3.0]
    """

    __module__ = "verax.custom_batching"
    parts = ("fun", "rule")

    def __init__(self, fun: Callable[..., object]) -> None:
        look_like(self, fun)  # copies what the function within has
        super().__init__(fun)
        self.rule: Callable[..., Any] | None = None

    def __getattr__(self, name: str) -> Any:
        """Gives rules to the function within: `custom_vmap(custom_jvp(f))`."""
        return inner_rule(self, name)

    def def_vmap(self, vmap_rule: Callable[..., object]) -> Callable[..., Any]:
        """Give the rule."""
        self.rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The value of the function; under a trace, with its rule."""
        if self.rule is None:
            name = function_name(self.fun)
            raise AttributeError(
                f"No batching rule defined for custom_vmap function {name}: give it "
                f"one with {name}.def_vmap"
            )
        if not is_tracing():
            return call_eagerly(self.fun, args, kwargs, self.sorted)
        given = self.sorted(args, kwargs)
        body, avals = trace_body(self.fun, given)
        own = snapshots_at(self, (self.rule,))
        user = rules_of_call(UserVmap, self, given, body, avals, *own)
        params = CustomVmapParams(user.name, len(body.captured), body.jaxpr, user)
        outs = custom_vmap_call_p.bind(params, *body.captured, *given.leaves)
        return result_tree(body.out_tree, outs)

    def sorted(self, args: Sequence[object], kwargs: dict[str, Any]) -> SortedArguments:
        """The arguments of a call by their positions."""
        what = "custom_vmap-decorated"
        return sort_arguments(self.fun, self.signature, (), args, kwargs, what)
