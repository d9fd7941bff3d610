"""Floor 3: programs that return what failed in them: checks as values.

`automatic` has the table of checks, `writer` the walk, `bodies` the control flow.
"""
