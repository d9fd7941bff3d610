"""Params of operations by the names that JAX's primitives have for them.

Rules that a library registers for a primitive take its params by keyword, often without
`**`, so they get what JAX's primitive has and nothing else::

    jax_params(while_p, params)    # body_jaxpr, body_nconsts, cond_jaxpr, cond_nconsts
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from verax import Inline
from verax.ir.jaxpr import Params, Primitive
from verax.ir.text.printer import quiet_fields
from verax.jax.flattree import nones, pack
from verax.ops.calls.call import CallParams, jit_p
from verax.ops.control.scan import scan_p
from verax.ops.control.scan_params import ScanParams
from verax.ops.elementwise.rounding import RoundingMethod, RoundParams, round_p

COUNTS = ("num_consts", "num_carry", "linear")


def jit_params(p: CallParams) -> dict[str, Any]:
    """A call that is in a program is not one that was to be written out early."""
    return {"inline": Inline.AUTO}


def scan_params(p: ScanParams) -> dict[str, Any]:
    """Operands and results in groups, instead of counts."""
    avals = p.jaxpr.in_avals, p.jaxpr.out_avals
    inputs, outputs = p.parts(avals[0]), p.results(avals[1])
    return {
        "ft_in": pack([nones(len(group)) for group in inputs]),
        "ft_out": pack([nones(len(group)) for group in outputs]),
    }


def round_params(p: RoundParams) -> dict[str, Any]:
    """The method as a member of the enumeration."""
    return {"rounding_method": RoundingMethod[p.rounding_method]}


ELEMENTWISE = "cbrt cos exp exp2 expm1 log log1p logistic rsqrt sin sqrt tan tanh"
UNSET: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **dict.fromkeys(ELEMENTWISE.split(), ("accuracy",)),
        **dict.fromkeys(("broadcast_in_dim", "convert_element_type"), ("sharding",)),
        **dict.fromkeys(("conv_general_dilated", "dot_general"), ("out_sharding",)),
        **dict.fromkeys(
            ("reduce_max", "reduce_min", "reduce_prod", "reduce_sum"), ("out_sharding",)
        ),
        "iota": ("sharding",),
        "mul": ("out_dtype",),
        "reshape": ("dimensions", "sharding"),
    }
)
"""Params of JAX's primitives that verax's do not have: they are None."""
MORE: Mapping[Primitive, Callable[[Any], dict[str, object]]] = MappingProxyType(
    {jit_p: jit_params, round_p: round_params, scan_p: scan_params}
)
FEWER: Mapping[Primitive, tuple[str, ...]] = MappingProxyType({scan_p: COUNTS})


def jax_params(primitive: Primitive, params: Params) -> dict[str, Any]:
    """The params; what only verax has is left out where it is the default."""
    quiet, fewer = quiet_fields(type(params)), FEWER.get(primitive, ())
    shown = {
        name: value
        for name, value in params.items()
        if name not in fewer and not (name in quiet and value == quiet[name])
    }
    unset = dict.fromkeys(UNSET.get(primitive.name, ()))
    return {**unset, **shown, **(MORE[primitive](params) if primitive in MORE else {})}
