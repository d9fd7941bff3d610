"""Floor 6: `x[i]`, `x.at[i]`, `take` and `put`.

An index is parsed (`parse`), planned (`read_plans`, `write_plans`) and then one slice,
gather or scatter; `getitem_and_at` is the way in.
"""
