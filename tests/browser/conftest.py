"""A headless browser for tests that look at pages; without one they are skipped."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, Route, sync_playwright

from verax.explorer.page import render

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

type Scheme = Literal["light", "dark"]
type Opener = Callable[..., Page]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser of the system, without a window."""
    found = [path for path in map(shutil.which, BROWSERS) if path]
    if not found:
        pytest.skip(f"no browser on this machine: none of {', '.join(BROWSERS)}")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=found[0], args=["--no-sandbox"]
        )
        yield launched
        launched.close()


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opener]:
    """Opens a document; its page may neither fail nor ask for anything."""
    pages: list[Page] = []
    complaints: list[str] = []

    def refuse(route: Route) -> None:
        complaints.append(f"asked for {route.request.url}")
        route.abort()

    def open_page(document: Mapping[str, object], scheme: Scheme = "light") -> Page:
        place = tmp_path / f"page{len(pages)}.html"
        place.write_text(render(document), encoding="utf-8")
        page = browser.new_page(
            viewport={"width": 1400, "height": 800}, color_scheme=scheme
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text))
        page.route(lambda url: not url.startswith(("blob:", place.as_uri())), refuse)
        page.set_default_timeout(5000)
        page.goto(place.as_uri())
        page.wait_for_selector("html[data-ready]")
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert complaints == []
