"""No public name is lost, and none loses an argument, without anybody noticing."""

from typing import Any

from tests.surface import GOLDEN, described, surface


def test_public_names_and_signatures_are_those_written_down() -> None:
    found, written = surface(), GOLDEN.read_text().splitlines()
    gone = "\n".join(f"- {line}" for line in sorted({*written}.difference(found)))
    fresh = "\n".join(f"+ {line}" for line in sorted({*found}.difference(written)))
    advice = "if users are to see this, run `python -m tests.surface`"
    assert found == written, f"\n{gone}\n{fresh}\n{advice}"


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
