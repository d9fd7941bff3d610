# What __init__.py shows, for type checkers: `python -m tests.stubs` writes this file.
# fmt: off
# isort: skip_file
from verax.transforms.engine.engine import (
    STANDARD as STANDARD, StandardEngine as StandardEngine,
)
from verax.transforms.pipeline import COMPILE as COMPILE, Pass as Pass
from verax.transforms.public import (
    check as check, cse as cse, dce as dce, evaluate as evaluate, fold as fold,
    hoist as hoist, inline as inline, jvp as jvp, outline as outline,
    transpose as transpose, vmap as vmap,
)
__all__ = [
    "COMPILE", "STANDARD", "Pass", "StandardEngine", "check", "cse", "dce", "evaluate",
    "fold", "hoist", "inline", "jvp", "outline", "transpose", "vmap",
]
