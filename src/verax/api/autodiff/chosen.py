"""Floor 5: a function of some of its arguments, the others being fixed.

What `argnums` chooses is differentiated; messages name it as the user's function does::

    OfChosen(f, (x, y), {}, (1,))(z)    # f(x, z)
"""

from collections.abc import Callable
from typing import Any

from attrs import frozen

from verax.api.tracing.wrapping import function_name
from verax.ir.records import ReprMixin


@frozen(eq=False, repr=False)
class OfChosen(ReprMixin):
    """`fun` as a function of the arguments at `numbers` alone."""

    fun: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    numbers: tuple[int, ...]

    @property
    def __name__(self) -> str:
        return function_name(self.fun)

    def __call__(self, *chosen: Any) -> Any:
        filled = list(self.args)
        for number, arg in zip(self.numbers, chosen, strict=True):
            filled[number] = arg
        return self.fun(*filled, **self.kwargs)
