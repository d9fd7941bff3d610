"""`jax._src.pretty_printer`: documents of text, joined and indented."""

from collections.abc import Sequence


class Doc:
    """A text in lines."""

    def __init__(self, string: str) -> None:
        self.string = string

    def __add__(self, other: "Doc") -> "Doc":
        return Doc(self.string + other.string)

    def format(self, width: int = 80, **_: object) -> str:
        """The text."""
        return self.string

    __str__ = format


def text(s: str, annotation: str | None = None) -> Doc:
    """A document of one text."""
    return Doc(s)


def concat(docs: Sequence[Doc]) -> Doc:
    """Documents one after the other."""
    return Doc("".join([doc.string for doc in docs]))


def brk(text: str = " ") -> Doc:
    """A place where a line may end."""
    return Doc(text)


def nest(n: int, doc: Doc) -> Doc:
    """A document whose further lines are indented."""
    return Doc(doc.string.replace("\n", "\n" + " " * n))


def group(doc: Doc) -> Doc:
    """A document that stays on one line, if it fits."""
    return doc


def join(sep: Doc, docs: Sequence[Doc]) -> Doc:
    """Documents with another between them."""
    return Doc(sep.string.join([doc.string for doc in docs]))
