"""Floor 6: reshaping, joining, rearranging, and bits of another dtype.

Elements move, and nothing is computed.
"""
