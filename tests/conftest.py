"""What every example test shares: the Hypothesis profile, no programs on disk,
tracebacks with all frames, and Ctrl-C.
"""

from property_tests import accelerated
from property_tests.profiles import (
    collect_without_garbage,
    hear_interrupts,
    keep_no_programs,
    load_profile,
    show_all_frames,
)
from tests.efforts import few_objects as few_objects, little_effort as little_effort

load_profile()
hear_interrupts()
keep_no_programs()
show_all_frames()

pytest_addoption = accelerated.add_option
pytest_configure = accelerated.configure
pytest_runtest_setup = accelerated.skip_on_host
pytest_collection = collect_without_garbage
