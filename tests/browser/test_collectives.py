"""The panel of a page that says what devices send each other."""

from playwright.sync_api import Page, expect

from tests.browser.documents import small, talking
from tests.browser.tabs import Opener
from tests.browser.test_explorer import CHOSEN, lit, rows, source


def panel(page: Page) -> list[list[str]]:
    """The texts of the table, row by row."""
    found = page.locator(".collectives tbody tr").all()
    return [row.locator("th, td").all_text_contents() for row in found]


def test_collectives_have_a_row_for_each_line(opened: Opener) -> None:
    page = opened(talking())
    page.keyboard.press("4")
    expect(page.get_by_role("tab", name="collectives")).to_have_attribute(
        "aria-selected", "true"
    )
    caption = page.locator(".collectives caption")
    expect(caption).to_have_text("8 devices (data 4, model 2), each sends 1.0 kB")
    first, second = panel(page)
    assert first[0].startswith("← model.py:12")
    assert first[1:] == ["all-reduce", "data", "4", "512 B", "1", "768 B"]
    assert second == ["(of no line)", "all-gather", "model", "2", "64 B", "4+", "256 B"]


def test_a_collective_leads_to_its_row_and_its_line(opened: Opener) -> None:
    page = opened(talking())
    page.keyboard.press("4")
    page.locator(".collectives .jump").first.click()
    expect(rows(page, "hlo").nth(1)).to_have_class(CHOSEN)
    assert lit(page, "hlo")[1] == "●"
    line = source(page).filter(has_text="tanh")
    expect(line).to_contain_text("●")
    expect(page.locator(".collectives tr.chosen")).to_have_count(1)


def test_memory_of_each_device(opened: Opener) -> None:
    page = opened(talking())
    page.keyboard.press("4")
    memory = page.locator(".device-memory")
    expect(memory.locator("dt")).to_have_text(
        ["arguments", "outputs", "temporaries", "total"]
    )
    expect(memory.locator("dd")).to_have_text(["3.0 kB", "512 B", "2.0 kB", "5.6 kB"])


def test_programs_of_one_device_have_no_such_panel(opened: Opener) -> None:
    page = opened(small())
    page.keyboard.press("4")
    expect(page.locator(".drawer").get_by_role("tab")).to_have_count(3)
    expect(page.locator(".info")).to_be_visible()
