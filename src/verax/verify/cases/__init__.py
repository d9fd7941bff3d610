"""Floor 6: cases: a program and values to try it on, and how closely results agree.

A case prints as text that makes it again.
"""
