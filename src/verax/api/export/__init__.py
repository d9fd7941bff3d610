"""Floor 5: programs for other processes, machines and versions.

`export` makes and calls them; `format` says what their files look like.
"""
