"""Floor 6: the kit inside pytest: one line per primitive.

One idea: each law of each primitive is a test of its own, so that a broken law is a
failed test whose text is the counterexample. In a test file::

    test_log_cosh = laws_of_primitive(log_cosh_p)

or, without a test file, in the configuration of pytest, which loads this plugin where
it is asked for and nowhere else::

    addopts = -p verax.verify.plugin
    verax_primitives = mylib.rows:log_cosh_p  mylib.more

Where it is loaded, `--verax-cases` says how many calls are drawn for each law, in both.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from verax.verify.__main__ import WrongCall, subjects
from verax.verify.checking.check import CASES, check_primitive, laws_of, row_of
from verax.verify.checking.functions import ENGINE
from verax.verify.checking.report import SILENT
from verax.verify.laws import Law

OPTION = "--verax-cases"
INI = "verax_primitives"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option and the line of the configuration."""
    group = parser.getgroup("verax", "the laws of verax")
    group.addoption(
        OPTION, type=int, default=None, help=f"calls per law (default {CASES})"
    )
    parser.addini(INI, "primitives to hold to the laws: module:name ...", "args", [])


def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add the tests of the primitives that the configuration names."""
    names = config.getini(INI)
    if names:
        root = Configured.from_parent(session, name="verax")
        for name in names:
            items.extend(root.tests_of(name))


class Configured(pytest.Collector):
    """The parent of the tests that the configuration names."""

    def collect(self) -> Iterator[pytest.Item]:
        """Every law of every primitive named."""
        for name in self.config.getini(INI):
            yield from self.tests_of(name)

    def tests_of(self, name: str) -> Iterator[pytest.Item]:
        """Every law of the primitives that one name stands for.

        Raises:
            UsageError: there are none of that name.
        """
        try:
            rows = subjects(name)
        except WrongCall as error:
            raise pytest.UsageError(f"{INI}: {error}") from error
        for row in rows:
            for law in laws_of(None, ENGINE):
                label = f"{name}[{row.name}-{law.name}]"
                yield LawItem.from_parent(self, name=label, row=row, law=law)


class LawItem(pytest.Item):
    """One law tried on one primitive."""

    def __init__(self, *, row: Any, law: Law, **rest: Any) -> None:
        super().__init__(**rest)
        self.row = row
        self.law = law

    def runtest(self) -> None:
        """Try the law.

        Raises:
            LawsBroken: it does not hold.
        """
        hold_law(self.row, self.law, cases_of(self.config))

    def repr_failure(self, excinfo: Any, style: Any = None) -> str:
        """The counterexample, without the frames of the kit."""
        return str(excinfo.value)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.config.rootpath, 0, self.name


def hold_law(row: Any, law: Law, cases: int) -> None:
    """Try a law on a row; skip the test, with the reason, if it does not apply.

    Raises:
        LawsBroken: it does not hold.
    """
    (finding,) = check_primitive(row, laws=[law], cases=cases).raise_if_broken()
    if finding.verdict == SILENT:
        pytest.skip(finding.notes)


def cases_of(config: pytest.Config) -> int:
    """The number of calls the command line asks for."""
    return int(config.getoption(OPTION, default=None) or CASES)


def laws_of_primitive(primitive: Any, *, cases: int | None = None) -> Any:
    """A test function: one test for each law of a primitive. It needs pytest alone.

    `cases` goes before the option of the command line.

    >>> test_sin = laws_of_primitive("sin", cases=10)
    >>> test_sin.__name__
    'test_sin'
    """
    row = row_of(primitive)
    laws = laws_of(None, ENGINE)

    def test(law: Law, pytestconfig: pytest.Config) -> None:
        hold_law(row, law, cases or cases_of(pytestconfig))

    test.__name__ = test.__qualname__ = f"test_{row.name}"
    return pytest.mark.parametrize("law", laws, ids=lambda law: law.name)(test)
