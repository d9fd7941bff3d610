"""Floor 5: programs for other processes, machines and versions.

One idea: `export` makes and calls them, `format` says how they lie in a file.
"""
