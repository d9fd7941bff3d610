"""What every example test shares: the Hypothesis profile, and no programs on disk."""

from property_tests.profiles import keep_no_programs, load_profile

load_profile()
keep_no_programs()
