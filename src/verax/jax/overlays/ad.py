"""`jax.interpreters.ad`: where derivatives of a program's own primitives are given."""

from collections.abc import Callable, Sequence
from typing import Any

from pyrsistent import pvector

import verax
import verax.lax as lax
import verax.numpy as vnp
from verax.api.tracing.apply import ENGINE
from verax.custom_derivatives import SymbolicZero as SymbolicZero
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import is_inexact
from verax.ir.jaxpr import Jaxpr, Var
from verax.jax.overlays.linear_util import WrappedFun
from verax.jax.primitives import (
    PRIMITIVE_JVPS as primitive_jvps,
    PRIMITIVE_TRANSPOSES as primitive_transposes,
    Primitive,
    Rules,
)
from verax.jax.stand_ins import stand_in
from verax.rules.rows.builder import Builder, Tracer, renumber
from verax.rules.rows.row import Linear, Zero as Zero
from verax.rules.values.array import Array

UndefinedPrimal = Linear

__all__ = [
    "JVPTrace",
    "JVPTracer",
    "UndefinedPrimal",
    "Zero",
    "add_jaxvals",
    "defjvp",
    "defjvp2",
    "deflinear",
    "deflinear2",
    "instantiate_zeros",
    "is_undefined_primal",
    "primitive_jvps",
    "primitive_transposes",
    "zeros_like_aval",
]

type Rule = Callable[..., Any]


def depends_on_inputs(x: Tracer) -> bool:
    """Whether derivatives by the inputs of its trace give `x` a tangent."""
    if not isinstance(x.builder, Builder) or not isinstance(x.atom, Var):
        return False
    inputs, eqns = tuple(x.builder.inputs), pvector(x.builder.eqns)
    caught = {inner for _, inner in x.builder.captured.values()}
    mask = [v not in caught and is_inexact(v.aval.dtype) for v in inputs]
    written = renumber(Jaxpr((), inputs, eqns, (x.atom,)), inputs)
    needed, kept = ENGINE.dce(written, (True,))
    moving = tuple([flag for flag, keep in zip(mask, kept, strict=True) if keep])
    return any(moving) and any(ENGINE.jvp(needed, moving)[1])


JVPTracer = stand_in(
    "JVPTracer",
    lambda x: isinstance(x, Tracer) and depends_on_inputs(x),
    "the tracers of jax.jvp",
)


JVPTrace = stand_in(
    "JVPTrace",
    lambda x: isinstance(x, Builder) and x.differentiates,
    "the traces of jax.jvp",
)
add_jaxvals_p = lax.add_p
primitive_linearizations = Rules[Rule]("ad.primitive_linearizations")


def get_primitive_transpose(primitive: Primitive) -> Rule:
    """The transpose rule that a program gave a primitive.

    Raises:
        NotImplementedError: it gave none.
    """
    try:
        return primitive_transposes[primitive]
    except KeyError as error:
        raise NotImplementedError(
            f"Transpose rule (for reverse-mode differentiation) for '{primitive}' not "
            "implemented"
        ) from error


def linearize(
    traceable: Callable[..., object] | WrappedFun,
    *primals: object,
    has_aux: bool = False,
) -> Any:
    """`jax.linearize` of a wrapped function."""
    call = traceable.call_wrapped if isinstance(traceable, WrappedFun) else traceable
    return verax.linearize(call, *primals, has_aux=has_aux)


def is_undefined_primal(x: object) -> bool:
    """Whether an operand of a transpose rule is one to which it is linear."""
    return type(x) is Linear


def zeros_like_aval(aval: ShapedArray) -> Array:
    """Zeros of a type."""
    return vnp.zeros(aval.shape, aval.dtype)


def instantiate_zeros(tangent: object) -> Any:
    """An array of zeros for a `Zero`, and anything else as it is."""
    return zeros_like_aval(tangent.aval) if type(tangent) is Zero else tangent


def add_jaxvals(x: object, y: object) -> Any:
    """The sum of two cotangents."""
    return lax.add(x, y)


def add_tangents(x: object, y: object) -> Any:
    """The sum of two tangents, each of which may be a `Zero`."""
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else add_jaxvals(x, y)


def defjvp(primitive: Primitive, *rules: Rule | None) -> None:
    """Derivatives of one result, by operand: `rule(tangent, *primals, **params)`."""
    defjvp2(
        primitive,
        *[None if rule is None else without_answer(rule) for rule in rules],
    )


def without_answer(rule: Rule) -> Rule:
    return lambda tangent, answer, *primals, **params: rule(tangent, *primals, **params)


def defjvp2(primitive: Primitive, *rules: Rule | None) -> None:
    """As `defjvp`, of rules that take the result after the tangent."""

    def jvp(
        primals: Sequence[object], tangents: Sequence[object], **params: object
    ) -> Any:
        answer = primitive.bind(*primals, **params)
        total = Zero(vnp.asarray(answer).aval.tangent())
        for rule, tangent in zip(rules, tangents, strict=True):
            if rule is not None and type(tangent) is not Zero:
                total = add_tangents(total, rule(tangent, answer, *primals, **params))
        return answer, total

    primitive_jvps[primitive] = jvp


def deflinear(primitive: Primitive, transpose: Rule) -> None:
    """A linear primitive: its transpose takes the cotangent."""

    def rule(ct: object, *operands: object, **params: object) -> Any:
        if type(ct) is Zero:
            return [None] * len(operands)
        return transpose(ct, **params)

    primitive_jvps[primitive] = linear_jvp(primitive)
    primitive_transposes[primitive] = rule


def deflinear2(primitive: Primitive, transpose: Rule) -> None:
    """A linear primitive: its transpose takes the cotangent and the operands."""

    def rule(ct: object, *operands: object, **params: object) -> Any:
        if type(ct) is Zero:
            return [None] * len(operands)
        return transpose(ct, *operands, **params)

    primitive_jvps[primitive] = linear_jvp(primitive)
    primitive_transposes[primitive] = rule


def linear_jvp(primitive: Primitive) -> Rule:
    def jvp(
        primals: Sequence[object], tangents: Sequence[object], **params: object
    ) -> Any:
        answer = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            answers = answer if primitive.multiple_results else [answer]
            zeros = [Zero(vnp.asarray(y).aval.tangent()) for y in answers]
            return answer, zeros if primitive.multiple_results else zeros[0]
        return answer, primitive.bind(*map(instantiate_zeros, tangents), **params)

    return jvp
