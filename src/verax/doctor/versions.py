"""Floor 6: the interpreter, the system, and the packages that verax runs with.

One idea: what verax needs stands in the metadata of its installation, so each package
is held to that, and no range is written twice::

    [finding.value for finding in package_findings()]     # ['1.0.0', '0.12.0.1', ...]
"""

import importlib.metadata
import platform
import re
import sys
from collections.abc import Callable, Iterator
from typing import Final

from attrs import frozen

from verax.doctor.findings import Finding
from verax.ir.records import ReprMixin
from verax.rules.values.lazy import loaded

REQUIREMENT: Final = re.compile(
    r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*\(?([^;)]*)\)?(;?)"
)
BOUND: Final = re.compile(r"(>=|<=|==|!=|~=|<|>)\s*([0-9][^,\s]*)")
TESTED: Final = (("Linux", "x86_64"),)
PLUGINS: Final = ("jax-cuda13", "jax-cuda12")
PARTS: Final = ("pjrt", "plugin")
NOT_ONE: Final = "Install them in one version: pip install '{}-plugin[with-cuda]=={}'"


@frozen(repr=False)
class Requirement(ReprMixin):
    """A package that verax needs, and the versions of it that do."""

    name: str
    bounds: tuple[tuple[str, str], ...]

    def admits(self, version: str) -> bool:
        """Whether the package may have this version.

        >>> Requirement("jaxlib", ((">=", "0.11.2"), ("<", "0.13"))).admits("0.12.0.1")
        True
        """
        return all([holds(version, sign, bound) for sign, bound in self.bounds])

    def __str__(self) -> str:
        return ",".join([sign + bound for sign, bound in self.bounds])


def holds(version: str, sign: str, bound: str) -> bool:
    """Whether a version keeps a bound; signs that are not known are kept.

    >>> holds("0.9", ">=", "0.10"), holds("1.0", "==", "1.0.0")
    (False, True)
    """
    ours, theirs = numbers(version), numbers(bound)
    size = max(len(ours), len(theirs))
    left = ours + (0,) * (size - len(ours))
    right = theirs + (0,) * (size - len(theirs))
    order = (left > right) - (left < right)
    return {
        ">=": order >= 0,
        "<=": order <= 0,
        "<": order < 0,
        ">": order > 0,
        "==": order == 0,
        "!=": order != 0,
    }.get(sign, True)


def numbers(version: str) -> tuple[int, ...]:
    """The numbers that a version starts with.

    >>> numbers("0.12.0.dev3")
    (0, 12, 0)
    """
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()


def version_of(package: str) -> str:
    """The version of an installed package; empty if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def requirements() -> list[Requirement]:
    """What verax needs, without its extras; nothing where it is not installed."""
    try:
        lines = importlib.metadata.requires("verax") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [
        Requirement(match[1], tuple(BOUND.findall(match[2])))
        for line in lines
        if (match := REQUIREMENT.match(line)) and "extra ==" not in line
    ]


def python_findings() -> Iterator[Finding]:
    """The interpreter and the system, and whether verax is tested on them."""
    version = platform.python_version()
    yield Finding("python", f"{platform.python_implementation()} {version}")
    if not has_lock():
        yield Finding(
            "threads",
            "run free",
            "note",
            "tried without the GIL, but not at each change",
        )
    system = (platform.system(), platform.machine())
    untested = system not in TESTED
    yield Finding(
        "system",
        platform.platform(),
        "note" if untested else "fine",
        "tests run on Linux x86-64 only: docs/platforms.md" if untested else "",
    )


def has_lock() -> bool:
    """Whether this interpreter runs one thread at a time."""
    asked: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)
    return asked()


def package_findings() -> Iterator[Finding]:
    """verax, and each package that it needs, held to the versions that do."""
    ours = loaded("verax", "__version__")
    installed = version_of("verax")
    yield Finding("verax", f"{ours}{'' if installed else ', run from its sources'}")
    if installed and installed != ours:
        advice = "two copies: the one that runs is not the one that was installed"
        yield Finding("installed", installed, "note", advice)
    for requirement in requirements():
        yield held(requirement, version_of(requirement.name))
    if jax := version_of("jax"):
        yield Finding("jax", f"{jax}, which verax does not use")


def held(requirement: Requirement, version: str) -> Finding:
    """The finding about one package.

    >>> held(Requirement("numpy", ((">=", "2.0"),)), "1.26").level
    'problem'
    """
    if version and requirement.admits(version):
        return Finding(requirement.name, version)
    return Finding(
        requirement.name,
        version or "not installed",
        "problem",
        f"verax needs {requirement}: pip install '{requirement.name}{requirement}'",
    )


def plugin_findings() -> Iterator[Finding]:
    """The CUDA plugins that are installed, which must have the version of jaxlib."""
    jaxlib = version_of("jaxlib")
    for name in PLUGINS:
        for part in PARTS:
            version = version_of(f"{name}-{part}")
            if not version:
                continue
            other = numbers(version) != numbers(jaxlib)
            yield Finding(
                f"{name}-{part}",
                version,
                "problem" if other else "fine",
                f"jaxlib is {jaxlib}. {NOT_ONE.format(name, jaxlib)}" if other else "",
            )
