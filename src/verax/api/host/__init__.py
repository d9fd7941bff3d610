"""Floor 5: functions of the host, called from programs.

One idea: `callbacks` may compute, `debug_print` only tells.
"""
