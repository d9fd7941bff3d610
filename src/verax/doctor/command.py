"""Floor 6: the command line of the doctor.

One idea: it never raises. A check that fails is a finding of its own, and the exit
status is 1 where there are problems, so that a script can ask, too::

    python -m verax doctor
    python -m verax doctor --json
"""

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from verax.doctor.devices import device_findings
from verax.doctor.findings import Finding, Report, Section, masked
from verax.doctor.surroundings import (
    cache_findings,
    thread_findings,
    variable_findings,
)
from verax.doctor.versions import package_findings, plugin_findings, python_findings

type Checks = Sequence[tuple[str, Callable[[], Iterable[Finding]]]]

CHECKS: Final[Checks] = (
    ("system", python_findings),
    ("packages", package_findings),
    ("plugins", plugin_findings),
    ("devices", device_findings),
    ("cache of programs", cache_findings),
    ("threads", lambda: thread_findings(os.environ)),
    ("environment", lambda: variable_findings(os.environ)),
)


def main(arguments: Sequence[str]) -> int:
    """Print the report; the exit status is 1 if there are problems, else 0."""
    options = parser().parse_args(arguments)
    report = examined(CHECKS)
    print(report.as_json() if options.json else report)
    return report.status


def parser() -> argparse.ArgumentParser:
    """The options."""
    out = argparse.ArgumentParser(
        "python -m verax doctor",
        description="Say what a bug report should: versions, devices, caches, "
        "variables of the environment, and what is wrong with them.",
        epilog="Paths are left out, but for that of the cache. The exit status is 1 if "
        "there are problems.",
    )
    out.add_argument("--json", action="store_true", help="print JSON")
    return out


def examined(checks: Checks) -> Report:
    """The report of some checks; one without findings has no section."""
    sections = [Section(name, findings(check)) for name, check in checks]
    return Report(tuple([section for section in sections if section.findings]))


def findings(check: Callable[[], Iterable[Finding]]) -> tuple[Finding, ...]:
    """What a check finds, and that it failed, if it did.

    >>> findings(lambda: [1 / 0])
    (Finding(name='check', value='failed', level='problem', \
advice='ZeroDivisionError: division by zero'),)
    """
    out: list[Finding] = []
    try:
        for finding in check():
            out.append(finding)
    except Exception as error:  # whatever is wrong, the rest of the report is needed
        words = masked(f"{type(error).__name__}: {error}")
        out.append(Finding("check", "failed", "problem", words))
    return tuple(out)
