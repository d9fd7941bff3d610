"""Floor 2: products that are summed over shared dimensions.

`dot_general` is the row, in `dot`; `precision` says how exactly it adds up.
"""
