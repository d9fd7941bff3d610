"""From functions to programs and back, for your own transformations.

One idea: a transformation works on jaxprs; these functions trace what a user calls, and
run or write what the transformation made, inside a trace or outside::

    program = opened(f, args)
    return program.rebuild(run(my_rewrite(program.jaxpr), program.operands))
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from attrs import frozen

from verax.api.tracing.apply import apply
from verax.api.tracing.argument_names import describe_arguments
from verax.api.tracing.trace import leaf_avals, trace
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.typed import check_callable
from verax.transforms.tables.propagation import Propagation, flat, grouped

NO_KWARGS: Mapping[str, Any] = MappingProxyType({})


@frozen(eq=False, repr=False)
class Opened(ReprMixin):
    """A traced function.

    `jaxpr` takes `operands`: first, `captured` many tracers of traces around this one
    that the function closes over, then the leaves of the arguments.
    """

    __module__ = "verax.extend"

    jaxpr: Jaxpr
    operands: tuple[Any, ...]
    captured: int
    out_tree: PyTreeDef

    def rebuild(self, leaves: Sequence[object]) -> Any:
        """The result of the function from the outputs of the program."""
        return self.out_tree.unflatten(leaves)


def opened(
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] = NO_KWARGS,
    *,
    purpose: str = "a transformation",
) -> Opened:
    """The program of `fun(*args, **kwargs)` and what to apply it to.

    Python may branch on values of the arguments, if they have any.

    Args:
        purpose: the name of the transformation, for messages.

    Raises:
        TypeError: `fun` is not a function, or an argument or a result is not an array.
    """
    check_callable(purpose, fun)
    leaves, tree = pytrees.flatten((tuple(args), dict(kwargs)))
    describe = describe_arguments(fun, tree)
    avals = leaf_avals(leaves, describe)
    traced = trace(fun, tree, avals, purpose, describe=describe, values=leaves)
    operands = (*traced.captured, *leaves)
    return Opened(traced.jaxpr, operands, len(traced.captured), traced.out_tree)


def run(jaxpr: Jaxpr, operands: Sequence[Any]) -> Sequence[Array]:
    """The outputs of a program: computed, or written into the current trace."""
    return apply(jaxpr, operands)


def propagate(
    table: Propagation, fun: Callable[..., Any], args: Sequence[Any], *more: Any
) -> tuple[Any, ...]:
    """A function under a transformation that gives parts to its values.

    Args:
        args: the arguments of `fun`, which are part 0 of their leaves.
        more: the other parts: for each, a tree like `args`, in which None stands for
            the leaves that lack it. A leaf that lacks all of them is left untouched.

    Returns:
        the parts of the result, each in its structure, None where a leaf has none.

    Raises:
        TypeError: a tree has another structure than the arguments.
        MissingRule: a primitive on touched values has no rule in the table.

    >>> import verax
    >>> from verax.lax import cos, sin, sin_p
    >>> def sine(walk, params, operands):
    ...     [(x, dx)] = operands
    ...     return [(sin(x), cos(x) * dx)]
    >>> duals = Propagation("duals", {sin_p: sine})
    >>> y, dy = propagate(duals, verax.numpy.sin, (0.0,), (1.0,))
    >>> float(y), float(dy)
    (0.0, 1.0)
    """
    program = opened(fun, args, purpose=table.name)
    leaves = program.operands[program.captured :]
    rest = [leaves_like(tuple(args), part, table.name) for part in more]
    values: list[tuple[Any, ...]] = [(x,) for x in program.operands[: program.captured]]
    for parts in zip(leaves, *rest, strict=True):
        values.append(parts if any(x is not None for x in parts[1:]) else parts[:1])
    types = [
        tuple([None if x is None else aval_of(x) for x in parts]) for parts in values
    ]
    jaxpr, out_types = table.program(program.jaxpr, types)
    outs = grouped(out_types, run(jaxpr, flat(values)))
    width = max([1, *map(len, outs)])
    full = [(*parts, *(None,) * (width - len(parts))) for parts in outs]
    return tuple([program.rebuild([x[i] for x in full]) for i in range(width)])


def leaves_like(args: tuple[Any, ...], part: Any, name: str) -> list[Any]:
    """The leaves of a tree like the arguments, None where it has None.

    Raises:
        TypeError: it has another structure.
    """
    tree = pytrees.flatten(args)[1]
    try:
        return list(tree.flatten_up_to(part))
    except ValueError as error:
        raise TypeError(
            f"{name}: every part must have the structure of the arguments, a tuple "
            f"{tree}: {error}"
        ) from error
