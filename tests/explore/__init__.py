"""Tests of what the pages of docs/ say: the FAQ, the differences, the examples."""
