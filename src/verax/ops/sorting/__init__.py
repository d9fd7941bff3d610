"""Floor 2: sorting, and the largest elements.

A sort of several operands by the first is a permutation of the others.
"""
