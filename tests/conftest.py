"""What every example test shares: the Hypothesis profile, no programs on disk, and
tracebacks with all frames.
"""

from property_tests import accelerated
from property_tests.profiles import keep_no_programs, load_profile, show_all_frames

load_profile()
keep_no_programs()
show_all_frames()

pytest_addoption = accelerated.add_option
pytest_configure = accelerated.configure
pytest_runtest_setup = accelerated.skip_on_host
