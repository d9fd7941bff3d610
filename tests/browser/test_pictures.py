"""The pictures of the explorer in the docs: all there, and small."""

from tests.browser.pictures import PICTURES, SHOTS


def test_every_picture_is_there_and_small() -> None:
    actual = {path.stem: path for path in PICTURES.glob("explorer-*.png")}
    assert set(actual) == {f"explorer-{name}" for name in SHOTS}
    for path in actual.values():
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < 150_000
