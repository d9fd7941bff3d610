"""Floor 2: symbolic dimensions as strings: `"b, 2*c + 1, floordiv(b, 2)"`.

A recursive descent over the tokens of the string; what it reads is computed by the
operators of dimensions, so a string means what the same text means in Python::

    parsed_shape("b, 2*c", scope)      # (b, 2*c)
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

from verax.ir.avals import larger_size, smaller_size
from verax.ops.symbols.expression import (
    FLOORDIV,
    MAX,
    MIN,
    MOD,
    Scope,
    Size,
    SymbolicDim,
    divided,
    minus,
    plus,
    times,
    variable,
)

TOKEN: Final = re.compile(r"\s*(\.\.\.|[A-Za-z_]\w*|\d+(?!\w)|[()+*,^-]|$)")
SIGNS: Final = ("==", ">=", "<=")
CALLS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    FLOORDIV: lambda x, y: divided(x, y)[0],
    MOD: lambda x, y: divided(x, y)[1],
    MAX: larger_size,
    MIN: smaller_size,
}


class Reader:
    """Reads one string, from left to right."""

    def __init__(self, text: str, scope: Scope) -> None:
        self.text = text
        self.scope = scope
        self.place = 0
        self.token = ""
        self.advance()

    def fail(self, reason: str) -> NoReturn:
        raise ValueError(f"syntax error in symbolic shape {self.text!r}: {reason}")

    def advance(self) -> str:
        """Go to the next token; the one that was current."""
        old, found = self.token, TOKEN.match(self.text, self.place)
        if found is None:
            self.fail(f"unexpected {self.text[self.place :].strip()!r}")
        self.token, self.place = found[1], found.end()
        return old

    def expect(self, token: str) -> None:
        """Skip a token that must be here."""
        if self.token != token:
            self.fail(f"expected {token or 'the end'!r}, not {self.token!r}")
        self.advance()

    def shape(self, like: Sequence[int | None] | None) -> tuple[Size, ...]:
        """Dimensions with commas between them, in parentheses or not."""
        closing = "" if self.token != "(" or not self.outer() else ")"
        if closing:
            self.advance()
        sizes: list[Size] = []
        while self.token != closing:
            if self.token in ("...", "_"):
                sizes += self.placeholder(len(sizes), like, closing)
            else:
                sizes.append(self.checked(self.sum(), len(sizes), like))
            if self.token != ",":
                break
            self.advance()
        if closing:
            self.expect(closing)
        self.expect("")
        if like is not None and len(sizes) != len(like):
            self.fail(
                f"it has {len(sizes)} dimensions, but 'like' shape has {len(like)}"
            )
        return tuple(sizes)

    def outer(self) -> bool:
        """Whether the parenthesis here closes at the end of the string."""
        depth, stripped = 0, self.text.rstrip()
        for i in range(self.place - 1, len(stripped)):
            depth += {"(": 1, ")": -1}.get(stripped[i], 0)
            if depth == 0:
                return i == len(stripped) - 1
        self.fail("a parenthesis is not closed")

    def placeholder(
        self, place: int, like: Sequence[int | None] | None, closing: str
    ) -> list[Size]:
        """The dimensions of `like` that `_` or `...` stands for."""
        token = self.advance()
        if like is None:
            self.fail(f"no 'like' shape was given for the placeholder {token!r}")
        if token == "..." and self.token == ",":
            self.advance()
        if token == "..." and self.token != closing:
            self.fail("'...' must come last")
        end = len(like) if token == "..." else place + 1
        if place > len(like) or end > len(like):
            self.fail(
                f"cannot resolve the placeholder {token!r} because we parsed {place} "
                f"already and 'like' shape has only {len(like)} dimensions"
            )
        found: list[Size] = []
        for i in range(place, end):
            size = like[i]
            if size is None:
                self.fail(f"dimension {i} of the 'like' shape is None")
            found.append(size)
        return found

    def checked(
        self, size: Size, place: int, like: Sequence[int | None] | None
    ) -> Size:
        """A dimension; one that is an integer must be that of `like`."""
        if like is not None and isinstance(size, int) and place < len(like):
            due = like[place]
            if due is not None and due != size:
                self.fail(f"different size {size} for known dimension {place}, {due}")
        return size

    def sum(self) -> Size:
        """Terms with + and - between them."""
        negative = self.token == "-"
        if self.token in ("+", "-"):
            self.advance()
        total = self.product()
        if negative:
            total = times(total, -1)
        while self.token in ("+", "-"):
            combine = plus if self.advance() == "+" else minus
            total = combine(total, self.product())
        return total

    def product(self) -> Size:
        """Powers with * between them."""
        total = self.power()
        while self.token == "*":
            self.advance()
            total = times(total, self.power())
        return total

    def power(self) -> Size:
        """A factor, to a power that is an integer."""
        base = self.factor()
        if self.token != "^":
            return base
        self.advance()
        if not self.token.isdigit():
            self.fail(f"an exponent must be an integer, not {self.token!r}")
        exponent = int(self.advance())
        found: Size = 1
        for _ in range(exponent):
            found = times(found, base)
        return found

    def factor(self) -> Size:
        """An integer, a variable, an operation or a sum in parentheses."""
        if self.token == "-":
            self.advance()
            return times(self.factor(), -1)
        if self.token.isdigit():
            return int(self.advance())
        if self.token == "(":
            self.advance()
            found = self.sum()
            self.expect(")")
            return found
        name = self.token
        if not name or not (name[0].isalpha() or name[0] == "_") or name == "_":
            self.fail(f"unexpected {name!r}" if name else "unexpected end")
        self.advance()
        if name not in CALLS:
            return variable(name, self.scope)
        self.expect("(")
        first = self.sum()
        self.expect(",")
        second = self.sum()
        self.expect(")")
        found = CALLS[name](first, second)
        assert isinstance(found, int | SymbolicDim)
        return found


def parsed_shape(
    text: str, scope: Scope, like: Sequence[int | None] | None = None
) -> tuple[Size, ...]:
    """The dimensions that a string lists.

    Raises:
        ValueError: it is not a list of dimensions, or does not fit the shape `like`.
    """
    return Reader(text, scope).shape(like)


def parsed_constraint(text: str, scope: Scope) -> tuple[Size, str, Size]:
    """The two sides of a constraint, and the sign between them.

    Raises:
        TypeError, ValueError: it is not a constraint.
    """
    if not isinstance(text, str):
        raise ValueError(
            f"The symbolic constraints should be a sequence of strings, not {text!r}"
        )
    sign = next((sign for sign in SIGNS if sign in text), None)
    if sign is None:
        raise ValueError(
            "Constraint parsing error: must contain one of '==' or '>=' or '<=', but "
            f"found {text!r}"
        )
    sides = []
    for part in text.split(sign, 1):
        reader = Reader(part, scope)
        sides.append(reader.sum())
        reader.expect("")
    return sides[0], sign, sides[1]
