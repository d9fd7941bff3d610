"""Floor 6: `verax.scipy`: functions of SciPy, with its names and arguments.

One idea: a program uses few of these packages, so each is loaded when it is first
named; `import verax.scipy.stats` and `from verax.scipy import stats` work as ever.

>>> import verax
>>> verax.scipy.special.expit(0.0)
Array(0.5, dtype=float32, weak_type=True)
"""

from types import ModuleType
from typing import Final

from verax.rules.lazy import module_named

PACKAGES: Final = (
    "cluster",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "special",
    "stats",
)


def __getattr__(name: str) -> ModuleType:
    """A package that nobody has named before."""
    if name in PACKAGES:
        return module_named(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """What may be named."""
    return sorted([*globals(), *PACKAGES])
