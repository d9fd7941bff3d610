"""The page of `python -m verax explore --serve` in a browser: it follows the script."""

import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.documents import large
from tests.explore.services import running
from verax.explorer.exploration import render
from verax.explorer.serving import Service

MAKER = """
import json, runpy, shutil, sys
script, (_, page, _, files) = sys.argv[1], sys.argv[2:]
open(files, "w").write(json.dumps([script]))
shutil.copy(runpy.run_path(script)["PAGE"], page)
"""


@pytest.mark.slow
def test_the_frame_is_loaded_again(browser: Browser, tmp_path: Path) -> None:
    page, script = tmp_path / "made.html", tmp_path / "script.py"
    page.write_text(render(large(20, 2)), "utf-8")
    script.write_text(f"PAGE = {str(page)!r}\n")
    command = [sys.executable, "-c", MAKER, str(script)]
    service = Service("train.py:loss", command, [str(script)])
    complaints: list[str] = []
    with running(service) as url:
        tab = browser.new_page()
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("console", lambda told: complaints.append(told.text))
        tab.goto(url)
        frame = tab.frame_locator("iframe")
        expect(frame.locator(".stage-pane").first).to_be_visible(timeout=20000)
        script.write_text("PAGE = '<script>' / 2\n")
        expect(frame.locator("pre")).to_contain_text("'<script>' / 2", timeout=20000)
        script.write_text(f"PAGE = {str(page)!r}  # right\n")
        expect(frame.locator(".stage-pane").first).to_be_visible(timeout=20000)
        expect(tab.locator("#news")).to_be_empty()
        assert tab.title() == "train.py:loss · verax"
        tab.close()
    assert complaints == []
