"""Floor 5: pytrees as users see them: classes, mismatches, saved structures.

`verax.backend.pytrees` holds the registry; these files are its public side.
"""
