"""Floor 2: how accurate a function of one number is asked to be.

One idea: each function has one implementation, so a mode is accepted and changes
nothing, as XLA does where it has one; a tolerance that nobody checks is refused::

    exp(x, accuracy=AccuracyMode.HIGHEST)
"""

from enum import Enum

from attrs import frozen


class AccuracyMode(Enum):
    """The implementation of a function: the highest accuracy is what all have."""

    __module__ = "verax.lax"

    HIGHEST = 1
    DEFAULT = 2


@frozen
class Tolerance:
    """An error that is allowed: absolute, relative, or in units of the last place."""

    __module__ = "verax.lax"

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0


type Accuracy = AccuracyMode | Tolerance | None


def check_accuracy(name: str, accuracy: Accuracy) -> None:
    """Raise unless the accuracy that is asked for is a mode.

    Raises:
        NotImplementedError: it is a tolerance.
        TypeError: it is something else.
    """
    if isinstance(accuracy, Tolerance):
        raise NotImplementedError(
            f"{name} has one implementation, whose error nobody has bounded: pass "
            "accuracy=None or an AccuracyMode"
        )
    if accuracy is not None and not isinstance(accuracy, AccuracyMode):
        raise TypeError(f"{name}: accuracy is an AccuracyMode, not {accuracy!r}")
