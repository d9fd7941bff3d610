"""Tests of what survives: faults, interrupts, forks, and what is freed after use."""
