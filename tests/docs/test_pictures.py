"""The README shows a picture that the demo draws, and says what it shows."""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
MISREAD = re.compile(r"(\d+) of (\d+) test digits")


def test_the_picture_of_the_readme_shows_what_it_says() -> None:
    shown = MISREAD.search((ROOT / "docs" / "digits.svg").read_text())
    said = MISREAD.search((ROOT / "README.md").read_text())
    assert shown is not None
    assert said is not None
    assert shown.groups() == said.groups()


def test_the_demo_draws_the_same_bytes_each_time(tmp_path: Path) -> None:
    digits = pytest.importorskip(
        "docs.examples.digits", reason="the demo's packages come with the extra dev"
    )
    images, labels = np.zeros((4, 64), np.float32), np.arange(4, dtype=np.int32)
    data = digits.Digits(images, labels, images, labels)
    for name in ("first.svg", "again.svg"):
        digits.draw(tmp_path / name, [1.0, 0.1], data, np.array([0, 1, 2, 7]))
    first = (tmp_path / "first.svg").read_bytes()
    assert first == (tmp_path / "again.svg").read_bytes()
    assert b"1 of 4 test digits misread" in first
    assert b"3 read as 7" in first
