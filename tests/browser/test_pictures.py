"""The pictures of the explorer in the docs: all there, and small."""

from tests.browser.pictures import PICTURES, SHOTS


def test_every_picture_is_there_and_small() -> None:
    found = {path.stem: path for path in PICTURES.glob("explorer-*.png")}
    assert set(found) == {f"explorer-{name}" for name in SHOTS}
    for path in found.values():
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < 150_000
