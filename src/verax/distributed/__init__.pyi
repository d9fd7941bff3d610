# What __init__.py shows, for type checkers: `python -m tests.stubs` writes this file.
# fmt: off
# isort: skip_file
from verax.api.distributed.initialize import (
    initialize as initialize, is_initialized as is_initialized, shutdown as shutdown,
)
from verax.distributed.launch import run as run
from verax.distributed.pipelines import (
    pipeline as pipeline, pipeline_value_and_grad as pipeline_value_and_grad,
)
from verax.distributed.training import train as train
__all__ = [
    "initialize", "is_initialized", "pipeline", "pipeline_value_and_grad", "run",
    "shutdown", "train",
]
