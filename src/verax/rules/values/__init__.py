"""Floor 1: what rules work on: arrays, sizes, symbolic zeros, the interpreter.

A rule sees values alike, whether they are arrays or tracers.
"""
