"""Floor 5: making and ending references; discharge as users call it.

A reference belongs to the trace in which it is made, or to none::

    ref = new_ref(jnp.zeros(3))
    ref[0] = 1.0
    freeze(ref)
"""

from collections.abc import Sequence
from typing import Any

from attrs import evolve, frozen

from verax.api.tracing.apply import current_builder
from verax.api.tracing.reference_checks import check_closed_over
from verax.api.tracing.trace import Traced
from verax.api.tracing.wrapping import Describe
from verax.ir.avals import is_reference
from verax.ir.effects import HOLD, RefEffect
from verax.ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, Var, array_literal
from verax.ir.records import ReprMixin
from verax.ir.walk import hoist as raised
from verax.ops.hoisting import as_operands
from verax.ops.structure.reshard import retyped
from verax.rules.rows.builder import Builder
from verax.rules.rows.references import (
    FREEZE,
    NEW,
    BoundRef,
    ConcreteRef,
    TracedRef,
    freeze_p,
    new_ref_p,
)
from verax.rules.values.array import Array, Operators
from verax.rules.values.reference import Ref
from verax.rules.values.state import user_source
from verax.transforms.public import AnyJaxpr, hoist, opened
from verax.transforms.references import discharged, references


def new_ref(
    init_val: Any,
    *,
    memory_space: object = None,
    kind: str | None = None,
    pin: bool = False,
) -> Ref:
    """A mutable array that holds `init_val`, of its shape and dtype, to begin with.

    In a trace it lives as long as the trace, and cannot be returned. Outside of traces
    a `kind` that begins with "no_grad" lets functions that are differentiated write
    what depends on their arguments, which is a constant from then on. `memory_space`
    and `pin` change nothing.

    Raises:
        TypeError: `init_val` is a reference, or not an array.

    >>> import verax, verax.numpy as vnp
    >>> ref = verax.new_ref(vnp.zeros(3))
    >>> ref[1] += 2.0
    >>> ref
    Ref([0., 2., 0.], dtype=float32)
    """
    if isinstance(init_val, Ref):
        raise TypeError(
            f"new_ref takes an array, not {init_val!r}; there are no references to "
            "references: pass what it holds (ref[...])"
        )
    value = init_val
    if not isinstance(init_val, Array):
        value = Operators.namespace.array(init_val)
    if value.weak_type:
        value = value.astype(value.dtype)
    builder = current_builder()
    if builder is None:
        return ConcreteRef(value, user_source(1), kind)
    builder.refs = True
    made: Any = new_ref_p.call(NEW, value)
    return TracedRef(builder, made.atom, user_source(1))


def empty_ref(ty: Any, memory_space: object = None, pin: bool = False) -> Ref:
    """A mutable array of the shape and dtype of `ty`, which holds zeros.

    >>> import verax
    >>> verax.empty_ref(verax.ShapeDtypeStruct((2,), "int32"))
    Ref([0, 0], dtype=int32)
    """
    ref = new_ref(Operators.namespace.zeros(ty.shape, ty.dtype))
    if isinstance(ref, TracedRef):
        ref.made = user_source(1)
    return ref


def freeze(ref: Ref) -> Array:
    """Returns what a reference holds; it cannot be used any more.

    Raises:
        ValueError: it was made elsewhere than in the function that is being traced, or
            was frozen before.

    >>> import verax
    >>> verax.freeze(verax.new_ref(2.0)).item()
    2.0
    """
    if not isinstance(ref, BoundRef):
        raise TypeError(f"freeze takes a reference that new_ref made, not {ref!r}")
    ref.check_alive()
    builder = current_builder()
    foreign = isinstance(ref, TracedRef) and (
        ref.made is None or ref.builder is not builder
    )
    if foreign or (isinstance(ref, ConcreteRef) and builder is not None):
        raise ValueError(
            f"a reference to {ref.inner_aval} can be frozen or freed only by the "
            "function that made it; read it instead: ref[...]"
        )
    out = freeze_p.call(FREEZE, ref)
    ref.ended = user_source(1)
    return out


def free_ref(ref: Ref) -> None:
    """End a reference, which cannot be used any more.

    Raises:
        ValueError: see `freeze`.
    """
    freeze(ref)


def discharge(program: AnyJaxpr) -> ClosedJaxpr:
    """A program with references as one that takes and gives what they hold.

    Inputs are those of `program`, with arrays instead of references; outputs are those
    of `program`, then what each reference among its inputs holds at the end, also if
    nothing has written to it. References that the program closes over become inputs,
    in front of the others.

    Raises:
        ValueError: a reference is used after it was frozen.
        NotImplementedError: a primitive that takes a reference cannot pass it on.

    >>> import verax
    >>> def double(ref):
    ...     ref[...] = ref[...] * 2.0
    >>> print(discharge(verax.make_jaxpr(double)(verax.new_ref(1.0))))
    { lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }
    """
    jaxpr = with_constants(opened(program))
    result = discharged(jaxpr)
    given = dict(
        zip(result.written, result.jaxpr.outvars[len(jaxpr.outvars) :], strict=True)
    )
    finals = [
        given.get(i, result.jaxpr.invars[i])
        for i, flag in enumerate(references(jaxpr))
        if flag
    ]
    outs = (*result.jaxpr.outvars[: len(jaxpr.outvars)], *finals)
    pure = evolve(result.jaxpr, outvars=outs)
    return hoist(pure)


def with_constants(jaxpr: Jaxpr) -> Jaxpr:
    """The program with the references that it closes over as its first inputs."""
    closed = raised(jaxpr, as_operands)
    inner = closed.jaxpr
    if not any(references_in(inner.constvars)):
        return jaxpr
    builder = Builder("discharge")
    atoms: list[Atom] = [
        builder.input_atom(var.aval) if flag else array_literal(value, var.aval)
        for var, value, flag in zip(
            inner.constvars, closed.consts, references_in(inner.constvars), strict=True
        )
    ]
    atoms += builder.input_atoms(inner.in_avals)
    whole = Jaxpr((), (*inner.constvars, *inner.invars), inner.eqns, inner.outvars)
    return builder.close(builder.inline(whole, atoms))[0]


def references_in(variables: Sequence[Var]) -> list[bool]:
    """The variables that are references."""
    return [is_reference(var) for var in variables]


@frozen(eq=False, repr=False)
class OnValues(ReprMixin):
    """A traced function as a program on what its references hold.

    Outputs of `jaxpr`, on `captured` and `leaves`, are those of the function, then what
    the operands of numbers `written` hold at the end.
    """

    jaxpr: Jaxpr
    captured: tuple[Any, ...]
    leaves: tuple[Any, ...]
    written: tuple[int, ...] = ()
    refs: tuple[BoundRef, ...] = ()

    def split(self, outs: Sequence[object]) -> tuple[Sequence[Any], Sequence[Any]]:
        """The outputs of the function, and what the references hold at the end."""
        count = len(outs) - len(self.written)
        return outs[:count], outs[count:]

    def write(self, finals: Sequence[object]) -> None:
        """Have the references hold what they hold at the end."""
        for ref, final in zip(self.refs, finals, strict=True):
            value, due = ref.filled(final), ref.inner_aval
            ref.write(retyped(value, due.explicit))


def held(jaxpr: Jaxpr) -> frozenset[int | None]:
    """The inputs that rules for derivatives may touch later."""
    touched = [e for e in jaxpr.effects if isinstance(e, RefEffect)]
    return frozenset([e.index for e in touched if e.name == HOLD])


def bound(x: object) -> BoundRef:
    """An operand to which a program writes: a reference that holds a value."""
    assert isinstance(x, BoundRef)
    return x


def on_values(
    traced: Traced, leaves: Sequence[object], describe: Describe, keep: bool = False
) -> OnValues:
    """The function of a trace, with arrays instead of references.

    With `keep`, those that rules of the user's for derivatives may touch stay.

    Raises:
        ValueError: a reference is passed and closed over, too.
    """
    if not traced.refs:
        return OnValues(traced.jaxpr, traced.captured, tuple(leaves))
    result = traced.opened
    check_closed_over(result, leaves, describe)
    args = [*result.captured, *leaves]
    kept = held(result.jaxpr) if keep else frozenset()
    marks = references(result.jaxpr)
    chosen = tuple([flag and i not in kept for i, flag in enumerate(marks)])
    pure = discharged(result.jaxpr, chosen)
    values = [
        x.read() if flag and isinstance(x, Ref) else x
        for x, flag in zip(args, chosen, strict=True)
    ]
    count = len(result.captured)
    return OnValues(
        pure.jaxpr,
        tuple(values[:count]),
        tuple(values[count:]),
        pure.written,
        tuple([bound(args[i]) for i in pure.written]),
    )
