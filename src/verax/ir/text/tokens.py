"""Floor 0: the text of a jaxpr as tokens, and a cursor that says where it stopped.

One idea: one regular expression splits the text, a token knows whether it is the first
of its line (which ends an equation), and every complaint has a line and a column::

    cursor = Cursor("a:f32[8] = sin b")
    cursor.take("typed")    # 'a:f32[8]'
"""

import re
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import Final, NoReturn

import numpy as np

from verax.ir.avals import AbstractRef, ShapedArray, SymbolicSize
from verax.ir.dtypes import (
    KNOWN,
    DType,
    ExtendedDType,
    float0,
    from_short_name,
    is_extended,
    key_from_name,
    short_name,
)
from verax.ir.facade import module_named
from verax.ir.memos import memoised
from verax.ir.meshes import AxisType, MeshType, Terms, UnreducedKind, explicit_on
from verax.ir.promotion import scalar_text

# -----------------------------------------------------------------------------
# The words of the printed language: names, numbers, strings, dtypes.
#
# A word means the same wherever it occurs, so a parser need not know what to expect:
# `None`, `True`, `float32` and `inf` are reserved, another word is a string, and a
# string that is no such word is quoted::
#
#     bare("scatter-add"), plain("float32"), plain(-0.0)
#     # ('scatter-add', "'float32'", '-0.0')


CONSTANTS: Final[Mapping[str, bool | None]] = MappingProxyType(
    {"None": None, "True": True, "False": False}
)
DTYPE_WORDS: Final[Mapping[str, DType]] = MappingProxyType(
    {"float0" if dtype == float0 else dtype.name: dtype for dtype in KNOWN}
)
RESERVED: Final = frozenset((*CONSTANTS, *DTYPE_WORDS, "inf", "nan", "lambda"))
NAME: Final = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
COMMA: Final = re.compile(r",(?! )")
"""Between the sizes of a shape; operands of a symbolic size have a blank as well."""
AXES: Final = re.compile(r"@\(([^)]*)\)")
TERM: Final = re.compile(r"(V|R|U\w*):(\([^)]*\)|[^,}]+)")
OVER: Final = " over "
"""Between a type that explicit axes split and their mesh, in files."""
IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def bare(name: str) -> str:
    """The name of a primitive, in quotes if it is not a word.

    >>> bare("scatter-add"), bare("my op")
    ('scatter-add', "'my op'")
    """
    return name if NAME.fullmatch(name) and name != "in" else repr(name)


def quoted(text: str) -> str:
    """A string among params, in quotes unless it is a word without another meaning."""
    return text if IDENTIFIER.fullmatch(text) and text not in RESERVED else repr(text)


def plain(value: object) -> str | None:
    """The text of a value without parts; None for all others.

    >>> plain(np.dtype("float32")), plain("inner"), plain(2j), plain(())
    ('float32', 'inner', '0.0+2.0j', None)
    """
    match value:
        case None | bool():
            return repr(value)
        case Enum():
            return f"{type(value).__name__}.{value.name}" if value.name else None
        case np.generic():
            return typed_scalar(value)
        case int() | float() | bytes():
            return repr(value)
        case complex():
            return scalar_text(np.complex128(value).tobytes(), np.dtype(np.complex128))
        case str():
            return quoted(value)
        case ShapedArray() | SymbolicSize():
            return repr(value)
        case np.dtype() | ExtendedDType():
            return dtype_word(value)
        case _:
            return None


def dtype_word(dtype: DType) -> str | None:
    """The name of a dtype; None if there are no arrays of that dtype."""
    if dtype == float0:
        return "float0"
    return dtype.name if is_extended(dtype) or dtype in KNOWN else None


def typed_scalar(value: np.generic) -> str | None:
    """A NumPy scalar as literals are written, such as `3.0:f32[]`."""
    if value.dtype not in KNOWN:
        return None
    text = scalar_text(value.tobytes(), value.dtype)
    return f"{text}:{short_name(value.dtype)}[]"


def dtype_of_word(word: str) -> DType | None:
    """The dtype that `dtype_word` gives `word`.

    >>> dtype_of_word("bfloat16"), dtype_of_word("key<fry>"), dtype_of_word("inner")
    (dtype(bfloat16), key<fry>, None)
    """
    return DTYPE_WORDS.get(word) or key_from_name(word)


@memoised
def aval_of_word(text: str) -> ShapedArray:
    """The type that prints as `text`.

    Raises:
        ValueError: its dtype does not exist.

    >>> aval_of_word("~f32[2,3]")
    ~f32[2,3]
    >>> aval_of_word('f32[8@x] over [["x", 4, "Explicit"]]')
    f32[8@x]
    """
    word, _, axes = text.partition(OVER)
    return sized_aval(word, fixed_size, mesh_of_word(axes) if axes else None)


def filed_text(aval: ShapedArray) -> str:
    """A type as files hold it, with the mesh that it is over; see `aval_of_word`."""
    if aval.explicit is None:
        return repr(aval)
    return f"{aval}{OVER}{mesh_word(aval.explicit.mesh)}"


def mesh_word(mesh: MeshType) -> str:
    """The axes of a mesh, for texts that outlive a process.

    >>> mesh_word(MeshType(("x",), (4,), (AxisType.Explicit,)))
    '[["x", 4, "Explicit"]]'
    """
    axes = zip(mesh.names, mesh.sizes, mesh.types, strict=True)
    rows = [[name, size, kind.name] for name, size, kind in axes]
    return str(module_named("json").dumps(rows))


def mesh_of_word(text: str) -> MeshType:
    """The mesh that `mesh_word` wrote."""
    names, sizes, kinds = zip(*module_named("json").loads(text), strict=True)
    return MeshType(names, sizes, tuple([AxisType[kind] for kind in kinds]))


def sized_aval(
    text: str, sizes: Callable[[str], int], mesh: MeshType | None = None
) -> ShapedArray:
    """`aval_of_word`, of which `sizes` reads the sizes that are not numbers.

    Axes that split it are those of `mesh`.

    Raises:
        ValueError: its dtype, a size or an axis does not exist.
    """
    if text.startswith("Ref{"):
        return AbstractRef(sized_aval(text[4:-1], sizes, mesh))
    name, _, rest = text.lstrip("~").partition("[")
    dims, _, terms = rest.partition("]")
    words = [
        word.partition("@") for word in COMMA.split(AXES.sub(joined_by_bars, dims))
    ]
    shape = [
        int(size) if size.isdigit() else sizes(size) for size, _, _ in words if size
    ]
    aval = ShapedArray(shape, from_short_name(name), text.startswith("~"))
    if "@" not in dims and not terms:
        return aval
    if mesh is None:
        raise ValueError(f"explicit axes split {text}: pass mesh= to read it")
    splits = [tuple(axes.split("|")) if axes else () for _, _, axes in words]
    out = explicit_on(mesh, splits[: len(shape)], terms_of_word(terms))
    unknown = set(() if out is None else out.axes).difference(mesh.names)
    if unknown:
        raise ValueError(f"{text} names {min(unknown)!r}, which is not an axis of mesh")
    return aval.with_explicit(out)


def joined_by_bars(axes: re.Match[str]) -> str:
    """Several axes of a dimension without the commas that separate dimensions."""
    return "@" + axes[1].replace(",", "|")


def terms_of_word(text: str) -> Terms:
    """The terms that print so.

    >>> terms_of_word("{V:v, U_max:(x,y), R:z}").text()
    '{V:v, U_max:(x,y), R:z}'
    """
    result = {
        letter: tuple(axes.strip("()").split(","))
        for letter, axes in TERM.findall(text)
    }
    reduced, open = result.pop("R", ()), text.endswith("open}")
    varying = result.pop("V", ())
    for letter, axes in result.items():
        kind = UnreducedKind[letter.partition("_")[2] or "sum"]
        return Terms(axes, reduced, kind, open, varying=varying)
    return Terms((), reduced, open=open, varying=varying)


def fixed_size(text: str) -> int:
    """Raise ValueError: a symbolic size needs somebody to read it."""
    raise ValueError(f"the size {text} is symbolic: pass sizes= to read it")


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
    """The end of the symbolic size that begins here: a sum of products.

    >>> "(2*a + 1, b)"[1:symbolic_end("(2*a + 1, b)", 1)]
    '2*a + 1'
    """
    at = start + 2 * text.startswith("- ", start)
    while True:
        match = FUNCTION.match(text, at)
        if match is not None:
            at = symbolic_end(text, match.end())
            while text.startswith(", ", at):
                at = symbolic_end(text, at + 2)
            at += text.startswith(")", at)
        else:
            match = FACTOR.match(text, at)
            if match is None:
                return at
            # Not the name of a function, which may follow a sign of multiplication.
            name = re.search(r"(?:floordiv|mod|max|min)\Z", match[0])
            call = name is not None and text.startswith("(", match.end())
            at = match.start() + name.start() if name and call else match.end()
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
        match = token_pattern().match(self.text, self.next)
        if match is None:
            self.start = self.next + len(leading_gap(self.text[self.next :]))
            self.kind, self.token = "", self.text[self.start : self.start + 1]
            self.fail("a name, a number, a bracket or a string")
        self.kind = match.lastgroup or ""
        self.token = match[self.kind]
        self.start = match.start(self.kind)
        self.fresh = "\n" in match["gap"]
        self.next = match.end()

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
        out = self.size(text)
        self.next = end
        self.advance()
        return out

    def size(self, text: str) -> int:
        """The symbolic size that prints as `text`."""
        assert self.sizes is not None
        try:
            return self.sizes(text)
        except ValueError as error:
            self.fail(f"a symbolic size ({error})")

    def take(self, kind: str, expected: str = "") -> str:
        """The token, which must be of this kind, and one step ahead."""
        if self.kind != kind:
            self.fail(expected or kind)
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

    def fail(self, expected: str, start: int | None = None) -> NoReturn:
        """Raise the error that says what should stand here, or at `start`."""
        start = self.start if start is None else start
        line = self.text.count("\n", 0, start) + 1
        begin = self.text.rfind("\n", 0, start) + 1
        column = start - begin
        shown = self.text[begin:].split("\n", 1)[0]
        result = repr(self.token) if self.token else "the end of the text"
        where = f"line {line}, column {column + 1}"
        reached = f", found {result}" if start == self.start else ""
        raise ParseError(
            f"{where}: expected {expected}{reached}\n    {shown}\n    {' ' * column}^"
        )


def leading_gap(text: str) -> str:
    """The blanks and comments at the start."""
    match = re.match(r"(?:\s+|#[^\n]*)*", text)
    return match[0] if match else ""
