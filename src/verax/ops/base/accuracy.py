"""Floor 2: how accurate a function of one number should be.

One idea: each function has one implementation, so a mode is accepted and changes
nothing, as XLA does where it has one; a tolerance that is not checked is refused::

    exp(x, accuracy=AccuracyMode.HIGHEST)
"""

from enum import Enum

from attrs import frozen

from verax.ir.jaxpr import NO_PARAMS, NoParams
from verax.ir.records import ReprMixin
from verax.rules.rows.row import Row
from verax.rules.values.array import Array
from verax.rules.values.state import STATE


class AccuracyMode(Enum):
    """The implementation of a function; all have the highest accuracy."""

    __module__ = "verax.lax"

    HIGHEST = 1
    DEFAULT = 2


@frozen(repr=False)
class Tolerance(ReprMixin):
    """An error that is allowed: absolute, relative, or in units of the last place."""

    __module__ = "verax.lax"

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0


type Accuracy = AccuracyMode | Tolerance | None


def rounded(row: Row[NoParams], x: object, accuracy: Accuracy) -> Array:
    """The function `row` of x, which is as accurate as every mode asks.

    Raises:
        NotImplementedError, TypeError: see `check_accuracy`.
    """
    if accuracy is not None:
        check_accuracy(row.name, accuracy)
    return STATE.interpreter.bind(row, NO_PARAMS, (x,))[0]


def check_accuracy(name: str, accuracy: Accuracy) -> None:
    """Raise unless the requested accuracy is a mode.

    Raises:
        NotImplementedError: it is a tolerance.
        TypeError: it is something else.
    """
    if isinstance(accuracy, Tolerance):
        raise NotImplementedError(
            f"{name}: accuracy as a Tolerance is not available, since the only "
            "implementation has no proven error bound; pass None or an AccuracyMode"
        )
    if accuracy is not None and not isinstance(accuracy, AccuracyMode):
        raise TypeError(
            f"{name}: accuracy must be None or an AccuracyMode, not {accuracy!r}"
        )
