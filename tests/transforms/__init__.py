"""Tests of the transformations as users call them."""
