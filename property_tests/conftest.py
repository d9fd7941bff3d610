"""What every law shares: the Hypothesis profile that the environment names, and what
draws are made from.
"""

from property_tests.profiles import keep_no_programs, load_modules, load_profile

load_profile()
keep_no_programs()
load_modules()
