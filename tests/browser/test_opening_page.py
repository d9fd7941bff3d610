"""What the page shows first: arguments folded, a summary, and the values of a run."""

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.documents import document, lossy, traced, watched
from tests.browser.tabs import Opener
from tests.browser.test_explorer import CHOSEN, graph, lit, pane, rows, source


@pytest.fixture
def page(opened: Opener) -> Page:
    return opened(watched())


def heats(page: Page) -> list[str]:
    """The margin of the source, by line from 10 on."""
    return page.locator(".source .row:not(.file) .heat").all_text_contents()


def section(page: Page, title: str) -> Locator:
    heading = page.get_by_role("heading", name=re.compile(title))
    return page.locator(".summary section", has=heading)


def test_arguments_are_one_row_that_unfolds(page: Page) -> None:
    expect(rows(page, "trace")).to_have_count(5)
    head = rows(page, "trace").first
    expect(head).to_contain_text("6 arguments, 21 kB")
    expect(rows(page, "jvp").first).to_contain_text("6 arguments")
    head.locator(".twist").click()
    expect(rows(page, "trace")).to_have_count(11)
    expect(rows(page, "trace").nth(2)).to_contain_text(
        "b:f32[8,8] params['layers'][0]['w']"
    )
    pane(page, "trace").get_by_role("button", name="fold", exact=True).click()
    expect(rows(page, "trace")).to_have_count(5)


def test_few_arguments_stand_alone(opened: Opener) -> None:
    page = opened(document([traced()]))
    expect(page.locator(".kind-group")).to_have_count(0)


def test_keys_unfold_arguments(page: Page) -> None:
    rows(page, "trace").first.click()
    expect(rows(page, "trace").first).to_have_class(CHOSEN)
    expect(page.locator(".info")).to_contain_text("6 inputs, 21 kB")
    assert lit(page, "trace")[-1] == "●"
    page.keyboard.press("ArrowRight")
    expect(rows(page, "trace")).to_have_count(11)
    page.keyboard.press("ArrowDown")
    expect(rows(page, "trace").nth(1)).to_have_class(CHOSEN)
    tree = pane(page, "trace").get_by_role("tree")
    active = tree.get_attribute("aria-activedescendant")
    assert active == rows(page, "trace").nth(1).get_attribute("id")
    page.keyboard.press("ArrowLeft")
    expect(rows(page, "trace").first).to_have_class(CHOSEN)
    page.keyboard.press("ArrowLeft")
    expect(rows(page, "trace")).to_have_count(5)
    page.keyboard.press("Enter")
    expect(rows(page, "trace")).to_have_count(11)
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    expect(rows(page, "trace").nth(1)).to_contain_text("dot_general")


def test_a_chosen_argument_is_unfolded(page: Page) -> None:
    page.get_by_role("searchbox").fill("['layers'][3]")
    expect(rows(page, "trace").first).to_have_class(re.compile(r"\bhit\b"))
    page.keyboard.press("Enter")
    expect(rows(page, "trace")).to_have_count(11)
    expect(rows(page, "trace").nth(5)).to_have_class(CHOSEN)


def test_folded_arguments_have_the_light_of_those_in_them(page: Page) -> None:
    rows(page, "trace").nth(1).hover()
    expect(rows(page, "trace").first.locator(".link")).to_have_text("↑")


def test_nodes_of_arguments_have_their_names(page: Page) -> None:
    titles = graph(page, "trace").locator(".kind-input .node-title")
    expect(titles.first).to_have_text("x")
    expect(titles.nth(1)).to_have_text("params['layers'][0]['w']")


def test_the_margin_and_the_table_are_of_the_whole_program(page: Page) -> None:
    assert heats(page) == ["", "", "1.8k", "", "200"]
    page.keyboard.press("2")
    cells = page.locator(".cost-table tbody tr").all_inner_texts()
    assert [cell.split("\t")[1:] for cell in cells] == [
        ["2", "1.8k flop", "30 B", "67 %"],
        ["1", "200 flop+", "3 B", ""],
    ]
    page.get_by_role("button", name="stage trace").click()
    assert heats(page) == ["", "", "544", "", "32"]
    expect(page.get_by_role("button", name="stage trace")).to_be_focused()
    page.get_by_role("button", name="whole program").click()
    assert heats(page) == ["", "", "1.8k", "", "200"]


def test_the_summary_says_what_costs_and_leads_there(page: Page) -> None:
    tab = page.locator("#drawer-row")
    expect(tab).to_have_text("summary")
    costly = section(page, "what costs most, of 2.0k flop").get_by_role("button")
    assert [one.inner_text().split("\n")[0] for one in costly.all()] == ["90 %", "10 %"]
    costly.first.click()
    expect(source(page).nth(2)).to_have_class(CHOSEN)
    expect(tab).to_have_text("chosen")
    page.keyboard.press("Escape")
    expect(tab).to_have_text("summary")


def test_the_summary_says_what_takes_memory(page: Page) -> None:
    held = section(page, "in memory at the peak, 30 kB in trace").get_by_role("button")
    expect(held).to_have_count(2)
    expect(held.first).to_contain_text("1 argument: params['layers'][4]['w']")
    expect(held.nth(1)).to_contain_text("line 12")
    held.nth(1).click()
    expect(rows(page, "trace").nth(2)).to_have_class(CHOSEN)


def test_the_summary_names_values_and_stages(page: Page) -> None:
    notable = section(page, "values worth a look, of 2 values").get_by_role("button")
    expect(notable).to_have_count(1)
    expect(notable).to_contain_text("16 NaN")
    sizes = section(page, "size of the stages").get_by_role("button")
    assert [one.inner_text().split("\n")[1] for one in sizes.all()] == ["trace", "jvp"]
    pane(page, "trace").get_by_role("tab", name="jvp").click()
    sizes.first.click()
    expect(pane(page, "trace")).to_be_visible()


def test_heat_of_values(page: Page) -> None:
    choice = page.get_by_role("combobox")
    options = choice.get_by_role("option").all_inner_texts()
    assert [text.removeprefix("heat: ") for text in options] == [
        *("flops", "bytes", "range", "zeros", "NaN", "no heat")
    ]
    choice.select_option("range")
    assert heats(page) == ["", "", "3.5", "", "3.5"]
    bars = pane(page, "trace").locator(".row .heat").all_text_contents()
    assert bars == ["", "", "3.5", "3.5", ""]
    choice.select_option("NaN")
    assert heats(page) == ["", "", "", "", "16"]
    choice.select_option("zeros")
    assert heats(page) == ["", "", "", "", "25%"]
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("h")
    expect(choice).to_have_value("NaN")


def test_a_row_shows_its_histogram_and_course(page: Page) -> None:
    rows(page, "trace").nth(3).click()
    cards = page.locator(".value-card")
    expect(cards).to_have_count(1)
    expect(cards.locator("h3")).to_contain_text("log f32[4,8]")
    expect(cards.locator(".bar")).to_have_count(1)
    expect(cards.locator(".bar-zero")).to_have_count(1)
    expect(cards.locator(".bar-wrong")).to_have_count(1)
    facts = cards.locator(".value-facts").inner_text().split()
    assert facts[:8] == ["min", "-2.5", "max", "3.5", "mean", "0.25", "std", "1.5"]
    assert facts[8:] == ["zeros", "25", "%", "NaN", "16"]
    expect(cards.locator("figcaption")).to_have_text(
        "over model.py:13 (loss): from 1 to 3"
    )
    expect(cards.locator(".wrong")).to_have_count(1)
    path = cards.locator(".course-mean").get_attribute("d") or ""
    assert path.count("M") == 2


def test_a_row_without_values_shows_those_of_its_line(page: Page) -> None:
    rows(page, "trace").nth(1).click()
    expect(page.locator(".info")).to_contain_text("This row was not measured")
    expect(page.locator(".value-card h3")).to_contain_text("tanh")


def test_programs_that_were_not_watched_have_no_heat_of_values(opened: Opener) -> None:
    page = opened({**watched(), "watch": None})
    assert "range" not in page.get_by_role("combobox").inner_text()
    rows(page, "trace").nth(2).click()
    expect(page.locator(".value-card")).to_have_count(0)


def test_lines_that_lose_digits_stand_first_and_are_hot(opened: Opener) -> None:
    page = opened(lossy())
    expect(section(page, "lines that lose digits").locator("li")).to_have_count(1)
    expect(section(page, "lines that lose digits")).to_contain_text("write log1p(x)")
    page.get_by_role("combobox").select_option("digits")
    assert [text for text in heats(page) if text] == ["4.6"]
    rows(page, "jvp").nth(3).click()
    expect(page.locator(".info")).to_contain_text("loses 4.6 of 7.2 digits")
    source(page).nth(4).click()
    expect(page.locator(".info")).to_contain_text("x - y with x nearly y; write log1p")


def test_where_nothing_is_lost_the_page_says_so(opened: Opener) -> None:
    shown: Any = lossy()
    digits = {**shown["digits"], "lines": shown["digits"]["lines"][1:]}
    page = opened({**shown, "digits": digits})
    expect(section(page, "digits")).to_contain_text("No line loses digits")
    assert "digits" not in opened(watched()).get_by_role("combobox").inner_text()
