"""Floor 3: two programs run side by side, and where their values part.

Equations of the two are aligned, both are run, and what is aligned is measured.
"""
