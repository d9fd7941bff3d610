"""What doctests share with the laws: they draw the same calls each day.

pytest -p property_tests.doctests --doctest-modules src/verax
"""

from property_tests.profiles import load_profile

load_profile()
