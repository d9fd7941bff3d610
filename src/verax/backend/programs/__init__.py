"""Floor 4: compiled programs, ready to be called with arrays.

One idea: a program is an executable with what it needs beside arguments: constants,
types of results, places; `serialize` writes it to bytes.
"""
