"""Floor 2: sizes that are symbols, such as the `b` of a batch of any size.

`expression` is their arithmetic, `bounds` decides what is true of them under the
constraints of a `scope`, `parse` reads them, and `dim_as_value` makes one an array.
"""
