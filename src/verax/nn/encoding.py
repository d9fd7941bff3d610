"""Floor 6: what networks do around their layers: standardize, one-hot, attention.

One idea: a one-hot vector is a comparison with a counter, attention a softmax between
two contractions, and both are a handful of equations::

    one_hot(labels, 10)
    dot_product_attention(query, key, value, is_causal=True)
"""

import math
import operator
from typing import Literal, cast

import numpy as np

from verax.ir.avals import Shape
from verax.ir.dtypes import (
    DTypeLike,
    bool_,
    canonical,
    float32,
    int32,
)
from verax.ir.limits import finfo
from verax.nn.operand import inexact
from verax.nn.reductions import logsumexp, softmax
from verax.numpy.arguments import ArrayLike, Axis, as_array, canonical_axis, stretched
from verax.numpy.arithmetic import add, multiply, square, subtract
from verax.numpy.averages import mean
