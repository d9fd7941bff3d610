"""Floor 1: rows that hold programs, and columns that follow from others.

A column that is missing is derived from those that are there (`derived`).
"""
