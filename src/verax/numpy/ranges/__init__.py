"""Floor 6: numbers in steps, and grids of them.

One idea: an iota, multiplied and shifted.
"""
