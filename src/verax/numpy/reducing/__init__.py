"""Floor 6: sums, extremes, means, quantiles, along any axes.

A reduction has axes, a mask and an initial value, which one function reads.
"""
