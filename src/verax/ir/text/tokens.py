"""Floor 0: the text of a jaxpr as tokens, and a cursor that says where it stopped.

One idea: one regular expression splits the text, a token knows whether it is the first
of its line (which ends an equation), and every complaint has a line and a column::

    cursor = Cursor("a:f32[8] = sin b")
    cursor.take("typed")    # 'a:f32[8]'
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Final, NoReturn

from verax.ir.avals import ShapedArray
from verax.ir.meshes import MeshType
from verax.ir.text.words import aval_of_word, fixed_size, sized_aval

REAL: Final = r"(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|inf|nan)"
NUMBER: Final = rf"-?(?:0x[0-9a-f]*|{REAL}[+-]{REAL}j|{REAL})"
TERMS: Final = r"(?:\{(?:[UR]|open)[^{}\n]*\})?"
ARRAY: Final = rf"~?[a-z]\w*(?:<[^>\s]*>)?\[[\w,()+*^@ -]*\]{TERMS}"
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
      | (?P<sign>-(?=\ ))
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


type Sizes = Callable[[str], int]
"""Makes a symbolic size from its text."""
OPERATOR: Final = re.compile(r" [+-] ")
FUNCTION: Final = re.compile(r"(?:floordiv|mod|max|min)\(")
FACTOR: Final = re.compile(r"[\w*^]+", re.ASCII)


def symbolic_end(text: str, start: int) -> int:
    """Where the symbolic size that begins here ends: a sum of products.

    >>> "(2*a + 1, b)"[1:symbolic_end("(2*a + 1, b)", 1)]
    '2*a + 1'
    """
    at = start + 2 * text.startswith("- ", start)
    while True:
        found = FUNCTION.match(text, at)
        if found is not None:
            at = symbolic_end(text, found.end())
            while text.startswith(", ", at):
                at = symbolic_end(text, at + 2)
            at += text.startswith(")", at)
        else:
            found = FACTOR.match(text, at)
            if found is None:
                return at
            # Not the name of a function, which may follow a sign of multiplication.
            name = re.search(r"(?:floordiv|mod|max|min)\Z", found[0])
            call = name is not None and text.startswith("(", found.end())
            at = found.start() + name.start() if name and call else found.end()
            if call:
                continue
        if text[at : at + 1] in ("*", "^"):
            continue
        sign = OPERATOR.match(text, at)
        if sign is None:
            return at
        at = sign.end()


class Cursor:
    """A position in a text that is read from left to right.

    `sizes` makes the symbolic sizes of the text, if it may have some; types that are
    split name axes of `mesh`.
    """

    def __init__(
        self, text: str, sizes: Sizes | None = None, mesh: MeshType | None = None
    ) -> None:
        self.text = text
        self.sizes = sizes
        self.mesh = mesh
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

    def aval(self, word: str) -> ShapedArray:
        """The type that prints as `word`.

        Raises:
            ValueError: its dtype, a size or an axis does not exist.
        """
        if self.sizes is None and self.mesh is None:
            return aval_of_word(word)
        return sized_aval(word, self.sizes or fixed_size, self.mesh)

    def accept_size(self) -> int | None:
        """Step over a symbolic size that is more than a name, if one is next."""
        if self.sizes is None:
            return None
        end = symbolic_end(self.text, self.start)
        text = self.text[self.start : end]
        if not text or text.isidentifier() or re.fullmatch(r"\d\w*", text):
            return None
        found = self.size(text)
        self.next = end
        self.advance()
        return found

    def size(self, text: str) -> int:
        """The symbolic size that prints as `text`."""
        assert self.sizes is not None
        try:
            return self.sizes(text)
        except ValueError as error:
            self.fail(f"a symbolic size ({error})")

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
