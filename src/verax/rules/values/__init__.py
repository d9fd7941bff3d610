"""Floor 1: what rules work on: arrays, sizes, symbolic zeros, the interpreter.

One idea: a rule sees values alike, whether they are arrays or tracers.
"""
