"""Floor 5: rematerialisation: values computed again instead of being kept.

One idea: `checkpoint(f)` is `f` as one marked equation, whose derivative keeps what the
policy allows::

    grad(checkpoint(f, policy=dots_saveable))
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from attrs import frozen

from verax.api.arguments.call_keys import resolve_statics
from verax.api.tracing.apply import as_array, is_tracing
from verax.api.tracing.trace import leaf_avals, trace
from verax.api.tracing.wrapping import describe_arguments, function_name, wraps
from verax.api.trees.pytrees import prefix_leaves
from verax.backend import pytrees
from verax.backend.pytrees import result_tree
from verax.ir.jaxpr import Primitive
from verax.ir.records import ReprMixin
from verax.ops.calls.checkpoint import (
    BARRIER,
    CheckpointParams,
    Offloadable,
    Policy,
    Verdict,
    checkpoint_p,
    named,
    optimization_barrier_p,
)
from verax.rules.values.conversions import check_callable, shown
from verax.rules.values.reference import Ref


def checkpoint[**P, R](
    fun: Callable[P, R],
    *,
    prevent_cse: bool | Sequence[object] = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
) -> Callable[P, R]:
    """`fun`, whose derivative computes intermediate values again, to save memory.

    `policy(primitive, *types, **params)` says which results are kept nevertheless, also
    those inside of `scan` and `cond`, as rows for the steps; see
    `verax.checkpoint_policies`. `prevent_cse=False` lets the compiler merge the second
    computation with the first: use it inside `scan`, where it cannot merge them. A
    prefix tree of the arguments says it for each; one True keeps the computations
    apart.

    Raises:
        TypeError: `fun` is not a function, or an argument is not an array and not
            static.
        ValueError: `prevent_cse` is not a prefix of the arguments.

    >>> import verax
    >>> f = verax.checkpoint(lambda x: verax.numpy.sin(verax.numpy.sin(x)))
    >>> float(verax.grad(f)(0.0))
    1.0
    """
    check_callable("checkpoint", fun)
    if policy is not None and not callable(policy):
        raise TypeError(
            f"checkpoint takes a policy of verax.checkpoint_policies, or a function "
            f"(primitive, *types, **params) -> bool, not {shown(policy)}"
        )
    if not isinstance(prevent_cse, bool | list | tuple):
        raise TypeError(
            "checkpoint: prevent_cse must be a bool, or a tuple with a bool, or a tree "
            f"of them, for each argument, not {shown(prevent_cse)}"
        )
    numbers, names = static_argnums or None, static_argnames or None
    statics = resolve_statics(fun, numbers, names, None, None)

    @wraps(fun)
    def rematerialised(*args: object, **kwargs: object) -> Any:
        call_args = statics.taken(args, kwargs)
        leaves, tree = pytrees.flatten(call_args.dynamic)
        describe = describe_arguments(fun, tree, call_args.positions)
        avals = leaf_avals(leaves, describe)
        if not is_tracing():
            inner = call_args.with_statics(fun)
            ins, named = result_tree(tree, [stable(leaf) for leaf in leaves])
            return inner(*ins, **named)
        opened = trace(
            call_args.with_statics(fun),
            tree,
            avals,
            "checkpoint",
            describe=describe,
            values=leaves,
        ).opened
        apart = kept_apart(prevent_cse, call_args.dynamic)
        name = function_name(fun)
        params = CheckpointParams(name, False, apart, policy, opened.jaxpr)
        outs = checkpoint_p.bind(params, *opened.captured, *leaves)
        return result_tree(opened.out_tree, outs)

    return rematerialised


def kept_apart(prevent_cse: bool | Sequence[object], arguments: Any) -> bool:
    """Whether the compiler must not merge the computations: for one argument at least.

    Raises:
        ValueError: the tree is not a prefix of the arguments.
    """
    if isinstance(prevent_cse, bool):
        return prevent_cse
    args, kwargs = arguments
    given = (tuple(args), kwargs) if kwargs else tuple(args)
    return any(prefix_leaves("prevent_cse", tuple(prevent_cse), given, None))


def stable(leaf: object) -> Any:
    """An argument as an array that nobody changes; a reference as it is."""
    return leaf if isinstance(leaf, Ref) else as_array(leaf)


def checkpoint_name(x: object, name: str) -> Any:
    """`x`, a pytree of arrays, known by `name` to policies that select by name."""
    if not isinstance(name, str):
        raise TypeError(f"checkpoint_name takes a string as name, not {shown(name)}")
    leaves, tree = pytrees.flatten(x)
    return tree.unflatten([named(leaf, name) for leaf in leaves])


def optimization_barrier[T](operand: T) -> T:
    """`operand`, a pytree of arrays; the compiler moves nothing across.

    Args:
        operand: a pytree of arrays and scalars; references among them stay as they
            are.

    Returns:
        A pytree of the same structure and values, of which none can be used before all
        of `operand` has been computed.

    >>> import verax
    >>> float(verax.lax.optimization_barrier(1.0))
    1.0
    """
    leaves, tree = pytrees.flatten(operand)
    refs = [isinstance(leaf, Ref) for leaf in leaves]
    arrays = [x for x, flag in zip(leaves, refs, strict=True) if not flag]
    outs = iter(optimization_barrier_p.bind(BARRIER, *arrays))
    out: T = tree.unflatten(
        [x if flag else next(outs) for x, flag in zip(leaves, refs, strict=True)]
    )
    return out


def everything_saveable(primitive: Primitive, *_: object, **params: object) -> bool:
    """Every value may be kept: as without checkpoint."""
    return True


def nothing_saveable(primitive: Primitive, *_: object, **params: object) -> bool:
    """Only the operands are kept: as without a policy."""
    return False


def dots_saveable(primitive: Primitive, *_: object, **params: object) -> bool:
    """The results of matrix products and convolutions are kept."""
    return primitive.name in ("dot_general", "conv_general_dilated")


def dots_with_no_batch_dims_saveable(
    primitive: Primitive, *_: Any, **params: Any
) -> bool:
    """The results of matrix products without batch dimensions are kept."""
    if primitive.name != "dot_general":
        return False
    _, batch = params["dimension_numbers"]
    return not any(batch)


@frozen(repr=False)
class ByName(ReprMixin):
    """Keeps values by their names: those among `names`, or all the others."""

    names: frozenset[str]
    among: bool
    unnamed: bool = False

    def __call__(self, primitive: Primitive, *_: object, **params: object) -> bool:
        """Whether the results of the primitive may be kept."""
        if primitive.name != "name":
            return self.unnamed
        return (params["name"] in self.names) == self.among


@frozen(repr=False)
class Either(ReprMixin):
    """Keeps what one of two policies keeps."""

    first: Policy
    second: Policy

    def __call__(
        self, primitive: Primitive, *avals: object, **params: object
    ) -> Verdict:
        """Whether the results of the primitive may be kept, and where."""
        return self.first(primitive, *avals, **params) or self.second(
            primitive, *avals, **params
        )


def save_only_these_names(*names: str) -> ByName:
    """A policy that keeps the values that `checkpoint_name` gave one of these names."""
    return ByName(frozenset(names), True)


def save_any_names_but_these(*names: str) -> ByName:
    """A policy that keeps all named values except those with these names."""
    return ByName(frozenset(names), False)


def save_anything_except_these_names(*names: str) -> ByName:
    """A policy that keeps every value except those with these names."""
    return ByName(frozenset(names), False, True)


@frozen(repr=False)
class OffloadedDots(ReprMixin):
    """Keeps matrix products without batch dimensions, as `Offloadable`."""

    where: Offloadable

    def __call__(
        self, primitive: Primitive, *avals: object, **params: object
    ) -> Verdict:
        """The places where the results may be kept; False if they may not be."""
        kept = dots_with_no_batch_dims_saveable(primitive, *avals, **params)
        return self.where if kept else False


@frozen(repr=False)
class OffloadedNames(ReprMixin):
    """Keeps values by their names, some of them as `Offloadable`."""

    saved: frozenset[str]
    offloaded: frozenset[str]
    where: Offloadable

    def __call__(self, primitive: Primitive, *_: object, **params: object) -> Verdict:
        """The places where the results may be kept; False if they may not be."""
        if primitive.name != "name":
            return False
        name = params["name"]
        return self.where if name in self.offloaded else name in self.saved


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> OffloadedDots:
    """A policy that keeps matrix products without batch dimensions.

    They wait in memory of the kind `offload_dst`, such as "pinned_host", and come back
    to `offload_src`, where the device has both.
    """
    return OffloadedDots(Offloadable(offload_src, offload_dst))


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: str,
    offload_dst: str,
) -> OffloadedNames:
    """A policy that keeps the values that `checkpoint_name` gave one of these names.

    Those that can be offloaded wait in memory of the kind `offload_dst`, such as
    "pinned_host", and come back to `offload_src`, where the device has both.

    Raises:
        ValueError: a name is in both lists.
    """
    saved = frozenset(names_which_can_be_saved)
    offloaded = frozenset(names_which_can_be_offloaded)
    if both := saved & offloaded:
        raise ValueError(
            "names_which_can_be_saved and names_which_can_be_offloaded must have no "
            f"name in common, but both hold {sorted(both)}"
        )
    where = Offloadable(offload_src, offload_dst)
    return OffloadedNames(saved, offloaded, where)


def save_from_both_policies(first: Policy, second: Policy) -> Either:
    """A policy that keeps what one of two policies keeps."""
    return Either(first, second)
