"""Floor 5: what rules log while cotangents are pulled back.

One idea: a rule for reverse mode returns a dictionary beside its cotangents, and
whoever pulls may ask for these dictionaries, merged into one::

    def bwd(residuals, ct):
        return (ct * residuals,), {"norm": vnp.abs(ct)}

    f.defvjp_with_logs(fwd, bwd)
    cotangents, logs = vjp(f, x)[1].with_logs(ct)   # logs["norm"]
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, Protocol, Self

from verax.api.custom.arguments import leaf_type
from verax.api.tracing.apply import apply
from verax.api.tracing.trace import trace
from verax.api.trees.pytrees import register_pytree_node_class
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.records import ReprMixin
from verax.ops.calls.backward_log import LogParams, backward_log_p
from verax.rules.values.array import Array
from verax.rules.values.conversions import NotAnArray, described
from verax.transforms.backward_logs import Entry, Leaves, collect

type Logs = dict[Any, Any]


@register_pytree_node_class
class CondSum(ReprMixin):
    """What the branches of a choice have logged under one key.

    Attributes:
        index: the number of the branch that was taken.
        branches: for each branch what it logs, zeros if it was not taken; None for one
            that does not log under this key.

    >>> import verax, verax.numpy as vnp
    >>> @verax.custom_gradient(with_logs=True)
    ... def double(x):
    ...     return 2 * x, lambda ct: (2 * ct, {"ct": ct})
    >>> f = lambda x: verax.lax.cond(x > 0, double, lambda x: x, x)
    >>> _, logs = verax.vjp(f, 3.0)[1].with_logs(5.0)
    >>> int(logs["ct"].index), logs["ct"].branches[1]
    (1, Array(5., dtype=float32))
    """

    __module__ = "verax.ad"

    __match_args__ = ("index", "branches")

    def __init__(self, index: Array | int, branches: Sequence[Any]) -> None:
        self.index = index
        self.branches = tuple(branches)

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """The index and the slots."""
        return (self.index, self.branches), None

    @classmethod
    def tree_unflatten(cls, metadata: None, children: tuple[Any, Any]) -> Self:
        """It again."""
        out = object.__new__(cls)
        out.index, out.branches = children
        return out


def log(title: str, logs: object) -> None:
    """Log what a rule has returned beside its cotangents.

    Raises:
        TypeError: it is neither None nor a dictionary of pytrees of arrays.
    """
    if logs is None:
        return
    if not isinstance(logs, Mapping):
        raise TypeError(
            f"{title} must return None or a dict as its backward-pass log, from names "
            f"to what is logged, not a {type(logs).__name__}"
        )
    for key, value in logs.items():
        leaves, tree = pytrees.flatten(value)
        for leaf in leaves:
            check_logged(title, key, leaf)
        backward_log_p.bind(LogParams(key, tree), *leaves)


def check_logged(title: str, key: object, leaf: object) -> None:
    """Raise TypeError for what is not an array or a number."""
    try:
        leaf_type(leaf)
    except NotAnArray:
        raise TypeError(
            f"{title} logs {described(leaf)} under {key!r}; logs are pytrees of arrays"
        ) from None


def logging(name: str, bwd: Callable[..., object]) -> Callable[..., object]:
    """A backward rule that logs, from one that returns (cotangents, logs)."""
    title = f"Custom VJP bwd rule {getattr(bwd, '__name__', bwd)} for function {name}"

    @wraps(bwd)
    def rule(*args: object) -> object:
        pair = bwd(*args)
        if not isinstance(pair, tuple | list) or len(pair) != len(("cts", "logs")):
            raise TypeError(
                f"{title} must produce a pair (cotangents, logs), since it was given "
                f"with logs, not a {type(pair).__name__}"
            )
        cotangents, logs = pair
        log(title, logs)
        return cotangents

    return rule


class Point(Protocol):
    """The function of a pullback, at the point where it was traced."""

    @property
    def name(self) -> str: ...
    def checked(self, cotangents: tuple[object, ...]) -> list[object | None]: ...


class Pulls(Protocol):
    """A pullback; it takes the checked leaves of a cotangent."""

    @property
    def at(self) -> Point: ...
    def pull(self, cts: Sequence[object | None]) -> tuple[Any, ...]: ...


class TakesRefs(Pulls, Protocol):
    """A pullback whose results may go into references."""

    def with_refs(self, *entries: object) -> Pulls: ...


@register_pytree_node_class
class WithLogs[P: Pulls]:
    """A pullback that returns what its rules have logged, too.

    A key that several calls log has what the first of them, in the order of the
    program, logs. What a loop logs is stacked as its inputs are, what a batch logs has
    the batch in its first dimension, and a choice logs a `verax.ad.CondSum`.
    """

    __slots__ = ("pullback",)

    def __init__(self, pullback: P) -> None:
        self.pullback = pullback

    def tree_flatten(self) -> tuple[tuple[P], None]:
        """The pullback."""
        return (self.pullback,), None

    @classmethod
    def tree_unflatten(cls, metadata: None, children: Sequence[P]) -> Self:
        """It again."""
        return cls(*children)

    def __repr__(self) -> str:
        return f"{self.pullback!r}.with_logs"

    def __call__(self, *cotangents: object) -> tuple[tuple[Any, ...], Logs]:
        """The cotangents of the arguments, and the logs by key."""
        pull = self.pullback
        cts = pull.at.checked(cotangents)
        live = [ct for ct in cts if ct is not None]

        def pulled(*leaves: object) -> tuple[Any, ...]:
            rest = iter(leaves)
            return pull.pull([None if ct is None else next(rest) for ct in cts])

        pulled.__name__ = f"the pullback of {pull.at.name}"
        _, tree = pytrees.flatten(((0,) * len(live), {}))
        avals = [leaf_type(ct) for ct in live]
        traced = trace(pulled, tree, avals, pulled.__name__).opened
        collected = collect(traced.jaxpr)
        outs = apply(collected.jaxpr, [*traced.captured, *live])
        count = len(outs) - collected.count
        values = iter(outs[count:])
        logs = {key: rebuilt(entry, values) for key, entry in collected.entries}
        return traced.out_tree.unflatten(outs[:count]), logs

    def with_refs(self: "WithLogs[TakesRefs]", *entries: object) -> "WithLogs[Pulls]":
        """The pullback whose results go where the entries say, with logs.

        See `Pullback.with_refs`.
        """
        return WithLogs(self.pullback.with_refs(*entries))


class Logging:
    """A pullback that can be asked for what its rules log."""

    __slots__ = ()

    @property
    def with_logs(self: TakesRefs) -> WithLogs[TakesRefs]:
        """The pullback that returns (cotangents, logs): what its rules have logged.

        >>> import verax
        >>> @verax.custom_gradient(with_logs=True)
        ... def square(x):
        ...     return x * x, lambda ct: (2 * x * ct, {"x": x})
        >>> _, pull = verax.vjp(lambda x: 5 * square(x), 3.0)
        >>> float(pull.with_logs(1.0)[1]["x"])
        3.0
        """
        return WithLogs(self)


def rebuilt(entry: Entry, values: Iterator[Any]) -> Any:
    """What was logged under one key."""
    if isinstance(entry, Leaves):
        assert isinstance(entry.tree, PyTreeDef), "a log has the tree of its leaves"
        return entry.tree.unflatten([next(values) for _ in range(entry.count)])
    index = next(values)
    return CondSum(
        index,
        [None if one is None else rebuilt(one, values) for one in entry.branches],
    )
