"""Floor 5: the configuration, and caches that can be cleared.

One idea: an option is a value of the thread, of a block or of the process.
"""
