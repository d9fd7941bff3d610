"""No public name is lost, and none loses an argument, without anybody noticing."""

import copy
import doctest
import pickle
import sys
from importlib import import_module
from operator import attrgetter
from typing import Any

import pytest

from tests.surface import GOLDEN, described, public_classes, surface

SHOWN_BY = public_classes()
CLASSES = sorted(SHOWN_BY, key=repr)
"""Each says in its body where users import it from (`__module__`), wherever its code
stands: what it prints as, and what pickles look for, does not move with files."""


def test_public_names_and_signatures_are_those_written_down() -> None:
    actual, written = surface(), GOLDEN.read_text().splitlines()
    gone = "\n".join(f"- {line}" for line in sorted({*written}.difference(actual)))
    fresh = "\n".join(f"+ {line}" for line in sorted({*actual}.difference(written)))
    advice = "if users are to see this, run `python -m tests.surface`"
    assert actual == written, f"\n{gone}\n{fresh}\n{advice}"


@pytest.mark.parametrize("cls", CLASSES, ids=repr)
def test_a_public_class_says_its_public_home(cls: type) -> None:
    assert cls.__module__ in SHOWN_BY[cls]
    assert attrgetter(cls.__qualname__)(import_module(cls.__module__)) is cls
    assert pickle.loads(pickle.dumps(cls)) is cls
    assert copy.deepcopy(cls) is cls


@pytest.mark.slow
@pytest.mark.parametrize("cls", CLASSES, ids=repr)
@pytest.mark.usefixtures("little_effort")
def test_examples_in_public_classes(cls: type) -> None:
    """Which doctest itself finds only where a class claims to be defined."""
    names = {
        name: value
        for module in list(sys.modules.values())
        if vars(module).get(cls.__name__) is cls
        for name, value in vars(module).items()
    }
    runner = doctest.DocTestRunner(
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    for example in doctest.DocTestFinder().find(cls, module=False, globs=names):
        runner.run(example)
    assert runner.failures == 0


def test_lines_of_values() -> None:
    def function(x: int, /, *axes: int, kind: Any = (int, "a"), **rest: Any) -> int:
        raise NotImplementedError

    class Refused(KeyError, ValueError):
        def reason(self, short: bool = False) -> str:
            raise NotImplementedError

        @property
        def place(self) -> int:
            raise NotImplementedError

    function.__module__ = Refused.__module__ = "verax.imagined"
    (line,) = described("f", function)
    assert line == "f(x, /, *axes, kind=(int, 'a'), **rest)"
    assert list(described("Refused", Refused)) == [
        "class Refused(KeyError, ValueError)",
        "Refused.__init__(...)",
        "Refused.place",
        "Refused.reason(self, short=False)",
    ]
    assert list(described("pi", 3.14)) == ["pi: float"]
    assert list(described("Path", dict)) == ["class Path()"]
