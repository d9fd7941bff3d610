"""What one part of a run shows: rows of a table, each with a verdict.

passed("donation", "the argument is deleted")
checked("cholesky", error <= allowed, f"{error:.1e}")
"""

from typing import NamedTuple

PASS, FAIL, FIGURE, NOT_RUN = "pass", "FAIL", "figure", "not run"


class Row(NamedTuple):
    """What was tried, what came out, and the verdict."""

    what: str
    found: str
    verdict: str


def checked(what: str, fine: object, result: str = "") -> Row:
    """A row that passes or fails."""
    return Row(what, result, PASS if fine else FAIL)


def figure(what: str, result: str) -> Row:
    """A row that only tells."""
    return Row(what, result, FIGURE)


def not_run(what: str, reason: str) -> Row:
    """A row for what could not be tried."""
    return Row(what, reason, NOT_RUN)


def failed(what: str, error: BaseException) -> Row:
    """A row for what raised: the first line of the message."""
    lines = str(error).strip().splitlines() or [""]
    return Row(what, f"{type(error).__name__}: {lines[0][:200]}", FAIL)
