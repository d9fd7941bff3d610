"""From functions to programs and back, for your own transformations.

One idea: a transformation works on jaxprs; these functions trace what a user calls, and
run or write what the transformation made, inside a trace or outside::

    program = opened(f, args)
    return program.rebuild(run(my_rewrite(program.jaxpr), program.operands))
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, cast

from attrs import frozen

from verax.api.tracing.apply import apply, observed
from verax.api.tracing.trace import leaf_avals, trace
from verax.api.tracing.wrapping import describe_arguments, wraps
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.jaxpr import ClosedJaxpr, Jaxpr
from verax.ir.records import ReprMixin
from verax.rules.rows.bodies import flat, grouped
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import check_callable, shown
from verax.transforms.public import AnyJaxpr, check, hoist, opened as opened_program
from verax.transforms.tables import Propagation

NO_KWARGS: Mapping[str, Any] = MappingProxyType({})


@frozen(eq=False, repr=False)
class Opened(ReprMixin):
    """A traced function.

    `jaxpr` takes `operands`: first, `captured` many tracers of traces around this one
    that the function closes over, then the leaves of the arguments.
    """

    __module__ = "verax.extend"

    jaxpr: Jaxpr
    operands: tuple[object, ...]
    captured: int
    out_tree: PyTreeDef

    def rebuild(self, leaves: Sequence[object]) -> Any:
        """The result of the function from the outputs of the program."""
        return self.out_tree.unflatten(leaves)


def opened(
    fun: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object] = NO_KWARGS,
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


def run(jaxpr: Jaxpr, operands: Sequence[object]) -> Sequence[Array]:
    """The outputs of a program: computed, or written into the current trace."""
    return apply(jaxpr, operands)


def with_passes[**P, R](
    fun: Callable[P, R], *passes: Callable[[ClosedJaxpr], AnyJaxpr]
) -> Callable[P, R]:
    """`fun`, whose program goes through passes of your own before it is run.

    Under `jit` they run once for each trace, before the passes of the library, which
    are `verax.transforms.COMPILE`; the explorer shows each as a stage. What comes out
    is checked: it must be well formed and have the types of the program.

    Args:
        passes: functions from a program to one that computes the same, in their order,
            such as `verax.transforms.fold`. `verify.check_transformation` checks one.

    Raises:
        TypeError: a pass is not a function, or does not return a program.
        ValueError: what a pass returns has other types.
        IllTyped: what a pass returns is not well formed.

    >>> import verax
    >>> from verax.transforms import cse
    >>> def f(x):
    ...     return verax.numpy.sin(x) * verax.numpy.sin(x)
    >>> print(verax.make_jaxpr(with_passes(f, cse))(1.0))
    { lambda ; a:~f32[]. let b:~f32[] = sin a; c:~f32[] = mul b b in (c,) }
    """
    check_callable("with_passes", fun)
    for one in passes:
        check_callable("with_passes", one)

    @wraps(fun)
    def passed(*args: P.args, **kwargs: P.kwargs) -> R:
        program = opened(fun, args, kwargs, purpose="with_passes")
        jaxpr = program.jaxpr
        for one in passes:
            make = partial(seen_pass, one)
            jaxpr, _ = observed(pass_name(one), jaxpr, make)
        return cast(R, program.rebuild(run(jaxpr, program.operands)))

    return passed


def pass_name(one: Callable[..., object]) -> str:
    """The name of a pass, for messages and as a stage of the explorer."""
    return str(getattr(one, "__name__", repr(one)))


def seen_pass(
    one: Callable[[ClosedJaxpr], AnyJaxpr], jaxpr: Jaxpr
) -> tuple[Jaxpr, None]:
    """`after_pass`, for `observed`."""
    return after_pass(one, jaxpr), None


def after_pass(one: Callable[[ClosedJaxpr], AnyJaxpr], jaxpr: Jaxpr) -> Jaxpr:
    """The program after a pass, if it may stand in its place."""
    name = pass_name(one)
    made = one(hoist(jaxpr))
    if not isinstance(made, Jaxpr | ClosedJaxpr):
        raise TypeError(
            f"the pass {name} must return a program, as it was given one, not "
            f"{shown(made)}"
        )
    check(made)
    out = opened_program(made)
    for what, due, own in (
        ("takes", jaxpr.in_avals, out.in_avals),
        ("returns", jaxpr.out_avals, out.out_avals),
    ):
        if due != own:
            raise ValueError(
                f"the program that the pass {name} made {what} "
                f"({', '.join(map(str, own))}), but the program before it {what} "
                f"({', '.join(map(str, due))}): a pass keeps the types"
            )
    return out


def propagate(
    table: Propagation,
    fun: Callable[..., object],
    args: Sequence[object],
    *more: object,
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
    values: list[tuple[object, ...]] = [
        (x,) for x in program.operands[: program.captured]
    ]
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


def leaves_like(args: tuple[object, ...], part: object, name: str) -> list[object]:
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
