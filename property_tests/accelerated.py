"""The option `--accelerated`: tests as where the default device has memory of its own.

Eager operations are compiled programs there, and a CPU stands for the device. Tests
marked `on_host` are left out then::

    python -m pytest property_tests/test_rows.py --accelerated
"""

import pytest

from verax.api.config.config import compute_on_devices

OPTION = "--accelerated"


def add_option(parser: pytest.Parser) -> None:
    """Add the option, unless the other folder of tests has done so."""
    try:
        parser.addoption(
            OPTION,
            action="store_true",
            help="compute eager operations on the device, as with a GPU",
        )
    except ValueError as error:
        if "already added" not in str(error):
            raise


def configure(config: pytest.Config) -> None:
    """Before the tests are collected: their modules make arrays too."""
    if config.getoption(OPTION):
        compute_on_devices()


def skip_on_host(item: pytest.Item) -> None:
    """Leave out what is said of NumPy where a device computes."""
    marker = item.get_closest_marker("on_host")
    if marker is not None and item.config.getoption(OPTION):
        pytest.skip(f"not on a device: {marker.args[0]}")
