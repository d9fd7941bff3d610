"""How far results are from the exact ones, in units in the last place.

``python -m tests.accuracy`` measures the table of `docs/accuracy.md`.
"""
