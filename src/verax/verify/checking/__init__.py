"""Floor 6: laws, tried on the cases of a row, a function or a rewrite.

`search` looks for a case that breaks a law and shrinks it; `report` shows it.
"""
