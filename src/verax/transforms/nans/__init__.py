"""Floor 3: where a NaN or an infinity was made.

One idea: each value gets a flag, which is computed along with it.
"""
