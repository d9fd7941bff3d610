"""Floor 3: references as values: the state that a program reads and writes.

`discharge` is the one way from a program with references to one without; the rules say
how state goes through calls, loops and choices.
"""
