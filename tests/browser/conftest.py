"""The fixtures of `tabs.py`; where playwright is not installed, modules are skipped."""

from pathlib import Path
from typing import NoReturn

import pytest

try:
    from tests.browser.tabs import browser, opened, tabs
except ModuleNotFoundError:
    HAS_PLAYWRIGHT = False
else:
    HAS_PLAYWRIGHT = True
    __all__ = ["browser", "opened", "tabs"]

NEED_NO_BROWSER = frozenset(["test_render.py"])


class Skipped(pytest.Module):
    """A module that is not even imported."""

    def collect(self) -> NoReturn:
        reason = "playwright is not installed: it comes with the extra dev"
        raise pytest.skip.Exception(reason, allow_module_level=True)


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    """Skip what imports playwright, with a reason rather than a traceback."""
    if HAS_PLAYWRIGHT or module_path.name in NEED_NO_BROWSER:
        return None
    return Skipped.from_parent(parent, path=module_path)
