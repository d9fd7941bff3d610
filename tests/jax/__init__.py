"""Tests of `verax.jax`: verax under the name of jax."""
