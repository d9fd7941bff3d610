"""Floor 0: how a public name goes away: with a warning of when, and what instead.

One idea: the version since which a name is deprecated decides when it may go, so nobody
has to remember it, and a test finds what has stayed too long::

    @deprecated("verax.lax.old", since="1.2", instead="verax.lax.new")
    def old(x): ...

    old(x)    # verax.lax.old is deprecated since verax 1.2 and goes in 2.0: use ...
"""

import functools
import warnings
from collections.abc import Callable
from typing import Final

MINOR_VERSIONS: Final = 2
"""So many minor versions warn at least before a name goes."""


class VeraxDeprecationWarning(DeprecationWarning):
    """A name or an argument of verax goes away in the version that the message says.

    Tests that turn it into an error find such names before they are gone:
    `-W error::verax.errors.VeraxDeprecationWarning`. Where JAX itself warns of what it
    has deprecated, verax does so with a plain `DeprecationWarning`.

    >>> from verax.errors import VeraxDeprecationWarning
    >>> issubclass(VeraxDeprecationWarning, DeprecationWarning)
    True
    """

    __module__ = "verax.errors"


def removal(since: str) -> str:
    """The first version that may lack what is deprecated since a version.

    From 1.0 on only a major version takes names away; before, any minor one may.

    >>> removal("0.3"), removal("1.2"), removal("2.0")
    ('0.5', '2.0', '3.0')
    """
    major, minor = numbers(since)
    return f"{major + 1}.0" if major else f"0.{minor + MINOR_VERSIONS}"


def numbers(version: str) -> tuple[int, int]:
    """Major and minor number of a version.

    Raises:
        ValueError: the text has not the form `1.2`, perhaps with more behind it.
    """
    try:
        major, minor, *_ = version.split(".")
        return int(major), int(minor)
    except ValueError:
        raise ValueError(f"a version is written as in '1.2', not {version!r}") from None


def warn_deprecated(
    what: str, *, since: str, instead: str = "", stacklevel: int = 2
) -> None:
    """Warn that something goes away, at the line of whoever called the caller.

    Args:
        what: the public name, or an argument of it ("the argument n of verax.f").
        since: the version that deprecated it, `"1.2"`.
        instead: what to write; empty if there is nothing.
        stacklevel: as of `warnings.warn`: 2 is the line that called the caller.

    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     warn_deprecated("verax.f", since="1.2", instead="verax.g")
    >>> print(caught[0].message)
    verax.f is deprecated since verax 1.2 and goes in 2.0: use verax.g
    """
    message = f"{what} is deprecated since verax {since} and goes in {removal(since)}"
    if instead:
        message += f": use {instead}"
    warnings.warn(message, VeraxDeprecationWarning, stacklevel=stacklevel + 1)


def deprecated[**P, R](
    what: str, *, since: str, instead: str = ""
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function warn of its end whenever it is called.

    >>> @deprecated("verax.twice", since="0.2", instead="2 * x")
    ... def twice(x: int) -> int:
    ...     return 2 * x
    >>> with warnings.catch_warnings(action="ignore"):
    ...     twice(4)
    8
    """
    removal(since)  # a wrong version is an error where it is written

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            warn_deprecated(what, since=since, instead=instead)
            return function(*args, **kwargs)

        return call

    return decorate
