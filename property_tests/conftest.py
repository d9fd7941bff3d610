"""What every law shares: the Hypothesis profile that the environment names, and what
draws are made from.
"""

from property_tests.profiles import load_modules, load_profile

load_profile()
load_modules()
