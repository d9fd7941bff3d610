"""Floor 4: jaxlib itself: clients, buffers, errors, measurements.

One idea: each entry point of jaxlib is used in one small typed module.
"""
