"""Tests of `verax.rewrites`."""
