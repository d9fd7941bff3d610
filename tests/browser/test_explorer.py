"""The page of the explorer in a real browser: what is lit, folded, found and drawn."""

import re
from typing import cast

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.documents import Rows, document, large, small, traced
from tests.browser.tabs import Opener
from verax.explorer.exploration import render

CHOSEN = re.compile(r"\bchosen\b")


def pane(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=f"stage {name}", exact=True)


def rows(page: Page, stage: str) -> Locator:
    return pane(page, stage).get_by_role("treeitem")


def source(page: Page) -> Locator:
    return page.get_by_role("listbox", name="source").get_by_role("option")


def lit(page: Page, stage: str) -> dict[int, str]:
    """The lit rows of a pane, with the signs in their gutters."""
    script = """rows => rows.filter(r => / is-/.test(' ' + r.className)).map(r =>
        [Number(r.querySelector('.number').textContent) - 1,
         r.querySelector('.link').textContent])"""
    actual = rows(page, stage).evaluate_all(script)
    return dict(cast("list[tuple[int, str]]", actual))


def lit_lines(page: Page) -> list[str]:
    lines = page.locator(".source .row.is-line .number")
    return lines.all_text_contents()


@pytest.fixture
def page(opened: Opener) -> Page:
    return opened(small())


def test_first_view_is_source_first_and_last_stage(page: Page) -> None:
    expect(source(page)).to_have_count(5)
    expect(rows(page, "trace")).to_have_count(11)
    expect(rows(page, "hlo")).to_have_count(2)
    first = rows(page, "trace").nth(2)
    assert "c:f32[4,8] = dot_general[dimension_numbers" in first.inner_text()
    assert page.title() == "loss · verax"


def test_names_of_users_stay_text(page: Page) -> None:
    assert page.locator("b").count() == 0
    assert "<b>not</b> bold" in source(page).nth(1).inner_text()
    assert "</script>" in source(page).nth(4).inner_text()


def test_hover_lights_line_operands_users_and_what_became_of_it(page: Page) -> None:
    rows(page, "trace").nth(3).hover()
    assert lit(page, "trace") == {3: "●", 2: "↑", 4: "↓"}
    assert lit(page, "hlo") == {1: "»"}
    assert lit_lines(page) == ["12"]
    legend = page.locator(".legend")
    expect(legend).to_have_text(re.compile("chosen.*1 operand.*1 user.*3 made from it"))
    page.mouse.move(5, 5)
    assert lit(page, "trace") == {}


def test_origins_are_followed_through_stages_that_are_not_shown(page: Page) -> None:
    rows(page, "hlo").nth(1).click()
    assert lit(page, "trace") == {3: "«", 9: "«"}
    assert lit(page, "hlo") == {1: "●", 0: "↑"}
    assert lit_lines(page) == ["12", "14"]
    expect(rows(page, "hlo").nth(1)).to_have_attribute("aria-selected", "true")


def test_a_source_line_lights_its_rows_in_every_stage(page: Page) -> None:
    source(page).nth(2).click()
    assert lit(page, "trace") == {2: "»", 3: "»"}
    assert lit(page, "hlo") == {1: "»"}
    expect(page.locator(".info")).to_contain_text("model.py:12")


def test_nested_programs_fold_and_pass_their_light_to_the_head(page: Page) -> None:
    scan = rows(page, "trace").nth(4)
    scan.locator(".twist").click()
    expect(rows(page, "trace")).to_have_count(7)
    expect(scan).to_have_attribute("aria-expanded", "false")
    source(page).nth(3).hover()
    assert lit(page, "trace") == {4: "»"}
    scan.click()
    page.keyboard.press("Enter")
    expect(rows(page, "trace")).to_have_count(11)
    pane(page, "trace").get_by_role("button", name="fold", exact=True).click()
    expect(rows(page, "trace")).to_have_count(7)


def test_search_counts_marks_and_steps_through_all_panes(page: Page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("TANH")
    status = page.locator(".search-count")
    expect(status).to_have_text("3 hits")
    expect(page.locator(".row.hit")).to_have_count(2)
    jvp = pane(page, "trace").get_by_role("tab", name="jvp")
    expect(jvp.locator(".badge")).to_have_text("1")
    page.keyboard.press("Enter")
    expect(status).to_have_text("2 of 3")
    expect(rows(page, "trace").nth(3)).to_have_class(CHOSEN)
    page.keyboard.press("Enter")
    expect(rows(page, "jvp").nth(3)).to_have_class(CHOSEN)
    page.keyboard.press("Escape")
    expect(page.locator(".row.hit")).to_have_count(0)
    expect(status).to_have_text("")


def test_tabs_show_stages_with_their_changes_and_what_is_gone(page: Page) -> None:
    pane(page, "trace").get_by_role("tab", name="jvp").click()
    shown = pane(page, "jvp")
    changes = shown.locator(".row .change").all_text_contents()
    assert changes == ["", "", "", "", "+", "~", ""]
    shown.get_by_role("button", name="5 gone").click()
    expect(rows(page, "jvp")).to_have_count(12)
    gone = shown.locator(".row.change-gone")
    assert gone.locator(".change").all_text_contents() == ["\N{MINUS SIGN}"] * 5
    assert "scan" in gone.first.inner_text()
    changed = shown.locator(".row.change-changed")
    changed.click()
    expect(page.locator(".info-before")).to_contain_text("integer_pow[y=2] f")


def test_keys_choose_rows_and_change_stages(page: Page) -> None:
    rows(page, "trace").first.click()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    third = rows(page, "trace").nth(2)
    expect(third).to_have_class(CHOSEN)
    tree = pane(page, "trace").get_by_role("tree")
    active = tree.get_attribute("aria-activedescendant")
    assert active == third.get_attribute("id")
    page.keyboard.press("End")
    expect(rows(page, "trace").last).to_have_class(CHOSEN)
    page.keyboard.press("]")
    expect(pane(page, "jvp")).to_be_visible()
    page.keyboard.press("[")
    tab = pane(page, "trace").get_by_role("tab", name="trace")
    tab.focus()
    page.keyboard.press("ArrowRight")
    expect(pane(page, "jvp").get_by_role("tab", name="jvp")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".row.chosen")).to_have_count(0)


def test_arrows_fold_and_climb(page: Page) -> None:
    rows(page, "trace").nth(7).click()
    page.keyboard.press("ArrowLeft")
    expect(rows(page, "trace").nth(4)).to_have_class(CHOSEN)
    page.keyboard.press("ArrowLeft")
    expect(rows(page, "trace")).to_have_count(7)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(rows(page, "trace").nth(5)).to_have_class(CHOSEN)


def test_dark_and_light_follow_the_system_and_the_switch(opened: Opener) -> None:
    page = opened(small(), "dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(colour) == "rgb(21, 23, 26)"
    page.keyboard.press("d")
    assert page.evaluate(colour) == "rgb(246, 245, 242)"
    page.get_by_role("button", name="theme: light").click()
    assert page.evaluate(colour) == "rgb(21, 23, 26)"


def test_heat_is_shown_by_the_cost_chosen(page: Page) -> None:
    heat = page.get_by_role("combobox")
    assert heat.input_value() == "time"
    heat.select_option("flops")
    bars = pane(page, "trace").locator(".row .heat")
    expect(bars.nth(2)).to_have_text("512")
    width = "e => Number.parseFloat(e.style.getPropertyValue('--heat'))"
    assert bars.nth(2).evaluate(width) == 100
    assert bars.nth(3).evaluate(width) == 25
    heat.select_option("off")
    expect(bars.nth(2)).to_be_hidden()


def test_a_cost_known_of_a_whole_nested_program_counts_once(opened: Opener) -> None:
    stage = Rows("hlo", None, "hlo")
    fusion = stage.add("fusion", "%f:f32[4]", line=12, time=3e-6, flops=8)
    stage.add("add", "%a:f32[4]", inside=fusion, line=12, flops=3)
    stage.add("mul", "%m:f32[4]", inside=fusion, line=13, flops=5)
    page = opened(document([stage]))
    bar = rows(page, "hlo").first.locator(".heat")
    expect(bar).to_have_text(re.compile("3"))
    assert bar.evaluate("e => e.style.getPropertyValue('--heat')") == "100%"
    page.get_by_role("tab", name="costs by line").click()
    cells = page.locator(".cost-table tbody tr").all_inner_texts()
    assert [re.findall(r"(\d+) flop", cell) for cell in cells] == [["5"], ["3"]]
    assert [("3.00" in cell) for cell in cells] == [False, True]


def test_costs_by_line_sort_and_choose(page: Page) -> None:
    page.get_by_role("tab", name="costs by line").click()
    table = page.locator(".cost-table")
    places = table.locator("tbody .info-place")
    # Of the whole program: the last stage that knows them, which is jvp.
    assert places.all_text_contents() == [f"model.py:{n}" for n in (12, 14, 13)]
    amounts = table.locator("tbody tr").first.locator("td").all_text_contents()
    assert amounts[:2] == ["2", "576 flop"]
    bars = page.locator(".source .heat")
    page.get_by_role("combobox").select_option("flops")
    assert bars.all_text_contents()[2:5] == ["576", "", "8"]
    table.get_by_role("button", name="stage trace").click()
    assert places.all_text_contents() == [f"model.py:{n}" for n in (12, 13, 14)]
    amounts = table.locator("tbody tr").first.locator("td").all_text_contents()
    assert amounts[:2] == ["2", "544 flop"]
    assert bars.all_text_contents()[2:5] == ["544", "32", "4"]
    table.get_by_role("button", name="flops").click()
    assert places.all_text_contents() == [f"model.py:{n}" for n in (14, 13, 12)]
    head = table.locator("th[aria-sort=ascending]")
    expect(head).to_have_text("flops ↑")
    places.first.click()
    assert lit(page, "trace") == {9: "»"}


def test_memory_curve_has_a_peak_and_its_holders(page: Page) -> None:
    page.get_by_role("tab", name="memory").click()
    expect(page.locator("figcaption")).to_contain_text("peak 900 B")
    page.get_by_role("button", name="choose the row of the peak").click()
    expect(rows(page, "trace").nth(3)).to_have_class(CHOSEN)
    holders = page.locator(".holder")
    texts = holders.all_inner_texts()
    assert [text.split("B")[0].strip() for text in texts] == ["256", "128", "128"]
    holders.first.click()
    expect(rows(page, "trace").first).to_have_class(CHOSEN)
    box = page.locator(".curve").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] * 0.4, box["y"] + 20)
    expect(rows(page, "trace").nth(4)).to_have_class(CHOSEN)


def graph(page: Page, stage: str) -> Locator:
    pane(page, stage).get_by_role("button", name="graph").click()
    page.wait_for_selector(".graph[data-ready]")
    return pane(page, stage).locator(".graph")


def test_graph_has_nodes_edges_and_the_same_choice(page: Page) -> None:
    drawn = graph(page, "trace")
    expect(drawn.locator(".node")).to_have_count(11)
    edges = drawn.locator(".edge").evaluate_all(
        "all => all.map(e => e.dataset.from + ' ' + e.dataset.to)"
    )
    assert set(edges) == {
        *("r1 r2", "r0 r2", "r2 r3", "r3 r4", "r4 r5", "r4 r6", "r6 r7", "r7 r8"),
        *("r8 r9", "r9 r10"),
    }
    drawn.get_by_role("button", name=re.compile("= tanh")).click()
    chosen = drawn.locator(".node.chosen")
    expect(chosen).to_have_count(1)
    expect(drawn.locator(".node.is-operand .node-title")).to_have_text("dot_general")
    expect(drawn.locator(".edge.is-user")).to_have_count(1)
    assert lit_lines(page) == ["12"]
    assert lit(page, "hlo") == {1: "»"}


def test_graph_folds_zooms_and_follows_keys(page: Page) -> None:
    drawn = graph(page, "trace")
    drawn.locator(".group").click(position={"x": 6, "y": 6})
    expect(drawn.locator(".node")).to_have_count(7)
    expect(drawn.locator(".node.kind-folded")).to_contain_text("scan")
    edges = drawn.locator(".edge")
    expect(edges).to_have_count(6)
    before = float(drawn.get_attribute("data-scale") or 0)
    drawn.get_by_role("button", name="zoom in").click()
    assert float(drawn.get_attribute("data-scale") or 0) > before
    drawn.get_by_role("button", name=re.compile("= tanh")).click()
    drawn.locator(".canvas").focus()
    page.keyboard.press("ArrowUp")
    expect(drawn.locator(".node.chosen")).to_contain_text("dot_general")
    page.keyboard.press("-")
    page.keyboard.press("0")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(drawn.locator(".node.chosen")).to_contain_text("scan")
    page.keyboard.press("Enter")
    expect(drawn.locator(".node")).to_have_count(11)
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    expect(drawn.locator(".node.chosen .node-title")).to_have_text("a")
    drawn.get_by_role("button", name="open all").click()
    expect(drawn.locator(".node")).to_have_count(11)


def test_graph_of_many_rows_starts_with_scopes(opened: Opener) -> None:
    page = opened(large(2000, 1))
    drawn = graph(page, "stage0")
    titles = drawn.locator(".group-title").all_text_contents()
    assert titles == [f"▾ layer{number}" for number in range(10)]
    expect(drawn.locator(".node.kind-folded")).to_have_count(20)
    expect(drawn.locator(".edge")).to_have_count(19)
    drawn.locator(".node.kind-folded").first.click()
    expect(drawn.locator(".node")).to_have_count(119)


BOXES = """drawn => {
    const box = shape => {
        const outline = shape.querySelector('rect.group-box, rect.box');
        const { left, top, right, bottom } = outline.getBoundingClientRect();
        return [left, top, right, bottom];
    };
    const all = name => [...drawn.querySelectorAll(name)].map(box);
    return [all('.group'), all('.node')];
}"""
type Box = tuple[float, float, float, float]


def overlap(one: Box, other: Box) -> float:
    """The area that two boxes share."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, width) * max(0.0, height)


def area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def test_a_large_graph_is_placed_cluster_by_cluster(opened: Opener) -> None:
    page = opened(large(2000, 1))
    drawn = graph(page, "stage0")
    drawn.get_by_role("button", name="open all").click()
    expect(drawn.locator(".graph-said")).to_contain_text("nodes, ", timeout=60_000)
    expect(drawn.locator(".node")).to_have_count(614)
    drawn.get_by_role("button", name="fit").click()
    groups, nodes = cast("tuple[list[Box], list[Box]]", drawn.evaluate(BOXES))
    for group in groups:  # a cluster holds a node wholly or not at all
        shares = [overlap(group, node) / area(node) for node in nodes]
        assert all(share < 0.01 or share > 0.99 for share in shares)
        assert any(share > 0.99 for share in shares)
    for i, one in enumerate(groups):  # clusters are apart, or one inside the other
        for other in groups[:i]:
            shared = overlap(one, other) / min(area(one), area(other))
            assert shared < 0.01 or shared > 0.99
    for i, node in enumerate(nodes):
        assert all(overlap(node, other) < 0.01 * area(node) for other in nodes[:i])


def test_the_graph_shows_the_heat_that_is_chosen(page: Page) -> None:
    heat = "nodes => nodes.map(node => node.style.getPropertyValue('--heat'))"
    nodes = graph(page, "trace").locator(".node")
    choice = page.get_by_role("combobox")
    choice.select_option("flops")
    by_flops = nodes.evaluate_all(heat)
    choice.select_option("off")
    assert set(nodes.evaluate_all(heat)) == {"0%"}
    choice.select_option("flops")
    assert nodes.evaluate_all(heat) == by_flops
    assert len(set(by_flops)) > 2


def test_story_goes_row_by_row(opened: Opener) -> None:
    page = opened(small(story=True))
    text = page.locator(".story-text")
    expect(text).to_have_text("the product overflows")
    expect(rows(page, "trace").nth(2)).to_have_class(CHOSEN)
    page.locator(".report summary").click()
    expect(page.locator(".report")).to_contain_text("NaN first at model.py:12")
    badges = pane(page, "trace").locator(".row.path .link").all_text_contents()
    assert badges == ["1", "2"]
    page.keyboard.press("n")
    expect(text).to_have_text("its tanh is NaN")
    page.get_by_role("button", name="step 3").click()
    expect(rows(page, "jvp").nth(5)).to_have_class(CHOSEN)
    step = page.locator(".chip[aria-current=step]")
    expect(step).to_have_text("3")
    page.keyboard.press("p")
    expect(rows(page, "trace").nth(3)).to_have_class(CHOSEN)


def test_rows_of_one_step_are_shown_side_by_side(opened: Opener) -> None:
    told = {
        "kind": "rewrite",
        "title": "what the rules did",
        "rows": [[0, 3], [0, 2], [1, 3], [1, 5], [2, 1]],
        "text": ["tanh: unrolled"] * 3 + ["a fusion"] * 2,
    }
    page = opened({**small(), "story": told})
    expect(page.locator(".chip")).to_have_count(2)
    expect(pane(page, "trace")).to_be_visible()
    expect(rows(page, "jvp").nth(3)).to_have_class(CHOSEN)
    paths = pane(page, "trace").locator(".row.step .number").all_text_contents()
    assert paths == ["3", "4"]
    page.keyboard.press("n")
    expect(rows(page, "hlo").nth(1)).to_have_class(CHOSEN)
    expect(pane(page, "jvp")).to_be_visible()


def test_long_stages_hold_few_elements_and_scroll(opened: Opener) -> None:
    page = opened(large(10_000, 2))
    assert page.locator(".row").count() < 250
    rows(page, "stage0").first.click()
    page.keyboard.press("End")
    last = pane(page, "stage0").locator(".row.chosen")
    expect(last).to_contain_text("v9999:f32")
    expect(pane(page, "stage1").locator(".row.is-result")).to_contain_text("v9999")


def test_gutters_stay_in_sight_when_long_rows_are_scrolled(opened: Opener) -> None:
    page = opened(large(100, 1))
    place = """list => {
        const gutter = list.querySelector('.row .gutter');
        return gutter.getBoundingClientRect().x - list.getBoundingClientRect().x;
    }"""
    shown = pane(page, "stage0").locator(".list")
    page.add_style_tag(content=".list-body { width: 4000px }")
    before = shown.evaluate(place)
    shown.evaluate("list => { list.scrollLeft = 300 }")
    expect(shown).to_have_class(re.compile("sideways"))
    assert shown.evaluate(place) == before - 3  # all but the border of the row
    shown.evaluate("list => { list.scrollLeft = 0 }")
    expect(shown).not_to_have_class(re.compile("sideways"))
    assert shown.evaluate(place) == before


def test_rows_that_scroll_into_sight_are_lit(opened: Opener) -> None:
    page = opened(large(2000, 2))
    search = page.get_by_role("searchbox")
    search.fill("v1500")
    expect(page.locator(".search-count")).to_have_text("6 hits")
    expect(page.locator(".row.hit")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(pane(page, "stage0").locator(".row.chosen.hit")).to_contain_text("v1500:")
    expect(pane(page, "stage1").locator(".row.hit")).to_have_count(3)
    page.keyboard.press("Enter")
    expect(pane(page, "stage0").locator(".row.chosen.hit")).to_contain_text("v1501:")
    expect(page.locator(".row.chosen")).to_have_count(1)
    expect(page.locator(".row.is-self")).to_have_count(1)


def test_panes_open_close_and_resize(page: Page) -> None:
    page.get_by_role("button", name="+ pane").click()
    expect(page.locator(".stage-pane")).to_have_count(3)
    expect(pane(page, "jvp")).to_be_visible()
    pane(page, "jvp").get_by_role("button", name="close this pane").click()
    expect(page.locator(".stage-pane")).to_have_count(2)
    separator = page.get_by_role("separator", name="width").first
    before = int(separator.get_attribute("aria-valuenow") or 0)
    separator.focus()
    page.keyboard.press("ArrowRight")
    assert int(separator.get_attribute("aria-valuenow") or 0) > before


def test_print_shows_every_row(opened: Opener) -> None:
    page = opened(large(300, 1))
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(rows(page, "stage0")).to_have_count(300)
    expect(page.locator(".search")).to_be_hidden()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert rows(page, "stage0").count() < 100


def test_page_works_inside_the_frame_of_a_notebook(opened: Opener) -> None:
    page = opened(small())
    page.evaluate(
        """source => {
            const frame = document.createElement('iframe');
            frame.srcdoc = source;
            frame.style = 'position: fixed; inset: 0; width: 900px; height: 500px';
            document.body.append(frame);
        }""",
        render(small()),
    )
    frame = page.frame_locator("iframe")
    frame.get_by_role("button", name="graph").first.click()
    expect(frame.locator(".node")).to_have_count(11)


def test_controls_have_names_and_roles(page: Page) -> None:
    unnamed = page.locator(
        "button, [role=tree], [role=tab], input, select"
    ).evaluate_all(
        """all => all.filter(e => !(e.getAttribute('aria-label') ||
            e.textContent.trim())).map(e => e.outerHTML)"""
    )
    assert unnamed == []
    expect(page.get_by_role("main")).to_have_count(1)
    expect(page.get_by_role("heading", level=1)).to_have_text("verax" + "loss")
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("operand")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_programs_without_stages_costs_or_source_open(opened: Opener) -> None:
    bare = traced()
    bare.columns["file"] = [-1] * 11
    page = opened({**document([bare]), "files": []})
    expect(page.locator(".source-pane")).to_contain_text("not known")
    expect(rows(page, "trace")).to_have_count(11)
    empty = opened({"format": 1, "title": "nothing", "files": [], "stages": []})
    expect(empty.locator("h1")).to_contain_text("nothing")
