"""Floor 2: special functions: gamma, beta, Bessel and error functions.

One file for each family of functions; `series` sums what they share.
"""
