"""Floor 6: what a function takes of memory, by line."""
