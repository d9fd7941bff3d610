"""Floor 2: primitives over named axes, and constraints on sharding.

One idea: under a named axis a collective is one more dimension to reduce or to move.
"""
