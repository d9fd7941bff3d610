"""Floor 5: the platforms that a program is lowered for.

The names of `verax.rules.rows.emitter`, and of those that jaxlib and JAX use::

    checked_platforms(("cpu", "gpu"))     # ('cpu', 'cuda')
"""

from collections.abc import Sequence

from verax.backend.runtime.client import ALIASES, default_client, platform_name
from verax.rules.rows.emitter import PLATFORMS
from verax.rules.values.conversions import shown


def checked_platforms(platforms: Sequence[str] | None) -> tuple[str, ...]:
    """The platforms under their own names, each once; the present one for None.

    Raises:
        ValueError: there is none of that name, or no sequence of names.
    """
    if platforms is None:
        return (platform_name(default_client()),)
    if isinstance(platforms, str) or not platforms:
        raise ValueError(f"platforms takes a sequence of names, not {shown(platforms)}")
    found = tuple(dict.fromkeys([ALIASES.get(name, name) for name in platforms]))
    for name in found:
        if name not in PLATFORMS:
            known = ", ".join(PLATFORMS)
            raise ValueError(f"unknown platform {name!r}; the known ones are {known}")
    return found
