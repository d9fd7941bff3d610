"""Floor 5: the platforms that a program is lowered for.

One idea: the text of a module is the same for all of them but for the routines that it
calls, so a program is for a platform that has its routines::

    checked_platforms(("cpu", "gpu"))     # ('cpu', 'cuda')
"""

from collections.abc import Sequence

from verax.backend.lowering.stablehlo_io import custom_targets
from verax.backend.runtime.client import ALIASES, STARTERS, default_backend

ROUTINES = "lapack_"
CALLBACKS = "xla_ffi_python_cpu_callback"


def checked_platforms(platforms: Sequence[str] | None) -> tuple[str, ...]:
    """The platforms under their own names; the present one for None.

    Raises:
        ValueError: there is none of that name, or no sequence of names.
    """
    if platforms is None:
        return (default_backend(),)
    if isinstance(platforms, str) or not platforms:
        raise ValueError(f"platforms takes a sequence of names, not {platforms!r}")
    found = tuple([ALIASES.get(name, name) for name in platforms])
    for name in found:
        if name not in STARTERS:
            known = ", ".join(sorted(STARTERS))
            raise ValueError(f"unknown platform {name!r}; the known ones are {known}")
    return found


def check_routines(name: str, text: str, platforms: tuple[str, ...]) -> None:
    """A program with routines that only the CPU has is for the CPU.

    Raises:
        ValueError: it is for another platform too.
    """
    others = [platform for platform in platforms if platform != "cpu"]
    for target in custom_targets(text) if others else ():
        if target.startswith(ROUTINES) or target == CALLBACKS:
            raise ValueError(
                f"{name} calls {target}, which exists only on the platform cpu: it "
                f"cannot be lowered for {', '.join(others)}"
            )
