"""Floor 5: functions and arrays on several devices.

`device_put` moves arrays; `shard_map` and `pmap` map functions.
"""
