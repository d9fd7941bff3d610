"""Floor 5: a jitted function step by step: traced, lowered, compiled, serialised.

Each stage is a value that shows what it holds and makes the next one.
"""
