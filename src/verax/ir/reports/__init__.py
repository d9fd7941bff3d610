"""Floor 0: whether a program is well formed, what it captured, how two programs differ.

Each report is a value, and its text is made when it is read.
"""
