"""Tests of `verax.nn`."""
