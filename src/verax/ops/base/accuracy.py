"""Floor 2: how accurate a function of one number should be.

One idea: an accuracy chooses among implementations, and on CPUs and GPUs XLA has one
for each function; so it is checked and then changes nothing, as in JAX there::

    exp(x, accuracy=AccuracyMode.HIGHEST)
    exp(x, accuracy=Tolerance(rtol=1e-5))
"""

from enum import Enum

from attrs import frozen

from verax.ir.jaxpr import NO_PARAMS, NoParams
from verax.ir.records import ReprMixin
from verax.rules.rows.row import Row
from verax.rules.values.array import Array
from verax.rules.values.state import STATE


class AccuracyMode(Enum):
    """Which implementation of a function to use: where there is one, both mean it."""

    __module__ = "verax.lax"

    HIGHEST = 1
    DEFAULT = 2


@frozen(repr=False)
class Tolerance(ReprMixin):
    """An error that is allowed: absolute, relative, or in units of the last place.

    It lets XLA choose a faster implementation; it does not check the result, and where
    there is only one implementation (CPUs and GPUs) it changes nothing.

    Raises:
        ValueError: none of the three is above 0, or one is below.
    """

    __module__ = "verax.lax"

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __attrs_post_init__(self) -> None:
        """Raise ValueError if no result could meet the tolerance."""
        for name in ("atol", "rtol", "ulps"):
            error = getattr(self, name)
            if not error >= 0:
                raise ValueError(f"Tolerance: {name} must be at least 0, not {error!r}")
        if self.atol == self.rtol == self.ulps == 0:
            raise ValueError("Tolerance: set atol, rtol or ulps to more than 0")


type Accuracy = AccuracyMode | Tolerance | None


def rounded(row: Row[NoParams], x: object, accuracy: Accuracy) -> Array:
    """The function `row` of x by the one implementation that there is.

    Raises:
        TypeError: see `check_accuracy`.
    """
    if accuracy is not None:
        check_accuracy(row.name, accuracy)
    return STATE.interpreter.bind(row, NO_PARAMS, (x,))[0]


def check_accuracy(name: str, accuracy: Accuracy) -> None:
    """Raise TypeError unless accuracy is None, a mode or a tolerance."""
    if accuracy is not None and not isinstance(accuracy, AccuracyMode | Tolerance):
        raise TypeError(
            f"{name}: accuracy must be None, an AccuracyMode or a Tolerance, "
            f"not {accuracy!r}"
        )
