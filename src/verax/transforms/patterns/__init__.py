"""Floor 3: rewrite rules: patterns of equations, and what replaces them.

A rule is two traced functions, what is looked for and what is put there.
"""
