"""Floor 5: the configuration, and caches that can be cleared.

An option has a value for the process, and may have another in a thread or a block.
"""
