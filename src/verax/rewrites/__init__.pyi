# What __init__.py shows, for type checkers: `python -m tests.stubs` writes this file.
# fmt: off
# isort: skip_file
from verax.rewrites.algebraic import algebra as algebra
from verax.rewrites.applying import apply as apply, cheaper as cheaper
from verax.rewrites.scaling import (
    DynamicScale as DynamicScale, dynamic_scale as dynamic_scale,
    loss_scale as loss_scale,
)
from verax.rewrites.narrowing import narrow as narrow, narrow_report as narrow_report
from verax.rewrites.stabilising import (
    Repair as Repair, Stabilised as Stabilised, stabilise as stabilise,
    stable as stable,
)
from verax.rewrites.stepping import RewriteTrace as RewriteTrace, trace as trace
from verax.transforms.narrowing.report import (
    NarrowLine as NarrowLine, NarrowReport as NarrowReport,
)
from verax.transforms.patterns.matching import Step as Step, RewriteLoop as RewriteLoop
from verax.transforms.patterns.rewrite_rules import (
    Operand as Operand, Rewrite as Rewrite, rewrite as rewrite,
    RewriteError as RewriteError,
)
__all__ = [
    "DynamicScale", "NarrowLine", "NarrowReport", "Operand", "Repair", "Rewrite",
    "RewriteError", "RewriteLoop", "RewriteTrace", "Stabilised", "Step", "algebra",
    "apply", "cheaper", "dynamic_scale", "loss_scale", "narrow", "narrow_report",
    "rewrite", "stabilise", "stable", "trace",
]
