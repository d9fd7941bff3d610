"""Floor 5: functions with derivatives or batching of the user's own.

One idea: `base` holds what all decorators share; one file for each decorator.
"""
