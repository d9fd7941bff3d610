"""`jax.interpreters.mlir`: how a program's own primitives are lowered.

A lowering is a function of operations, made by `lower_fun`, a rule whose operations are
those of `emit_python_callback` and `ffi_lowering`, or one that builds MLIR by hand::

    mlir.register_lowering(p, lambda ctx, x, y: [stablehlo.AddOp(x, y).result])
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

import verax
from verax.api.host.callbacks import io_callback, pure_callback
from verax.api.host.ffi import FfiLayout, ffi_call
from verax.backend.lowering.hand_written import ir_type
from verax.ir.avals import ShapedArray
from verax.jax.primitives import (
    LOWERINGS,
    LowerFun,
    LoweringContext as LoweringRuleContext,
    Primitive,
)
from verax.rules.values.array import Array

__all__ = [
    "LoweringRuleContext",
    "aval_to_ir_type",
    "aval_to_ir_types",
    "dense_bool_array",
    "dense_int_array",
    "dtype_to_ir_type",
    "emit_python_callback",
    "ffi_lowering",
    "i32_attr",
    "i64_attr",
    "ir_constant",
    "lower_fun",
    "register_lowering",
]


def aval_to_ir_type(aval: ShapedArray) -> Any:
    """The type of MLIR for a type, within a lowering."""
    return ir_type(aval)


def aval_to_ir_types(aval: ShapedArray) -> tuple[object, ...]:
    """The types of MLIR for a type: one."""
    return (ir_type(aval),)


def dtype_to_ir_type(dtype: DTypeLike) -> Any:
    """The type of MLIR for the elements of a dtype."""
    return ir_type(ShapedArray((), np.dtype(dtype))).element_type


def ir_constant(value: object) -> Any:
    """A constant, in the function that is being built."""
    array = np.asarray(value)
    kind = ir_type(ShapedArray(array.shape, array.dtype))
    dense = import_module("jaxlib.mlir.ir").DenseElementsAttr
    words = np.packbits(array, bitorder="little") if array.dtype == bool else array
    attribute = dense.get(
        np.ascontiguousarray(words), type=kind.element_type, shape=array.shape
    )
    return import_module("jaxlib.mlir.dialects.stablehlo").ConstantOp(attribute).result


def dense_int_array(xs: Sequence[int]) -> Any:
    """An attribute of integers of 64 bits."""
    return import_module("jaxlib.mlir.ir").DenseI64ArrayAttr.get(list(xs))


def dense_bool_array(xs: Sequence[bool]) -> Any:
    """An attribute of booleans."""
    return import_module("jaxlib.mlir.ir").DenseBoolArrayAttr.get(list(xs))


def i64_attr(i: int) -> Any:
    """An attribute of one integer of 64 bits."""
    module = import_module("jaxlib.mlir.ir")
    return module.IntegerAttr.get(module.IntegerType.get_signless(64), i)


def i32_attr(i: int) -> Any:
    """An attribute of one integer of 32 bits."""
    module = import_module("jaxlib.mlir.ir")
    return module.IntegerAttr.get(module.IntegerType.get_signless(32), i)


def __getattr__(name: str) -> Any:
    if name == "ir":
        return import_module("jaxlib.mlir.ir")
    if name in ("Value", "Type"):
        return getattr(import_module("jaxlib.mlir.ir"), name)
    raise AttributeError(name)


def lower_fun(fun: Callable[..., object], multiple_results: bool = True) -> LowerFun:
    """A lowering that writes what `fun` writes."""
    return LowerFun(fun, multiple_results)


def register_lowering(
    primitive: Primitive,
    rule: Callable[..., object],
    platform: str | None = None,
    inline: bool = True,
    cacheable: bool = True,
) -> Callable[..., Any]:
    """Say how a primitive is lowered, on one platform or on all."""
    rules = LOWERINGS.get(primitive, {})
    LOWERINGS[primitive] = rules | {platform: rule}
    return rule


def emit_python_callback(
    ctx: LoweringRuleContext,
    callback: Callable[..., object],
    token: object | None,
    operands: Sequence[object],
    operand_avals: Sequence[ShapedArray],
    result_avals: Sequence[ShapedArray],
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: object | None = None,
) -> tuple[Sequence[object], object | None, None]:
    """Call a Python function while the program runs: results, token, nothing to keep.

    Effects are ordered by the program and not by the token, which is returned as it is.
    """
    structs = tuple([verax.ShapeDtypeStruct(a.shape, a.dtype) for a in result_avals])
    call = io_callback if has_side_effect else pure_callback
    return call(callback, structs, *operands), token, None


def major_first(layout: FfiLayout) -> FfiLayout:
    """The order of dimensions from the slowest on, of one from the fastest on."""
    return tuple(reversed(layout)) if isinstance(layout, Sequence) else layout


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Sequence[FfiLayout] | None = None,
    result_layouts: Sequence[FfiLayout] | None = None,
    backend_config: object = None,
    skip_ffi_layout_processing: bool = False,
    has_side_effect: bool = False,
    operand_output_aliases: dict[int, int] | None = None,
    **lowering_args: object,
) -> Callable[..., Any]:
    """A lowering that calls a target of XLA: `rule(ctx, *operands, **attributes)`.

    Layouts name dimensions from the fastest on, as XLA does.

    Raises:
        NotImplementedError: an argument of MLIR's custom call is given.
    """
    if lowering_args:
        raise NotImplementedError(
            f"ffi_lowering does not take {', '.join(lowering_args)}; use "
            "jax.ffi.ffi_call in a function for mlir.lower_fun"
        )
    config = backend_config if isinstance(backend_config, dict) else {}

    def rule(
        ctx: LoweringRuleContext, *operands: object, **attributes: object
    ) -> list[Array]:
        structs = [verax.ShapeDtypeStruct(a.shape, a.dtype) for a in ctx.avals_out]
        call = ffi_call(
            call_target_name,
            structs,
            has_side_effect=has_side_effect,
            input_layouts=layouts(operand_layouts),
            output_layouts=layouts(result_layouts),
            input_output_aliases=operand_output_aliases,
        )
        return list(call(*operands, **config, **attributes))

    return rule


def layouts(given: Sequence[FfiLayout] | None) -> list[FfiLayout] | None:
    return None if given is None else [major_first(layout) for layout in given]
