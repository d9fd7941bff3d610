"""Rewrite rules for programs: write your own, apply them, or take the shipped sets.

One idea: a rule is two functions of the same variables, and applying rules is a
transformation like any other::

    @rewrite(lambda x: vnp.log(1 + x))
    def log_of_one_plus(x):
        return vnp.log1p(x)

    verax.jit(apply([log_of_one_plus, *stable()])(f))
"""

from verax.rewrites.algebraic import algebra
from verax.rewrites.applying import apply
from verax.rewrites.cheap import cheaper
from verax.rewrites.stabilising import stable
from verax.transforms.rewrite_rules import Operand, Rewrite, RewriteError, rewrite
from verax.transforms.rewriting import RewriteLoop

__all__ = [
    "Operand",
    "Rewrite",
    "RewriteError",
    "RewriteLoop",
    "algebra",
    "apply",
    "cheaper",
    "rewrite",
    "stable",
]
