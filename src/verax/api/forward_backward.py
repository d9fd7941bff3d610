"""Floor 5: reverse mode as two functions with the residuals between them.

One idea: a pullback is residuals and a program; the residuals are leaves of a pytree,
the program a part of its structure, so both halves can be jitted apart::

    fwd, bwd = fwd_and_bwd(f, argnums=0)
    y, residuals = fwd(x)
    (x_ct,) = bwd(residuals, y_ct)
"""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import evolve, field, frozen

from verax.api.autodiff import Primals, Pullback, vjp
from verax.api.grad import choose, with_rest
from verax.api.jit_decorator import jit
from verax.api.linear_part import LinearPart
from verax.api.statics import numbers as positions
from verax.backend.pytrees import PyTreeDef
from verax.ir.jaxpr import Jaxpr


@frozen(cache_hash=True)
class BackwardProgram:
    """A pullback without its residuals: equal programs have equal trees around."""

    at: Primals = field(eq=False, repr=False)
    tangent: Jaxpr
    nonzero: tuple[bool, ...]
    in_tree: PyTreeDef
    out_tree: PyTreeDef


def detached(pull: Pullback) -> dict[BackwardProgram, list[Any]]:
    """The residuals of a pullback, as a tree whose structure is the program."""
    # A dictionary's key is a part of its structure, not a leaf.
    at = evolve(pull.at, captured=(), leaves=())
    program = BackwardProgram(
        at, pull.linear.tangent, pull.linear.nonzero, at.in_tree, at.out_tree
    )
    return {program: list(pull.linear.residuals)}


def fwd_and_bwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The forward and the backward half of reverse mode, each jitted once.

    `fwd(*args)` gives (output, residuals), and the auxiliary output third with
    `has_aux`; `bwd(residuals, cotangent)` the tuple of cotangents of the arguments
    `argnums`.

    Raises:
        TypeError: `argnums` names no argument, or the cotangent is not like the output.

    >>> import verax
    >>> fwd, bwd = verax.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
    >>> y, residuals = fwd(3.0, 4.0)
    >>> print(*bwd(residuals, 1.0))
    4.0 3.0
    """
    numbers = positions("argnums", argnums)

    def fwd(*args: Any) -> Any:
        chosen = choose(fun, args, numbers)
        places = tuple(number % len(args) for number in numbers)
        out = vjp(with_rest(fun, args, {}, places), *chosen, has_aux=has_aux)
        if has_aux:
            value, pull, aux = out
            return value, detached(pull), aux
        value, pull = out
        return value, detached(pull)

    def bwd(residuals: Any, cotangent: Any) -> tuple[Any, ...]:
        ((program, saved),) = residuals.items()
        linear = LinearPart(program.nonzero, (program.tangent, tuple(saved)))
        return Pullback(program.at, linear)(cotangent)

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
