"""Floor 6: the kit inside pytest: one line per primitive, and pinned programs.

One idea: each law of each primitive is a test of its own, so that a broken law is a
failed test whose text is the counterexample. In a test file::

    test_log_cosh = laws_of_primitive(log_cosh_p)

or, without a test file, in the configuration of pytest, which loads this plugin where
it is asked for and nowhere else::

    addopts = -p verax.verify.plugin
    verax_primitives = mylib.rows:log_cosh_p  mylib.more

Where it is loaded, `--verax-cases` says how many calls are drawn for each law, in both,
and tests may take the fixture `same_program`, whose files `--verax-update` writes::

    def test_loss(same_program):
        same_program(loss, weights, batch)
"""

import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from verax.verify.__main__ import WrongCall, subjects
from verax.verify.checking.check import CASES, check_primitive, laws_of, row_of
from verax.verify.checking.functions import ENGINE
from verax.verify.checking.report import SILENT
from verax.verify.laws import Law
from verax.verify.pinned import VARIABLE, assert_same_program

OPTION = "--verax-cases"
UPDATE = "--verax-update"
INI = "verax_primitives"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options and the line of the configuration."""
    group = parser.getgroup("verax", "the laws of verax")
    group.addoption(
        OPTION, type=int, default=None, help=f"calls per law (default {CASES})"
    )
    group.addoption(UPDATE, action="store_true", help="write the pinned programs anew")
    parser.addini(INI, "primitives to hold to the laws: module:name ...", "args", [])


def pytest_configure(config: pytest.Config) -> None:
    """Have the files of pinned programs written, if the command line asks for it."""
    if config.getoption(UPDATE):
        environment = pytest.MonkeyPatch()
        environment.setenv(VARIABLE, "1")
        config.add_cleanup(environment.undo)


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

    def __init__(self, *, row: object, law: Law, **rest: Any) -> None:
        super().__init__(**rest)
        self.row = row
        self.law = law

    def runtest(self) -> None:
        """Try the law.

        Raises:
            LawsBroken: it does not hold.
        """
        hold_law(self.row, self.law, cases_of(self.config))

    def repr_failure(self, excinfo: Any, style: object = None) -> str:
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


def laws_of_primitive(primitive: Any, *, cases: int | None = None) -> object:
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


# -----------------------------------------------------------------------------
# Programs pinned beside the test file.
#
# The file is named after the test: that of `test_loss` in `tests/test_model.py` is
# `tests/programs/test_model.test_loss.jaxpr`.


FOLDER: Final = "programs"
LONGEST: Final = 150
"""The most characters of the name of a file."""


class SameProgram:
    """Asserts that programs are those of the files of one test.

    Attributes:
        stem: the path of its files, without the number of the call and the ending.
    """

    def __init__(self, stem: Path) -> None:
        self.stem = stem
        self.calls = count(1)

    def __call__(
        self, fun: Callable[..., object], /, *args: object, **options: Any
    ) -> None:
        """`verify.assert_same_program` with the file of this call.

        The second call in a test has a file with `-2` in its name, and so on.

        Raises:
            AssertionError: the program is another, or there is no file.
        """
        __tracebackhide__ = True
        number = next(self.calls)
        again = f"-{number}" if number > 1 else ""
        path = self.stem.with_name(f"{self.stem.name}{again}.jaxpr")
        assert_same_program(path, fun, *args, **options)


def file_name(*parts: str) -> str:
    """The name of a file for a test; tests of one folder have different ones.

    >>> file_name("test_model", "test_loss[4-True]")
    'test_model.test_loss-4-True'
    >>> file_name("test_model", "test_loss[a/b]")
    'test_model.test_loss-a-b-fe24a7'
    """
    whole = ".".join(parts)
    out = re.sub(r"[^A-Za-z0-9_.+=-]+", "-", whole).strip("-")
    plain = whole.replace("[", "-").removesuffix("]")
    if out == plain and len(out) <= LONGEST:
        return out
    return f"{out[:LONGEST]}-{sha256(whole.encode()).hexdigest()[:6]}"


@pytest.fixture
def same_program(request: pytest.FixtureRequest) -> SameProgram:
    """Asserts that the program of a function is the one in the file of this test."""
    path: Path = request.node.path
    classes = [n.name for n in request.node.listchain() if isinstance(n, pytest.Class)]
    name = file_name(path.stem, *classes, request.node.name)
    return SameProgram(path.parent / FOLDER / name)
