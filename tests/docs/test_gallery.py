"""The examples of the gallery improve, and their pictures are XML."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import verax.numpy as vnp
from property_tests.levels import NIGHTLY

pytest.importorskip("rich", reason="the examples' packages come with the extra dev")

from docs.examples import (
    data_parallel_picture,
    neural_ode,
    random_walks,
    transformer,
)
from docs.examples.drawing import Panel, ticks, write_svg

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SVG = "{http://www.w3.org/2000/svg}"


def strings(picture: Path) -> list[str]:
    """What stands in a picture; it must be XML."""
    root = ET.parse(picture).getroot()
    assert root.tag == f"{SVG}svg"
    assert root.findtext(f"{SVG}title")
    return [element.text or "" for element in root.iter(f"{SVG}text")]


@pytest.mark.slow
@pytest.mark.usefixtures("little_effort")
def test_the_transformer_learns(tmp_path: Path) -> None:
    picture = tmp_path / "new" / "transformer.svg"
    run = transformer.main(["--steps", "20", "--out", str(picture)])
    assert len(run.losses) == 20
    assert run.losses[-1] < 0.8 * run.losses[0]
    assert run.unseen[-1, 1] < 0.8 * run.unseen[0, 1]
    np.testing.assert_allclose(run.attention.sum(1), 1, rtol=1e-5)
    assert not np.triu(run.attention, 1).any()
    assert len(run.letters) == transformer.LENGTH
    assert ((run.chances > 0) & (run.chances <= 1)).all()
    shown = "".join(strings(picture))
    assert "unseen text" in shown
    assert transformer.load().decode(run.letters[: transformer.COLUMNS]) in shown


@NIGHTLY
def test_the_neural_ode_learns_in_less_memory(tmp_path: Path) -> None:
    picture = tmp_path / "neural_ode.svg"
    run = neural_ode.main(["--steps", "50", "--out", str(picture)])
    assert run.losses[-1] < 0.5 * run.losses[0]
    plain, fewer = (np.array(run.memory[plan]) for plan in neural_ode.PLANS)
    assert (fewer < plain / 20).all()
    assert "checkpoints='sqrt'" in strings(picture)


@NIGHTLY
def test_the_random_walks_agree(tmp_path: Path) -> None:
    picture = tmp_path / "random_walks.svg"
    runs = random_walks.main(["--steps", "1000", "--out", str(picture)])
    for run in runs.values():
        mean = run.settled.mean(0, dtype=np.float64)
        assert (run.r_hat > 0.99).all()
        assert (run.r_hat < 1.15).all()
        assert (run.size > 1000).all()
        assert (run.size < len(run.settled)).all()
        assert (np.abs(mean - [3.08, 0.93, 1890.9]) < [0.05, 0.03, 0.5]).all()
    assert any("12 of 512" in string for string in strings(picture))


def r_hat(draws: NDArray[Any]) -> float:
    return float(random_walks.r_hat(vnp.asarray(draws)))


def share(draws: NDArray[Any]) -> float:
    """Of the draws, as independent ones."""
    return float(random_walks.effective_size(vnp.asarray(draws))) / draws.size


def test_r_hat_and_effective_sizes_of_known_draws() -> None:
    generator = np.random.default_rng(0)
    noise = generator.normal(size=(64, 400)).astype(np.float32)
    assert abs(r_hat(noise) - 1) < 0.01
    assert r_hat(noise + np.arange(64)[:, None]) > 5
    assert abs(share(noise) - 1) < 0.1
    slow = np.zeros_like(noise)
    for i in range(1, 400):  # of autocorrelation 0.8: worth (1 - 0.8) / (1 + 0.8)
        slow[:, i] = 0.8 * slow[:, i - 1] + noise[:, i]
    assert abs(share(slow[:, 50:]) - 1 / 9) < 0.03


def test_ticks_are_round() -> None:
    assert ticks((0, 10), log=False) == [0, 2, 4, 6, 8, 10]
    assert ticks((-0.31, 0.29), log=False) == [-0.3, -0.2, -0.1, 0, 0.1, 0.2]
    assert ticks((1851, 1962), log=False) == [1860, 1880, 1900, 1920, 1940, 1960]
    assert ticks((0.9, 11), log=True) == [1, 2, 5, 10]
    assert ticks((1, 1e4), log=True) == [1, 10, 100, 1000, 10000]


def test_numbers_become_pixels(tmp_path: Path) -> None:
    panel = Panel((10, 20, 100, 50), (0, 4), (1, 100), log=True)
    assert panel.line([0, 2], [1, 10], "s0").startswith(
        '<path d="M10.0 70.0L60.0 45.0"'
    )
    cells = panel.cells(np.array([[0.0, 1.0], [0.5, 0.0]]), "f1")
    assert 'd="M60.0 20.0h50.00v25.00h-50.00Z" class="f1" fill-opacity="1"' in cells
    assert 'd="M10.0 45.0h50.00v25.00h-50.00Z" class="f1" fill-opacity="0.5"' in cells
    picture = tmp_path / "picture.svg"
    parts = panel.axes("a & b", "<c>", "title"), panel.dots([1], [10], "f0", 2)
    write_svg(picture, (200, 100), "A & B", *parts)
    first = picture.read_bytes()
    write_svg(picture, (200, 100), "A & B", *parts)
    assert picture.read_bytes() == first
    assert {"a & b", "<c>", "title", "100"} <= set(strings(picture))


def test_the_gallery_quotes_its_examples_and_shows_their_pictures() -> None:
    page = (DOCS / "gallery.md").read_text()
    sections = page.split("\n## ")[1:]
    assert len(sections) == 5
    for section in sections:
        (source,) = re.findall(r"\(examples/(\w+\.py)\)", section)
        (snippet,) = re.findall(r"^```python\n(.*?)^```$", section, re.M | re.S)
        (command,) = re.findall(r"^```sh\n(.*?)^```$", section, re.M | re.S)
        (picture,) = re.findall(r"^!\[.{20,}\]\(([\w/]+\.svg)\)$", section, re.M)
        assert snippet in (DOCS / "examples" / source).read_text()
        assert source.removesuffix(".py") in command or command == "make demo\n"
        assert ET.parse(DOCS / picture).getroot().tag == f"{SVG}svg"


def test_the_pictures_are_those_of_the_makefile() -> None:
    (names,) = re.findall(r"^EXAMPLES := (.+)$", (ROOT / "Makefile").read_text(), re.M)
    drawn = {f"{name}.svg" for name in [*names.split(), "data_parallel"]}
    assert {path.name for path in (DOCS / "pictures").glob("*.svg")} == drawn
    for path in (DOCS / "pictures").glob("*.svg"):
        assert strings(path)
        assert "prefers-color-scheme: dark" in path.read_text()


@pytest.mark.slow
def test_the_picture_of_the_divided_batch(tmp_path: Path) -> None:
    picture = tmp_path / "data_parallel.svg"
    losses = data_parallel_picture.main(["--out", str(picture)])
    assert losses[-1] < 0.5 * losses[0]
    assert {"device 0", "process 0"} <= set(strings(picture))
