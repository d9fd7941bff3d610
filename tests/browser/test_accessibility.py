"""What axe-core finds in the pages: nothing, in light and in dark.

The rules are those of WCAG 2.2, A and AA, and what axe-core calls best practice. They
are run on the explorer in each of its forms, and on one page of the site.
"""

from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

import verax
from tests.browser.documents import small, talking, watched
from tests.browser.programs import rnn
from tests.browser.tabs import Opener, Scheme

pytest.importorskip(
    "axe_playwright_python", reason="axe-playwright-python comes with the extra dev"
)

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
SITE = Path(__file__).parents[2] / "site" / "explorer.html"
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
RUN = "async exclude => (await axe.run({ exclude })).violations"
OF_THE_THEME = (".md-search", ".md-code__nav")
"""Parts of the site that come from the theme, and have no names there."""


def complaints(page: Page, exclude: Sequence[str] = ()) -> list[str]:
    """What is wrong with a page: the rule, why, and where."""
    page.evaluate(AXE)
    actual: list[dict[str, Any]] = page.evaluate(RUN, exclude)
    return [
        f"{one['id']}: {one['help']}: {node['html']} ({node['failureSummary']})"
        for one in actual
        for node in one["nodes"]
    ]


def as_it_opens(page: Page) -> None:
    pass


def with_a_row(page: Page) -> None:
    page.get_by_role("treeitem").nth(3).click()


def with_hits(page: Page) -> None:
    page.get_by_role("searchbox").fill("tanh")
    page.keyboard.press("Enter")


def as_a_graph(page: Page) -> None:
    page.get_by_role("button", name="graph", exact=True).first.click()
    page.locator(".node").first.wait_for()


def with_costs(page: Page) -> None:
    page.get_by_role("tab", name="costs by line").click()


def with_memory(page: Page) -> None:
    page.get_by_role("tab", name="memory").click()


def with_changes(page: Page) -> None:
    page.keyboard.press("]")
    page.locator(".show-gone").click()


def with_keys(page: Page) -> None:
    page.keyboard.press("?")


FORMS: tuple[Callable[[Page], None], ...] = (
    as_it_opens,
    with_a_row,
    with_hits,
    as_a_graph,
    with_costs,
    with_memory,
    with_changes,
    with_keys,
)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("form", FORMS)
def test_explorer(opened: Opener, form: Callable[[Page], None], scheme: Scheme) -> None:
    page = opened(small(), scheme)
    form(page)
    assert complaints(page) == []


def with_a_group(page: Page) -> None:
    page.locator(".kind-group").first.click()


def with_values_of_a_line(page: Page) -> None:
    page.locator(".source .row").last.click()
    page.locator(".value-card").first.wait_for()


def with_heat_of(kind: str) -> Callable[[Page], None]:
    def choose(page: Page) -> None:
        page.get_by_role("combobox").select_option(kind)

    return choose


def with_costs_of_a_stage(page: Page) -> None:
    page.keyboard.press("2")
    page.get_by_role("button", name="stage trace").click()


OF_A_RUN: tuple[Callable[[Page], None], ...] = (
    as_it_opens,
    with_a_group,
    with_values_of_a_line,
    with_heat_of("range"),
    with_heat_of("zeros"),
    with_heat_of("NaN"),
    with_costs_of_a_stage,
)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("form", OF_A_RUN)
def test_watched_explorer(
    opened: Opener, form: Callable[[Page], None], scheme: Scheme
) -> None:
    page = opened(watched(), scheme)
    form(page)
    assert complaints(page) == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_explorer_over_several_devices(opened: Opener, scheme: Scheme) -> None:
    page = opened(talking(), scheme)
    page.keyboard.press("4")
    page.locator(".collectives .jump").first.click()
    assert complaints(page) == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_all_stages_of_a_program(opened: Opener, scheme: Scheme) -> None:
    xs, w = np.ones((3, 4), np.float32), {"h": np.eye(4), "x": np.eye(4)}
    actual = verax.explore(verax.grad(rnn), watch=True)(w, xs)
    page = opened(actual.document, scheme)
    page.get_by_role("combobox").select_option("range")
    page.get_by_role("button", name="+ pane").click()
    page.get_by_role("treeitem").nth(8).click()
    wrong = set(complaints(page))
    for _ in actual.content.stages[1:]:
        page.keyboard.press("]")
        wrong.update(complaints(page))
    assert wrong == set()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_explorer_with_a_story(opened: Opener, scheme: Scheme) -> None:
    page = opened(small(story=True), scheme)
    page.locator(".report summary").click()
    assert complaints(page) == []


def test_a_page_without_names_is_found(opened: Opener) -> None:
    page = opened(small())
    page.evaluate("document.body.append(document.createElement('button'))")
    (actual,) = {complaint.partition(":")[0] for complaint in complaints(page)} - {
        "region"
    }
    assert actual == "button-name"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_site(browser: Browser, scheme: Scheme) -> None:
    if not SITE.exists():
        pytest.skip("there is no site: `make docs` builds it")
    page = browser.new_page(color_scheme=scheme)
    page.goto(SITE.as_uri())
    assert complaints(page, OF_THE_THEME) == []
    page.close()
