"""Floor 4: operations outside of any trace.

One idea: `interpreter` is what they meet first: NumPy computes what is small, compiled
programs the rest (`single_op`, `composites`), and `nan_checks` looks at results.
"""
