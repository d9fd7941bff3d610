"""Floor 4: compiled programs, ready to be called with arrays.

A program is an executable with what it needs besides arguments: constants, types of
results, places; `serialize` writes it to bytes.
"""
