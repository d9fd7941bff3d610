"""Floor 6: functions applied along axes, the methods of ufuncs, padding.

The function is the user's, so it is mapped and not rewritten.
"""
