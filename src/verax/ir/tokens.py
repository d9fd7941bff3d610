"""Floor 0: the text of a jaxpr as tokens, and a cursor that says where it stopped.

One idea: one regular expression splits the text, a token knows whether it is the first
of its line (which ends an equation), and every complaint has a line and a column::

    cursor = Cursor("a:f32[8] = sin b")
    cursor.take("typed")    # 'a:f32[8]'
"""

import re
from functools import cache
from typing import Final, NoReturn

REAL: Final = r"(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|inf|nan)"
NUMBER: Final = rf"-?(?:0x[0-9a-f]*|{REAL}[+-]{REAL}j|{REAL})"
ARRAY: Final = r"~?[a-z]\w*(?:<[^>\s]*>)?\[[\d,]*\]"
AVAL: Final = rf"(?:{ARRAY}|Ref\{{{ARRAY}\}})"
STRING: Final = r"""b?(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")"""
TOKEN: Final = rf"""
    (?P<gap>(?:\s+|\#[^\n]*)*)
    (?: (?P<typed>(?:{NUMBER}|[A-Za-z_]\w*):{AVAL})
      | (?P<aval>{AVAL})
      | (?P<number>{NUMBER}(?![\w.]))
      | (?P<string>{STRING})
      | (?P<word>key<[^>\s]*>|[A-Za-z_][\w-]*(?:\.[A-Za-z_]\w*)*)
      | (?P<opaque><[^>\s]*>)
      | (?P<mark>[{{}}()\[\];.,=])
      | (?P<end>\Z)
    )
"""


@cache
def token_pattern() -> re.Pattern[str]:
    """The expression of one token, compiled when the first text is read."""
    return re.compile(TOKEN, re.VERBOSE | re.ASCII)


class ParseError(ValueError):
    """A text is not a jaxpr; the message shows the place and what is missing."""

    __module__ = "verax.ir"


class Cursor:
    """A position in a text that is read from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.kind = ""
        self.token = ""
        self.start = 0
        self.fresh = True
        self.next = 0
        self.advance()

    def advance(self) -> None:
        """Go on to the next token."""
        found = token_pattern().match(self.text, self.next)
        if found is None:
            self.start = self.next + len(leading_gap(self.text[self.next :]))
            self.kind, self.token = "", self.text[self.start : self.start + 1]
            self.fail("a name, a number, a bracket or a string")
        self.kind = found.lastgroup or ""
        self.token = found[self.kind]
        self.start = found.start(self.kind)
        self.fresh = "\n" in found["gap"]
        self.next = found.end()

    def take(self, kind: str, wanted: str = "") -> str:
        """The token, which must be of this kind, and one step ahead."""
        if self.kind != kind:
            self.fail(wanted or kind)
        token = self.token
        self.advance()
        return token

    def expect(self, *tokens: str) -> None:
        """Step over exactly these tokens."""
        for token in tokens:
            if self.token != token or self.kind not in ("mark", "word"):
                self.fail(repr(token))
            self.advance()

    def accept(self, token: str) -> bool:
        """Step over `token` if it is the next one."""
        if self.token != token or self.kind != "mark":
            return False
        self.advance()
        return True

    def at(self, token: str) -> bool:
        """Whether this bracket or sign is next."""
        return self.token == token and self.kind == "mark"

    def fail(self, wanted: str, start: int | None = None) -> NoReturn:
        """Raise the error that says what should stand here, or at `start`."""
        start = self.start if start is None else start
        line = self.text.count("\n", 0, start) + 1
        begin = self.text.rfind("\n", 0, start) + 1
        column = start - begin
        shown = self.text[begin:].split("\n", 1)[0]
        found = repr(self.token) if self.token else "the end of the text"
        where = f"line {line}, column {column + 1}"
        reached = f", found {found}" if start == self.start else ""
        raise ParseError(
            f"{where}: expected {wanted}{reached}\n    {shown}\n    {' ' * column}^"
        )


def leading_gap(text: str) -> str:
    """The blanks and comments at the start."""
    found = re.match(r"(?:\s+|#[^\n]*)*", text)
    return found[0] if found else ""
