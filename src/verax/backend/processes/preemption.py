"""The step at which all processes save, since one of them will be ended (floor 4).

One idea: jaxlib's manager takes SIGTERM as the announcement, and agrees with those of
the other processes on a step that none has passed yet::

    reached_sync_point(step)     # True in all processes at the same step
"""

from typing import Final

from jaxlib import _jax

from verax.backend.processes.exchange import connection
from verax.backend.runtime.cluster import keep


class Managers:
    """The one manager of this process, made when it is first asked."""

    __slots__ = ("manager",)

    def __init__(self) -> None:
        """SIGTERM ends the process still."""
        self.manager: _jax.PreemptionSyncManager | None = None


MANAGERS: Final = Managers()


def reached_sync_point(step: int) -> bool:
    """Whether all processes agreed to save at this step.

    Raises:
        RuntimeError: this process has not joined others.
    """
    client = connection().client
    if MANAGERS.manager is None:
        manager = _jax.create_preemption_sync_manager()
        manager.initialize(client)
        MANAGERS.manager = keep(manager)
    return MANAGERS.manager.reached_sync_point(step)
