# The types of ml_dtypes, whose own classes of limits say nothing about their arguments.
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

bcomplex32: type[np.generic]
bfloat16: type[np.generic]
complex32: type[np.generic]
float4_e2m1fn: type[np.generic]
float6_e2m3fn: type[np.generic]
float6_e3m2fn: type[np.generic]
float8_e3m4: type[np.generic]
float8_e4m3: type[np.generic]
float8_e4m3b11fnuz: type[np.generic]
float8_e4m3fn: type[np.generic]
float8_e4m3fnuz: type[np.generic]
float8_e5m2: type[np.generic]
float8_e5m2fnuz: type[np.generic]
float8_e8m0fnu: type[np.generic]
int1: type[np.generic]
int2: type[np.generic]
int4: type[np.generic]
uint1: type[np.generic]
uint2: type[np.generic]
uint4: type[np.generic]

class finfo(np.finfo[np.floating[Any]]):
    def __new__(cls, dtype: DTypeLike) -> Self: ...

class iinfo:
    kind: str
    bits: int
    min: int
    max: int
    dtype: np.dtype[np.generic]

    def __init__(self, int_type: DTypeLike) -> None: ...
