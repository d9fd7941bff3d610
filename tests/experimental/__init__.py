"""Tests of `verax.experimental`."""
