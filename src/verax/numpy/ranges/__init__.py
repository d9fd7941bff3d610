"""Floor 6: numbers in steps, and grids of them.

An iota, multiplied and shifted.
"""
