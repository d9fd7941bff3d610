"""Floor 5: a jitted function step by step: traced, lowered, compiled, serialised.

One idea: each stage is a value that shows what it holds and makes the next one.
"""
