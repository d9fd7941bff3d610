"""Functions of elements in operations that a processor has.

XLA calls a function of the C library for each element where it knows no better; these
are sums, products and choices, which it makes one loop of. `verax.rules.rows.kernels`
says when they are used, and `docs/compiled-functions.md` how accurate and fast they
are.
"""
