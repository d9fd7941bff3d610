"""How fast compiled programs run on a CPU, beside jax and torch.

Run ``python -m tests.benchmarks.compiled SUITE``; ``docs/benchmarks.md`` says how. One
idea: a suite is a table of programs by name, each written once for a library that is
given to it, and each library runs it in a process of its own.
"""
