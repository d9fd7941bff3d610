"""Floor 6: differences, polynomials, windows of a signal.

Neighbours along a line are slices of one array.
"""
