"""Primitives as classes: an implementation, and rules as methods (floor 6).

An instance is one operation on values of fixed types. Its `expand` says what it means;
reverse mode asks `vjp_fwd` and `vjp_bwd_retval`, forward mode `jvp`, or `lin` and
`linearized`, and `vmap` works without a rule. One class may have rules for both modes,
which `custom_jvp` and `custom_vjp` cannot::

    class Cube(HiPrim):
        def __init__(self, aval):
            self.in_avals, self.out_aval, self.params = (aval,), aval, {}
            super().__init__()

        def expand(self, x):
            return x * x * x

        def vjp_fwd(self, nzs_in, x):
            return self(x), x

        def vjp_bwd_retval(self, x, ct):
            return (3 * x * x * ct,)

    grad(lambda x: Cube(typeof(x))(x))(2.0)     # 12.0

A rule applies at higher orders of differentiation, too, where it computes its output by
calling `self`. Cotangents and tangents that are zero for sure are a `Zero`.
"""

from verax.api.trees.hitypes import HiPspec, HiType, MappingSpec, register_hitype
from verax.experimental.hijax.primitives import (
    AxisData,
    HiPrim,
    VJPHiPrimitive,
    jvp_from_lin,
    linearize_from_jvp,
    vjp_from_jvp,
    vjp_from_lin,
)
from verax.experimental.hijax.sides import (
    GradAccum,
    NullAccum,
    ValAccum,
    instantiate_zeros,
)
from verax.ir.avals import ShapedArray
from verax.rules.rows.row import Zero

__all__ = [
    "AxisData",
    "GradAccum",
    "HiPrim",
    "HiPspec",
    "HiType",
    "MappingSpec",
    "NullAccum",
    "ShapedArray",
    "VJPHiPrimitive",
    "ValAccum",
    "Zero",
    "instantiate_zeros",
    "jvp_from_lin",
    "linearize_from_jvp",
    "register_hitype",
    "vjp_from_jvp",
    "vjp_from_lin",
]
