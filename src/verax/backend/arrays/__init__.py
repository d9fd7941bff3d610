"""Floor 4: arrays with values, and the protocols that they speak.

One idea: `concrete` is the array of users, on the host or on devices; `protocols` are
those of NumPy, DLPack and Python.
"""
