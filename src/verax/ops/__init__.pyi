# What __init__.py shows, for type checkers: `python -m tests.stubs` writes this file.
# fmt: off
# isort: skip_file
from verax.ops.indexing.scatter import (
    segment_max as segment_max, segment_min as segment_min,
    segment_prod as segment_prod, segment_sum as segment_sum,
)
__all__ = [
    "segment_max", "segment_min", "segment_prod", "segment_sum",
]
