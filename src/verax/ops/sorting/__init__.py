"""Floor 2: sorting, and the largest elements.

One idea: a sort of several operands by the first is a permutation of the others.
"""
