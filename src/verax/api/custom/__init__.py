"""Floor 5: functions with the user's own derivatives or batching.

`base` holds what all decorators share; each decorator has a file.
"""
