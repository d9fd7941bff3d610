"""Errors end with the address of their page, once the documentation has one."""

from collections.abc import Iterator

import pytest

import verax
import verax.numpy as vnp


@pytest.fixture(autouse=True)
def as_for_users() -> Iterator[None]:
    before = verax.config.read("traceback_filtering")
    verax.config.update("traceback_filtering", "quiet_remove_frames")
    yield
    verax.config.update("traceback_filtering", before)
    verax.config.update("docs_url", None)


def notes() -> list[str]:
    """The notes of an error, raised through two of our functions."""
    with pytest.raises(verax.errors.TracerBoolConversionError) as caught:
        verax.jit(verax.vmap(lambda x: x if x > 0 else -x))(vnp.ones(2))
    return caught.value.__notes__


def test_there_is_none_by_default() -> None:
    assert not [note for note in notes() if "http" in note]


@pytest.mark.parametrize(
    "url", ["https://docs.example/1.0", "https://docs.example/1.0/"]
)
def test_the_address_is_said_once(url: str) -> None:
    verax.config.update("docs_url", url)
    page = "https://docs.example/1.0/errors/#tracerboolconversionerror"
    assert notes().count(page) == 1


def test_subclasses_have_the_page_of_their_class() -> None:
    verax.config.update("docs_url", "https://docs.example")
    with pytest.raises(TypeError) as caught:
        vnp.sin("x")  # type: ignore[arg-type]  # on purpose
    assert "https://docs.example/errors/#notanarray" in caught.value.__notes__
    with pytest.raises(TypeError) as other:
        vnp.reshape(vnp.ones(3), 2.5)
    assert not [n for n in getattr(other.value, "__notes__", ()) if "http" in n]
