"""What every example test shares: the Hypothesis profile, and no programs on disk.

`--accelerated` runs the tests as where the default device has memory of its own: eager
operations are compiled programs there, and a CPU stands for the device.
"""

import pytest

from property_tests.profiles import keep_no_programs, load_profile
from verax.api.config.config import compute_on_devices

load_profile()
keep_no_programs()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option of these tests."""
    parser.addoption(
        "--accelerated",
        action="store_true",
        help="compute eager operations on the device, as with a GPU",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Before the tests are collected: their modules make arrays too."""
    if config.getoption("accelerated"):
        compute_on_devices()
