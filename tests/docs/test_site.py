"""The pages as a site: each in its menu, and no link that leads nowhere.

`make docs` finds dead links too, with the generated pages; this needs no MkDocs.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = frozenset(("changelog.md",))
PAGES = sorted(p for p in DOCS.rglob("*.md") if p.parent.name != "by_name")
LINKED = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]
FENCE = re.compile(r"^ *(```|~~~).*?^ *\1", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)[^`].*?\1")
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)")
HEADING = re.compile(r"^#+ +(.+?)(?: *\{ *#([\w.-]+) *\})?$", re.MULTILINE)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(path: Path) -> set[str]:
    """What a link into a page may name: its headings, spelled as on the site."""
    text = FENCE.sub("", path.read_text())
    return {anchor or slug(heading) for heading, anchor in HEADING.findall(text)}


def slug(heading: str) -> str:
    """The anchor of a heading: its words, joined by dashes."""
    words = re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip().lower()
    return re.sub(r"\s+", "-", words)


def menu() -> list[str]:
    """The pages that the menu of the site names."""
    _, _, entries = (ROOT / ".mkdocs.yml").read_text().partition("\nnav:\n")
    return re.findall(r"(?:- |: )([\w/.-]+\.md)$", entries, re.MULTILINE)


def dead(path: Path) -> list[str]:
    """The relative links of a page that lead nowhere."""
    text = FENCE.sub("", path.read_text())
    without_code = CODE.sub(lambda result: "`" * len(result[0]), text)
    wrong = []
    for link in LINK.findall(without_code):
        target, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        home = path.parent / target if target else path
        if (not home.exists() and target not in GENERATED) or (
            anchor and home.suffix == ".md" and anchor not in anchors(home)
        ):
            wrong.append(link)
    return wrong


def test_every_page_is_in_the_menu_once() -> None:
    pages = [str(path.relative_to(DOCS)) for path in PAGES]
    assert sorted(menu()) == sorted([*pages, *GENERATED])


@pytest.mark.parametrize("path", LINKED, ids=name_of)
def test_no_link_is_dead(path: Path) -> None:
    assert dead(path) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b`: c\n[x](gone.md) `[y](gone.md)` [z](#a-b-c) [w](#a)\n"
        "![p](gone.svg) [q](https://example.org/#a)\n```\n[r](gone.md)\n```\n"
    )
    assert dead(page) == ["gone.md", "#a", "gone.svg"]
