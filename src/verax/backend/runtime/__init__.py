"""Floor 4: jaxlib itself: clients, buffers, errors, measurements.

Each entry point of jaxlib is used in one small typed module.
"""
