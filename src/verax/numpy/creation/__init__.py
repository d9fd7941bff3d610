"""Floor 6: new arrays, dtypes and constants, files.

One idea: what is made of numbers alone is made at once, whatever is traced.
"""
