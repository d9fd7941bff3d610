"""Floor 2: decompositions of stacks of matrices, and triangular systems.

LAPACK computes and the rules differentiate by the defining equations, for which
`algebra` has products, triangles and adjoints.
"""
