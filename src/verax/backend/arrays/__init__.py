"""Floor 4: arrays with values, and the protocols that they speak.

`concrete` is the users' array, on the host or on devices; `protocols` are those of
NumPy, DLPack and Python.
"""
