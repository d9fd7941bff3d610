"""Layouts of arrays in memory, under the names of `jax.experimental.layout` (floor 6).

A compiled function tells the formats of what it takes::

    verax.jit(f).lower(x).compile().input_formats

>>> Layout.row_major(2).major_to_minor
(0, 1)
"""

from verax.backend.arrays.concrete import Format, Layout

__all__ = ["Format", "Layout"]
