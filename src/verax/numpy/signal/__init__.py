"""Floor 6: differences, polynomials, windows of a signal.

One idea: neighbours along a line are slices of one array.
"""
