"""The reference explains every public name, and what it says comes from the values."""

import re
from typing import Any

import pytest

from tests.docs.reference_pages import (
    Entry,
    Links,
    entries,
    examples,
    head,
    markdown,
    menu,
    page,
    pages,
    signature,
    without_example,
)
from tests.docs.test_site import DOCS
from tests.surface import GOLDEN

FOUND = entries()
TEXTS = pages(FOUND)
LINE = re.compile(r"^(?:class )?([\w.]+)")
NO_EXAMPLE = {
    "verax.distributed.initialize": "takes several processes: docs/distributed.md",
    "verax.errors.ProcessFailed": "is raised when another process of a program dies",
    "verax.extend.Through": "is for rows with programs: docs/adding-a-primitive.md",
    "verax.extend.thread_call": "is for rows with programs: docs/adding-a-primitive.md",
    "verax.extend.thread_loop": "is for rows with programs: docs/adding-a-primitive.md",
    "verax.ffi.register_ffi_type": "takes a type of a compiled library",
    "verax.jax.load_ipython_extension": "is called by IPython",
    "verax.profiler.register_subprocess": "takes a second process with a server",
}
"""The functions and classes whose use cannot be shown in a few lines, and why."""


def listed() -> set[str]:
    """The names of the golden file, without modules and initializers."""
    lines = GOLDEN.read_text().splitlines()
    names = {LINE.match(line): line for line in lines if not line.endswith(": module")}
    return {m[1] for m in names if m and not m[1].endswith(".__init__")}


def explained(text: str) -> set[str]:
    """The anchors of a page."""
    headings = re.findall(r"\{ #([\w.]+) \}$", text, re.MULTILINE)
    return {*headings, *re.findall(r"<a id=\"([\w.]+)\">", text)}


def test_every_public_name_has_an_entry() -> None:
    anchors = {anchor for text in TEXTS.values() for anchor in explained(text)}
    other = {entry.anchor for listed in FOUND.values() for entry in listed}
    missing = sorted(name for name in listed() - anchors if not elsewhere(name, other))
    assert missing == []


def elsewhere(name: str, anchors: set[str]) -> bool:
    """Whether a member belongs to a class that another page explains."""
    cls, _, _ = name.rpartition(".")
    entry = next((e for e in every_entry() if e.anchor == cls), None)
    return entry is not None and entry.same_as in anchors


def every_entry() -> list[Entry]:
    return [entry for entries in FOUND.values() for entry in entries]


def test_functions_and_classes_have_docstrings() -> None:
    """Other values are shown as what they are; jaxlib's classes have none."""
    bare = [
        entry.anchor
        for entry in every_entry()
        if callable(entry.value) and not (entry.value.__doc__ or "").strip()
    ]
    keys = ("DictKey", "FlattenedIndexKey", "GetAttrKey", "PyTreeDef", "SequenceKey")
    assert sorted(bare) == [f"verax.tree_util.{name}" for name in keys]


def test_examples_are_shown() -> None:
    explained_here = {e.anchor for e in every_entry() if not e.same_as}
    assert sorted(examples().keys() - explained_here) == []


def test_functions_and_classes_have_an_example_or_a_reason_for_none() -> None:
    assert sorted(without_example(FOUND)) == sorted(NO_EXAMPLE)


@pytest.mark.parametrize("path", sorted(TEXTS))
def test_fences_of_a_page_are_closed(path: str) -> None:
    fences = re.findall(r"^ *```(\w*)$", TEXTS[path], re.MULTILINE)
    assert all(fences[::2])
    assert not any(fences[1::2])


def test_names_of_the_overview_are_links() -> None:
    text = (DOCS / "reference.md").read_text()
    names = set(re.findall(r"`(verax[\w.]*)`", text))
    places = Links(FOUND).places
    assert names - places.keys() == set()


def test_signatures_say_what_python_says() -> None:
    def f(x: int, /, y: Any = None, *, deep: bool = True, **rest: str) -> "list[int]":
        raise NotImplementedError

    assert signature("f", f) == (
        "f(x: int, /, y: Any = None, *, deep: bool = True, **rest: str) -> list[int]"
    )
    assert signature("g", lambda *args, key: key) == "g(*args, key)"
    assert head("C", type("C", (), {})) == "class C"


def test_long_signatures_take_a_line_for_each_parameter() -> None:
    def f(first: dict[str, int], second: dict[str, int], third: float = 1.5) -> None:
        raise NotImplementedError

    assert signature("a_rather_long_name", f).splitlines() == [
        "a_rather_long_name(",
        "    first: dict[str, int],",
        "    second: dict[str, int],",
        "    third: float = 1.5,",
        ")",
    ]


def test_docstrings_become_markdown() -> None:
    text = """Twice `a<b` and a < b * c.

    Args:
        x: a number
            of any size.
        *rest: ignored.

    Raises:
        TypeError: never.

    >>> 1 + 1
    2

    As in::

        f(x)
    """
    assert [line for line in markdown(text).splitlines() if line] == [
        "Twice `a<b` and a &lt; b \\* c.",
        "**Args**",
        "- `x`: a number",
        "  of any size.",
        "- `*rest`: ignored.",
        "**Raises**",
        "- `TypeError`: never.",
        "```pycon",
        ">>> 1 + 1",
        "2",
        "```",
        "As in:",
        "```python",
        "f(x)",
        "```",
    ]


def test_names_become_links() -> None:
    links = Links(FOUND)
    text = (
        "# `verax.jit`\n`verax.jit` [`vmap`](x) `lax.scan()` `jit`\n"
        "```\n`verax.jit`\n```"
    )
    assert links.linked(text, "guide.md") == (
        "# `verax.jit`\n[`verax.jit`](api/verax/index.md#verax.jit) [`vmap`](x) "
        "[`lax.scan()`](api/verax.lax/index.md#verax.lax.scan) `jit`\n"
        "```\n`verax.jit`\n```"
    )
    bare = links.linked("`vmap` `fun`", "api/verax/index.md", "verax")
    assert bare == "[`vmap`](../../api/verax/index.md#verax.vmap) `fun`"


def test_the_menu_nests_modules() -> None:
    assert menu(["verax", "verax.scipy.linalg", "verax.nn", "verax.nn.init"]) == [
        "api/verax/index.md",
        {"nn": ["api/verax.nn/index.md", {"init": "api/verax.nn.init.md"}]},
        {"scipy": [{"linalg": "api/verax.scipy.linalg.md"}]},
    ]


def test_other_names_of_a_value_lead_to_it() -> None:
    (entry,) = (e for e in FOUND["verax.numpy"] if e.name == "absolute")
    (other,) = (e for e in FOUND["verax.numpy"] if e.name == "abs")
    assert {entry.same_as, other.same_as} == {None, "verax.numpy.abs"} or {
        entry.same_as,
        other.same_as,
    } == {None, "verax.numpy.absolute"}
    assert "The same as" in page(
        "verax.numpy", [e for e in (entry, other) if e.same_as]
    )
