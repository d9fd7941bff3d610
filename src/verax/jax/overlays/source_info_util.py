"""`jax.extend.source_info_util`: files that error messages leave out."""


def register_exclusion(path: str) -> None:
    """Lines of verax's messages are those of the program; nothing is left out."""
