"""Floor 0: memos, what they must not keep, and the locks of what a process has once.

Nothing here knows a program.
"""
