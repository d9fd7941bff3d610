"""Floor 2: primitives that make, reshape, cut and join arrays.

Elements move and keep their values, so that most rules are shared.
"""
