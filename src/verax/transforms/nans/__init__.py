"""Floor 3: where a NaN or an infinity was made.

Each value gets a flag, which is computed along with it.
"""
