"""Floor 5: what a function takes of memory, and functions that take less."""
