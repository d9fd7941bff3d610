"""Benchmarks of verax against jax, in alternating separate processes.

Run ``python -m tests.benchmarks``; ``docs/benchmarks.md`` says how to read the table.
Every program is written once as a function of a `Namespace`, which holds either
library, so both run the same Python code.
"""
