"""Floor 4: calls of compiled programs that happen again and again.

What is known after the first call is not worked out again.
"""
