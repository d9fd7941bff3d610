"""Floor 2: reductions over moving windows, and their adjoints.

`geometry` counts the windows, `params` says what they are, and one file holds each row.
"""
