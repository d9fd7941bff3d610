"""Floor 6: findings, and the report that is made of them.

One idea: a finding is a value, so the same report is printed for people and written as
JSON for programs. Paths are private, and are taken out of every text::

    report = Report((Section("python", (Finding("version", "3.12.1"),)),))
    print(report)
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from attrs import frozen

from verax.ir.records import ReprMixin

type Level = Literal["fine", "note", "problem"]

FORMAT: Final = "verax-doctor"
VERSION: Final = 1
SIGNS: Final = {"fine": " ", "note": "*", "problem": "!"}
PATH: Final = re.compile(r"""(?<![\w<.~/\\-])(?:~|[A-Za-z]:)?[/\\][^\s'",:;=()<>]+""")
HIDDEN: Final = "<path>"


@frozen(repr=False)
class Finding(ReprMixin):
    """One line of a report: its name and value; what to do about a note or problem."""

    name: str
    value: str
    level: Level = "fine"
    advice: str = ""


@frozen(repr=False)
class Section(ReprMixin):
    """What one check has to say."""

    name: str
    findings: tuple[Finding, ...]


@frozen(repr=False)
class Report(ReprMixin):
    """The whole report; it prints as text.

    >>> line = Finding("jaxlib", "9.0", "problem", "install an older one")
    >>> print(Report((Section("versions", (line,)),)))
    versions
    ! jaxlib   9.0
               -> install an older one
    <BLANKLINE>
    1 problem, 0 notes
    """

    sections: tuple[Section, ...]

    def at(self, level: Level) -> tuple[Finding, ...]:
        """The findings of a level, in order."""
        return tuple([f for s in self.sections for f in s.findings if f.level == level])

    @property
    def status(self) -> int:
        """The exit status of the command: 1 if there are problems."""
        return 1 if self.at("problem") else 0

    def __str__(self) -> str:
        names = [f.name for s in self.sections for f in s.findings]
        width = max(map(len, names), default=0)
        lines = [x for s in self.sections for x in [s.name, *lines_of(s, width), ""]]
        problems, notes = len(self.at("problem")), len(self.at("note"))
        return "\n".join(
            [*lines, f"{counted(problems, 'problem')}, {counted(notes, 'note')}"]
        )

    def as_json(self) -> str:
        """The same as JSON, with a version of its form."""
        sections = {
            s.name: [
                {"name": f.name, "value": f.value, "level": f.level, "advice": f.advice}
                for f in s.findings
            ]
            for s in self.sections
        }
        head = {"format": FORMAT, "version": VERSION, "status": self.status}
        return json.dumps({**head, "sections": sections}, indent=1)


def lines_of(section: Section, width: int) -> Iterator[str]:
    """The lines of a section: one for each finding, and one for each advice."""
    for finding in section.findings:
        lines = finding.value.splitlines() or [""]
        yield f"{SIGNS[finding.level]} {finding.name:{width}}   {lines[0]}".rstrip()
        indent = " " * (width + 5)
        yield from (f"{indent}{line}" for line in lines[1:])
        if finding.advice:
            yield f"{indent}-> {finding.advice}"


def counted(count: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(2, "note")
    '2 notes'
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def masked(text: str) -> str:
    """The text without the paths in it: they say who the user is, and on what he works.

    >>> masked("--xla_dump_to=/home/ada/secret --xla_x=1/2, see ~/notes")
    '--xla_dump_to=<path> --xla_x=1/2, see <path>'
    >>> masked(r"cannot open 'C:\\Users\\ada\\x.py': gone")
    "cannot open '<path>': gone"
    """
    return PATH.sub(HIDDEN, text)


def at_home(path: Path) -> str:
    """A path of the user's own, with `~` for the home directory.

    >>> at_home(Path.home() / ".cache" / "verax").replace(os.sep, "/")
    '~/.cache/verax'
    """
    try:
        return os.path.join("~", path.relative_to(Path.home()))
    except (ValueError, RuntimeError):
        return str(path)
