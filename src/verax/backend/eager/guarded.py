"""Floor 4: operations and calls that first ask whether they may run.

Guards are free when off: they are an interpreter around the eager one, and a function
around the call of a program::

    guarded(eager).bind(sin_p, NO_PARAMS, (x,))      # raises while no_execution is on
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from attrs import frozen

from verax.backend.runtime.transfers import check_transfer
from verax.ir.jaxpr import Params, Primitive
from verax.ir.records import ReprMixin
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.memo import pure
from verax.rules.values.state import STATE, Interpreter


def allow_run(name: str) -> None:
    """Raise unless `name` may run.

    Raises:
        RuntimeError: `no_execution` is on.
    """
    if STATE.no_execution:
        raise RuntimeError(
            f"{name} would run, but the option no_execution is on; trace, lower and "
            "compile what must not run"
        )


def allow_arguments(name: str, args: Sequence[object]) -> None:
    """Ask for the transfer of arguments of a program that are not arrays of ours.

    Raises:
        JaxRuntimeError: it is not allowed.
    """
    for i, x in enumerate(args):
        if not isinstance(x, Array):
            check_transfer("host_to_device", f"{aval_of(x)}, argument {i} of {name}")


@frozen(eq=False, repr=False)
class GuardedInterpreter(ReprMixin):
    """An eager interpreter whose operations ask first.

    Those that NumPy computes transfer nothing.
    """

    immediate: ClassVar[bool] = True
    inner: Interpreter

    def bind(
        self, primitive: Primitive, params: Params, args: Sequence[object]
    ) -> tuple[Array, ...]:
        """The results, as arrays.

        Raises:
            RuntimeError: the operation may not run.
        """
        allow_run(primitive.name)
        return self.inner.bind(primitive, params, args)


@pure(64)
def guarded(inner: Interpreter) -> Interpreter:
    """An eager interpreter with these guards."""
    return GuardedInterpreter(inner)


def is_guarded() -> bool:
    """Whether this thread asks before it runs anything."""
    return type(STATE.interpreter) is GuardedInterpreter


def guarded_call(
    name: str, run: Callable[[Sequence[object]], object]
) -> Callable[[Sequence[object]], object]:
    """A call of a program that asks first, with its arguments."""

    def call(leaves: Sequence[object]) -> Any:
        allow_run(name)
        allow_arguments(name, leaves)
        return run(leaves)

    return call
