"""Floor 4: calls of compiled programs that happen again and again.

One idea: what is known after the first call is not asked a second time.
"""
