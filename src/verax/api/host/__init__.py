"""Floor 5: functions of the host, called from programs.

`callbacks` may return values; `debug_print` only shows them.
"""
