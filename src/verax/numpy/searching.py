"""Floor 6: the places and the elements that a condition picks.

One idea: how many there are depends on values, so under a trace the caller says
`size`, and what is missing is filled::

    nonzero(x), nonzero(x, size=3, fill_value=-1), compress(mask, x, size=2), where(mask)
"""

from typing import Any

import numpy as np

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import is_bool
from verax.numpy.arguments import (
    ArrayLike,
    as_array,
    broadcast_together,
    canonical_axis,
    promote,
)
from verax.numpy.creation import asarray
from verax.numpy.index_parsing import NonConcreteBooleanIndexError
from verax.numpy.indexing import at
from verax.numpy.joining import stack
from verax.numpy.shapes import moveaxis, ravel, reshape, shape_of_all
from verax.ops.choose import select
from verax.ops.create import full, iota
from verax.ops.shape import broadcast_in_dim
from verax.rules.array import Array
from verax.rules.builder import AbstractValueError, Tracer
