"""Floor 5: pytrees as users see them: classes, mismatches, saved structures.

One idea: `verax.backend.pytrees` holds the registry, and these files its face.
"""
