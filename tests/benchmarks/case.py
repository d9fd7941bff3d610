"""A benchmark case: a name, how to build its work, and its goals.

The idea: the driver knows only names and goals; a worker builds the work for its own
library. The part of a name before the slash is its group, which one worker runs.

    Case("trace/mlp", build=lambda ns, scale: Looped(...), goal=Goal(0.3, 0.2))
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from .measure import Work
from .namespace import Namespace, Scale


class Goal(NamedTuple):
    """The first step and the peak that a figure should come down to."""

    step: float | None
    peak: float | None


NO_GOAL = Goal(None, None)


@dataclass(frozen=True)
class Case:
    """One row of the table.

    `clock` is "cpu" or "wall"; `unit` "s" for times. The goals bound verax / jax, or
    verax's own figure where `absolute`. A `heavy` case takes minutes: it is measured in
    one round, and not in quick mode.
    """

    name: str
    build: Callable[[Namespace, Scale], Work]
    goal: Goal = NO_GOAL
    unit: str = "s"
    clock: str = "cpu"
    absolute: bool = False
    heavy: bool = False

    @property
    def group(self) -> str:
        """The part of the name before the slash."""
        return self.name.partition("/")[0]
