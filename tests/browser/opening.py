"""How long pages take to open and to answer, measured in a headless browser.

One line for each: milliseconds until the page is ready, for lighting what belongs to a
row, for a search of all stages, and of processor time for a frame while rows scroll, by
three rows a frame and by a pane; and the size of the file::

    python -m tests.browser.opening             # 10,000 rows in each of 8 stages
    python -m tests.browser.opening page.html   # a page that `verax.explore` saved
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.documents import large
from tests.browser.tabs import BROWSERS
from verax.explorer.exploration import render

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
SEARCH = """async () => {
    await new Promise(done => setTimeout(done, 500));  // what is prepared when idle
    const input = document.querySelector('.search-input');
    const times = [];
    for (const word of ['mul', 'add', 'f32', 'sin', 'dot']) {
        const start = performance.now();
        input.value = word;
        input.dispatchEvent(new Event('input'));
        document.body.offsetHeight;
        times.push(performance.now() - start);
    }
    return times.sort((a, b) => a - b)[2];
}"""
SCROLL = """async ([step, frames]) => {
    const list = document.querySelector('.stage-pane .list');
    const frame = () => new Promise(requestAnimationFrame);
    list.scrollTop = 0;
    for (let i = 0; i < frames; i++) {
        list.scrollTop += step;
        await frame();
    }
}"""
FRAMES = 100
STEPS = (60, 600)


def frame_time(browser: Browser, page: Page, step: int) -> float:
    """Milliseconds of its main thread that the page works for a frame of scrolling."""
    browser.start_tracing(page=page, categories=["toplevel"])
    page.evaluate(SCROLL, [step, FRAMES])
    events = json.loads(browser.stop_tracing())["traceEvents"]
    named = [e for e in events if e.get("name") == "thread_name"]
    main = {(e["pid"], e["tid"]) for e in named if "RendererMain" in str(e["args"])}
    spent = [
        e["tdur"]
        for e in events
        if e.get("name") == "ThreadControllerImpl::RunTask"
        and (e["pid"], e["tid"]) in main
        and "tdur" in e
    ]
    return float(sum(spent)) / FRAMES / 1000


def main(names: list[str]) -> None:
    actual = next(filter(None, map(shutil.which, BROWSERS)), None)
    if actual is None:
        raise SystemExit(f"no browser: none of {', '.join(BROWSERS)}")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "large.html"
        if not names:
            made.write_text(render(large(10_000, 8)), encoding="utf-8")
        browser = playwright.chromium.launch(
            executable_path=actual, args=["--no-sandbox"]
        )
        for path in [Path(name) for name in names] or [made]:
            page = browser.new_page(viewport={"width": 1400, "height": 800})
            page.goto(path.absolute().as_uri())
            page.wait_for_selector("html[data-ready]")
            ready, hover, search = map(page.evaluate, (READY, HOVER, SEARCH))
            frames = [frame_time(browser, page, step) for step in STEPS]
            print(
                f"{path.name}: ready {ready:.0f} ms, hover {hover:.1f} ms, "
                f"search {search:.0f} ms, frames {frames[0]:.1f} and "
                f"{frames[1]:.1f} ms, {path.stat().st_size / 1e6:.2f} MB"
            )
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
