"""Tests of the example libraries."""
