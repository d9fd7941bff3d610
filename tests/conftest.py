"""What every example test shares: the Hypothesis profile, and no programs on disk."""

from property_tests import accelerated
from property_tests.profiles import keep_no_programs, load_profile

load_profile()
keep_no_programs()

pytest_addoption = accelerated.add_option
pytest_configure = accelerated.configure
pytest_runtest_setup = accelerated.skip_on_host
