"""Floor 4: meshes of devices, and how arrays are divided over them.

A sharding is a value that says which device holds which part.
"""
