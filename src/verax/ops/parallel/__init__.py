"""Floor 2: primitives over named axes, and constraints on sharding.

Under a named axis a collective is one more dimension to reduce or to move.
"""
