"""Floor 0: programs read from their text, and saved as JSON and bytes and loaded.

What is read back is the same program, to the last bit, or it is refused.
"""
