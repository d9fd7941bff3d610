"""How long pages take to open and to answer, measured in a headless browser.

One line for each: milliseconds until the page is ready, for lighting what belongs to a
row, for a search of all stages, and the size of the file::

    python -m tests.browser.opening             # 10,000 rows in each of 8 stages
    python -m tests.browser.opening page.html   # a page that `verax.explore` saved
"""

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.conftest import BROWSERS
from tests.browser.documents import large
from verax.explorer.page import render

READY = "performance.getEntriesByName('verax-ready')[0].startTime"
HOVER = """() => {
    const rows = [...document.querySelectorAll('.stage-pane .row')].slice(0, 30);
    const start = performance.now();
    for (const row of rows) {
        row.dispatchEvent(new PointerEvent('pointermove', { bubbles: true }));
        document.body.offsetHeight;
    }
    return (performance.now() - start) / rows.length;
}"""
SEARCH = """() => {
    const input = document.querySelector('.search-input');
    input.value = 'mul';
    const start = performance.now();
    input.dispatchEvent(new Event('input'));
    document.body.offsetHeight;
    return performance.now() - start;
}"""


def main(names: list[str]) -> None:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise SystemExit(f"no browser: none of {', '.join(BROWSERS)}")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "large.html"
        if not names:
            made.write_text(render(large(10_000, 8)), encoding="utf-8")
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox"]
        )
        for path in [Path(name) for name in names] or [made]:
            page = browser.new_page()
            page.goto(path.absolute().as_uri())
            page.wait_for_selector("html[data-ready]")
            ready, hover, search = map(page.evaluate, (READY, HOVER, SEARCH))
            print(
                f"{path.name}: ready {ready:.0f} ms, hover {hover:.1f} ms, "
                f"search {search:.0f} ms, {path.stat().st_size / 1e6:.2f} MB"
            )
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
