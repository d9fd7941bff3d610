"""What every law shares: the Hypothesis profile that the environment names."""

from property_tests.profiles import load_profile

load_profile()
