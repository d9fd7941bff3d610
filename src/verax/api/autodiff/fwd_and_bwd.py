"""Floor 5: reverse mode as two functions with the residuals between them.

One idea: a pullback is a pytree, its residuals the leaves and its program a part of the
structure, so both halves can be jitted apart::

    fwd, bwd = fwd_and_bwd(f, argnums=0)
    y, residuals = fwd(x)
    (x_ct,) = bwd(residuals, y_ct)
"""

from collections.abc import Callable, Sequence
from typing import Any

from verax.api.arguments.call_keys import numbers as positions
from verax.api.autodiff.chosen import OfChosen
from verax.api.autodiff.grad import choose
from verax.api.autodiff.jvp_vjp import Pullback, vjp
from verax.api.jit import jit


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
        return vjp(OfChosen(fun, args, {}, places), *chosen, has_aux=has_aux)

    def bwd(residuals: Pullback, cotangent: Any) -> tuple[Any, ...]:
        return residuals(cotangent)

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
