"""Floor 4: operations outside of any trace.

They go first to `interpreter`: NumPy computes what is small, compiled programs the rest
(`single_op`, `composites`), and `nan_checks` checks results.
"""
