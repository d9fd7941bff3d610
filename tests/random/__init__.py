"""Tests of `verax.random`."""
