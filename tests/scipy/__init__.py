"""Tests of `verax.scipy`."""
