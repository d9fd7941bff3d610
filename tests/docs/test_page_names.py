"""What the pages say of files and functions is so."""

import re
from pathlib import Path

import pytest

from tests.docs.page_names import HOMES, ROOT, mistakes, tokens

PAGES = sorted(
    [
        *(ROOT / "docs").glob("*.md"),
        *[ROOT / name for name in ("CONTRIBUTING.md", "README.md")],
    ]
)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_are_found(page: Path) -> None:
    assert mistakes(page.read_text()) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = LINK.findall(page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("see `api/jit/nowhere.py`", "api/jit/nowhere.py does not exist"),
        (
            "`api/jit.py: PjitFunction, JitFunktion`",
            "api/jit.py does not define JitFunktion",
        ),
        (
            "`api/jit.py` has `PjitFunction.quick_call`",
            "no file of the page defines PjitFunction.quick_call",
        ),
        ("`verax.transforms.evaluated`", "verax.transforms.evaluated does not exist"),
    ],
)
def test_mistakes_are_seen(text: str, mistake: str) -> None:
    assert mistakes(text) == [mistake]


def test_what_is_right_passes() -> None:
    text = "`api/jit.py: PjitFunction`, `PjitFunction.lower`, `verax.lax.add`"
    assert mistakes(text) == []
    assert mistakes("```\n`api/nowhere.py`\n```\n and `model.py`") == []


def test_the_tour_names_the_way_of_a_call() -> None:
    files = [token.partition(":")[0] for token in tokens(tour())]
    for package in ("api/jit", "api/tracing", "transforms/engine", "backend/lowering"):
        assert any(name.startswith(package) for name in files), package


def tour() -> str:
    return (HOMES[-1] / "tour.md").read_text()
