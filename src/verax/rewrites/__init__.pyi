# What __init__.py shows, for type checkers: `python -m tests.stubs` writes this file.
# fmt: off
# isort: skip_file
from verax.rewrites.algebraic import algebra as algebra, stable as stable
from verax.rewrites.applying import apply as apply, cheaper as cheaper
from verax.rewrites.stepping import RewriteTrace as RewriteTrace, trace as trace
from verax.transforms.patterns.matching import Step as Step, RewriteLoop as RewriteLoop
from verax.transforms.patterns.rewrite_rules import (
    Operand as Operand, Rewrite as Rewrite, rewrite as rewrite,
    RewriteError as RewriteError,
)
__all__ = [
    "Operand", "Rewrite", "RewriteError", "RewriteLoop", "RewriteTrace", "Step",
    "algebra", "apply", "cheaper", "rewrite", "stable", "trace",
]
