"""The page on jaxlib has the table of today."""

from tests.jaxlib_surface import PAGE, written


def test_the_table_is_that_of_the_sources() -> None:
    page = PAGE.read_text()
    assert page == written(page), "run `python -m tests.jaxlib_surface`"
    assert "| `jaxlib._jax.pytree` |" in page
