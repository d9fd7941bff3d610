"""How hard Hypothesis tries: the profiles dev, quick, ci and nightly.

The environment variable HYPOTHESIS_PROFILE names the one to use; without it, dev.

    HYPOTHESIS_PROFILE=nightly python -m pytest property_tests
"""

import gc
import importlib
import os
import pkgutil
import signal
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, Phase, settings

import verax

VARIABLE = "HYPOTHESIS_PROFILE"
KEEPING = "VERAX_ENABLE_COMPILATION_CACHE"

# A first call traces and compiles, so one example's time says nothing about the next.
_SHARED = settings(
    deadline=None,
    print_blob=True,
    # The phase that explains takes as long as all others of a failure.
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.target, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow],
)

PROFILES = {
    "dev": settings(_SHARED, max_examples=20),
    # Derandomized: the same commit gives the same verdict, whoever asks. A row has six
    # cases with `ci`, which find 98 of 100 planted mistakes, and three with `quick`.
    "quick": settings(_SHARED, max_examples=8, derandomize=True),
    "ci": settings(_SHARED, max_examples=16, derandomize=True),
    "nightly": settings(_SHARED, max_examples=1000),
}


def load_profile() -> None:
    """Make the profile that the environment names the current one."""
    name = os.environ.get(VARIABLE, "dev")
    if name not in PROFILES:
        known = ", ".join(PROFILES)
        raise ValueError(f"{VARIABLE} is {name!r}; it must be one of: {known}")
    settings.register_profile(name, PROFILES[name])
    settings.load_profile(name)


def load_modules() -> None:
    """Load the modules that verax loads when they are needed.

    Hypothesis draws constants from the modules that are loaded. Which these are would
    depend on the tests that the same process ran before, and so would the verdict.
    """
    for module in pkgutil.walk_packages(verax.__path__, "verax."):
        # The mode that stands in for jax changes the process, and no law speaks of it.
        if not module.name.startswith("verax.jax") and "__main__" not in module.name:
            importlib.import_module(module.name)


def keep_no_programs() -> None:
    """Compile everything, in this process and in those that tests start.

    What is compiled and what is read would depend on the runs before, and the files
    would be in the user's home. `VERAX_ENABLE_COMPILATION_CACHE=1` with a folder in
    `VERAX_COMPILATION_CACHE_DIR` runs the tests on programs from disk, where a few that
    count compilations fail.
    """
    if KEEPING not in os.environ:
        os.environ[KEEPING] = "0"
        verax.config.update("enable_compilation_cache", False)


def show_all_frames() -> None:
    """Have tracebacks show verax, which is what is looked at when a test fails.

    So do processes that tests start: in doctests, no note stands at a message.
    """
    os.environ.setdefault("VERAX_TRACEBACK_FILTERING", "off")
    verax.config.update("traceback_filtering", "off")


def hear_interrupts() -> None:
    """Let SIGINT arrive in this process and in those that tests start.

    A shell starts jobs in the background with that signal ignored, and what they start
    inherits it, so that tests of Ctrl-C would wait for ever.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def collect_without_garbage() -> Generator[None, object, object]:
    """Keep Python's collector of garbage away while tests are collected.

    What is made then, some 18,000 items, lives to the end. Looking through it again and
    again took a third of the time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
