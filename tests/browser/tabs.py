"""A headless browser for tests that look at pages; without one they are skipped.

`conftest.py` hands the fixtures on, if playwright is installed.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, Route, sync_playwright

from verax.explorer.exploration import render

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

type Scheme = Literal["light", "dark"]
type Opener = Callable[..., Page]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser of the system, without a window."""
    actual = [path for path in map(shutil.which, BROWSERS) if path]
    if not actual:
        pytest.skip(f"no browser on this machine: none of {', '.join(BROWSERS)}")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=actual[0], args=["--no-sandbox"]
        )
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def tabs(browser: Browser) -> "Tabs":
    return Tabs(browser)


class Tabs:
    """Pages that tests use one after the other: opening one takes most of a test."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.free: dict[Scheme, list[Page]] = {"light": [], "dark": []}
        self.complaints: list[str] = []

    def page(self, scheme: Scheme) -> Page:
        """A page in light or dark that may ask for nothing but files made by tests."""
        if self.free[scheme]:
            return self.free[scheme].pop()
        page = self.browser.new_page(
            viewport={"width": 1400, "height": 800}, color_scheme=scheme
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.route(lambda url: not url.startswith(("blob:", "file:")), self.refuse)
        page.on("request", lambda request: self.seen(request.url))
        page.set_default_timeout(5000)
        return page

    def refuse(self, route: Route) -> None:
        route.abort()

    def seen(self, url: str) -> None:
        if not (url.startswith("blob:") or url.endswith("/explored.html")):
            self.complaints.append(f"asked for {url}")


@pytest.fixture
def opened(tabs: Tabs, tmp_path: Path) -> Iterator[Opener]:
    """Opens a document; its page may neither fail nor ask for anything."""
    used: list[tuple[Scheme, Page]] = []
    tabs.complaints.clear()

    def open_page(document: Mapping[str, object], scheme: Scheme = "light") -> Page:
        folder = tmp_path / str(len(used))
        folder.mkdir()
        place = folder / "explored.html"
        place.write_text(render(document), encoding="utf-8")
        page = tabs.page(scheme)
        page.goto(place.as_uri())
        page.wait_for_selector("html[data-ready]")
        used.append((scheme, page))
        return page

    yield open_page
    for scheme, page in used:
        page.emulate_media(media=None)
        page.evaluate("localStorage.clear()")
        page.mouse.move(0, 0)
        tabs.free[scheme].append(page)
    assert tabs.complaints == []
