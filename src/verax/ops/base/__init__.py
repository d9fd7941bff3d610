"""Floor 2: what many rows share: XLA's meaning of operations, and asked-for accuracy.

Where NumPy and XLA disagree, the reference does as XLA::

    xla_semantics.divide(7, 0)    # -1, as XLA computes it
"""
