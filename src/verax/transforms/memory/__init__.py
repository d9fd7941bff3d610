"""Floor 3: how much memory a program takes, and programs that take less.

A plan is a program again: what it drops after the first use is computed again, behind a
barrier, where it is next read.
"""
