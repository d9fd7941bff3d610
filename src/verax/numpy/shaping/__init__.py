"""Floor 6: reshaping, joining, rearranging, and bits of another dtype.

One idea: elements move, and nothing is computed.
"""
