"""Floor 2: special functions: gamma, beta, Bessel and error functions.

One idea: one file for each family of functions; `series` sums what they share.
"""
