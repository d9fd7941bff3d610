"""Pictures of the explorer for docs/explorer.md, taken in a headless browser.

Programs, each looked at as a reader would::

    python -m tests.browser.pictures            # docs/pictures/explorer-*.png
    python -m tests.browser.pictures mlp        # one of them
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Final, Literal

from attrs import frozen
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

import verax
import verax.numpy as vnp
from tests.browser.tabs import BROWSERS
from verax import random

PICTURES: Final = Path(__file__).parents[2] / "docs" / "pictures"
PROGRAMS: Final = "programs.py"
"""Its source is named as it is here, so that no picture shows where this is."""
COLOURS: Final = 128
"""So many are enough for text, and halve the size of a file."""


@frozen
class Shot:
    """A program, and what is done on its page before the picture is taken."""

    explored: Callable[[], Any]
    act: Callable[[Page], None]
    scheme: Literal["light", "dark"] = "light"
    scale: float = 1.4


def program(name: str) -> Callable[..., Any]:
    """A function of the programs, whose file is known by its name alone."""
    names: dict[str, Any] = {}
    text = Path(PROGRAMS).read_text(encoding="utf-8")
    exec(compile(text, PROGRAMS, "exec"), names)
    actual: Callable[..., Any] = names[name]
    return actual


def explore_mlp() -> Any:
    layers = [(vnp.ones((64, 64)) / 64, vnp.zeros(64)) for _ in range(3)]
    x = vnp.ones((32, 64))
    return verax.explore(verax.grad(program("mlp")))(layers, x, x)


def explore_transformer() -> Any:
    size = 64
    block = {name: vnp.ones((size, size)) for name in "qkvo"}
    block |= {"up": vnp.ones((size, 4 * size)), "down": vnp.ones((4 * size, size))}
    params = {"embed": vnp.ones((256, size)), "blocks": [block] * 12}
    tokens = vnp.zeros((4, 33), "int32")
    return verax.explore(verax.value_and_grad(program("transformer")))(params, tokens)


def explore_opening() -> Any:
    size = 64
    keys = iter(random.split(random.key(0), 25))

    def normal(*shape: int) -> Any:
        return random.normal(next(keys), shape) / shape[0] ** 0.5

    sizes = {name: (size, size) for name in "qkvo"}
    sizes |= {"up": (size, 4 * size), "down": (4 * size, size)}
    blocks = [{n: normal(*shape) for n, shape in sizes.items()} for _ in range(4)]
    params = {"embed": normal(256, size), "blocks": blocks}
    tokens = random.randint(random.key(1), (4, 33), 0, 256)
    gradient = verax.value_and_grad(program("transformer"))
    return verax.explore(gradient, watch=True)(params, tokens)


def explore_values() -> Any:
    w = {"h": vnp.ones((32, 32)) / 24, "x": vnp.ones((16, 32)) / 16}
    xs = random.normal(random.key(0), (50, 16))
    return verax.explore(verax.grad(program("rnn")), watch=True)(w, xs)


def explore_rnn() -> Any:
    w = {"h": vnp.ones((32, 32)) / 32, "x": vnp.ones((16, 32)) / 16}
    return verax.explore(verax.grad(program("rnn")))(w, vnp.ones((50, 16)))


def explore_nan() -> Any:
    params = {"w": vnp.ones((4, 8)), "b": vnp.ones(8), "scale": vnp.ones(8)}
    gradient = verax.grad(program("root_loss"))
    actual = verax.debug.find_nans(gradient)(params, vnp.zeros((2, 4)))
    assert actual is not None
    return actual.explore()


def choose(page: Page, pane: int, text: str) -> None:
    """Choose the first row of a pane that holds a text."""
    rows = page.locator(".stage-pane").nth(pane).locator(".row", has_text=text)
    rows.first.locator(".number").click()


def look_at_opening(page: Page) -> None:
    """Nothing is done: this is what a reader sees first."""


def look_at_values(page: Page) -> None:
    page.get_by_role("combobox").select_option("range")
    page.evaluate("document.documentElement.style.setProperty('--drawer', '360px')")
    page.locator(".source .row", has_text="h = vnp.tanh").click()


def look_at_mlp(page: Page) -> None:
    page.locator(".stage-pane").nth(1).get_by_role("tab", name="dce").click()
    choose(page, 0, "= tanh")


def look_at_transformer(page: Page) -> None:
    pane = page.locator(".stage-pane").first
    pane.get_by_role("button", name="graph").click()
    page.wait_for_selector(".graph[data-ready]")
    page.get_by_role("tab", name="join").last.click()
    page.keyboard.press("3")
    page.get_by_role("button", name="choose the row of the peak").click()


def look_at_rnn(page: Page) -> None:
    page.locator(".stage-pane").nth(1).get_by_role("tab", name="dce").click()
    page.locator(".stage-pane").first.get_by_role("button", name="graph").click()
    page.wait_for_selector(".graph[data-ready]")
    page.get_by_role("button", name="= tanh").first.click()
    page.keyboard.press("2")


def look_at_nan(page: Page) -> None:
    page.keyboard.press("n")


SHOTS: Final[Mapping[str, Shot]] = {
    "opening": Shot(explore_opening, look_at_opening, scale=1.2),
    "values": Shot(explore_values, look_at_values),
    "mlp": Shot(explore_mlp, look_at_mlp),
    "transformer": Shot(explore_transformer, look_at_transformer, "dark"),
    "rnn": Shot(explore_rnn, look_at_rnn),
    "nan": Shot(explore_nan, look_at_nan),
}


def taken(browser: Browser, shot: Shot, folder: Path) -> bytes:
    """The picture of a page, as a small PNG."""
    place = folder / "page.html"
    shot.explored().save(place)
    page = browser.new_page(
        viewport={"width": 1320, "height": 800},
        color_scheme=shot.scheme,
        device_scale_factor=shot.scale,
    )
    page.goto(place.as_uri())
    page.wait_for_selector("html[data-ready]")
    shot.act(page)
    page.mouse.move(2, 2)
    page.wait_for_timeout(500)
    whole = Image.open(BytesIO(page.screenshot()))
    page.close()
    small = BytesIO()
    whole.convert("RGB").quantize(COLOURS).save(small, "PNG", optimize=True)
    return small.getvalue()


def main(names: list[str]) -> None:
    actual = next(filter(None, map(shutil.which, BROWSERS)), None)
    if actual is None:
        raise SystemExit(f"no browser: none of {', '.join(BROWSERS)}")
    PICTURES.mkdir(exist_ok=True)
    os.chdir(Path(__file__).parent)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(
            executable_path=actual, args=["--no-sandbox"]
        )
        for name in names or list(SHOTS):
            picture = taken(browser, SHOTS[name], Path(folder))
            (PICTURES / f"explorer-{name}.png").write_bytes(picture)
            print(f"explorer-{name}.png: {len(picture) // 1000} kB")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
