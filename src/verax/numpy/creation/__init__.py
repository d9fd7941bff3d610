"""Floor 6: new arrays, dtypes and constants, files.

What is made of numbers alone is made at once, whatever is traced.
"""
