"""Whether values may go from host to device, back, or between devices (floor 4).

A transfer is explicit if the user asked for it (`device_put`, `device_get`), else
implicit, as that of a NumPy argument of a jitted function::

    with verax.transfer_guard("disallow"):
        check_transfer("host_to_device", "an argument f32[3]")     # raises
"""

from typing import Literal

from verax.backend.runtime.log import log_warning
from verax.rules.programs.host import JaxRuntimeError
from verax.rules.values.state import STATE

type Direction = Literal["host_to_device", "device_to_device", "device_to_host"]


def check_transfer(direction: Direction, what: str, *, explicit: bool = False) -> None:
    """Log a transfer or raise, as the guard of its direction says.

    Raises:
        JaxRuntimeError: it is not allowed.
    """
    level = getattr(STATE, f"transfer_guard_{direction}")
    if level in (None, "allow") or (explicit and not level.endswith("_explicit")):
        return
    way = direction.replace("_", "-")
    if level.startswith("log"):
        log_warning("%s transfer: %s", way, what)
        return
    kind = "explicit" if explicit else "implicit"
    raise JaxRuntimeError(
        f"INVALID_ARGUMENT: Disallowed {way} transfer: {what} ({kind}); the option "
        f"transfer_guard_{direction} is {level!r}"
    )
