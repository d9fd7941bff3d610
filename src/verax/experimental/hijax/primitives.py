"""`HiPrim`, and the rows of its operations: a call, its derivative, and the transpose.

One idea: a row asks the class for its rules where a transformation needs them; what
`vmap` makes of an operation is one, too, whose rules are mapped::

    call_p.bind(HiParams(operation), *arrays)
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, NoReturn

import numpy as np
from attrs import evolve, field, frozen

import verax.numpy as vnp
from verax.api.trees.hitypes import (
    HiPspec as HiPspec,
    HiType as HiType,
    MappingSpec as MappingSpec,
    register_hitype as register_hitype,
)
from verax.api.trees.pytrees import KeptLeaves, prefix_leaves
from verax.api.vmap import vmap
from verax.backend.pytrees import PyTreeDef
from verax.experimental.hijax.sides import (
    Mask,
    backward,
    expanded,
    forward,
    instantiate_zeros,
    is_nothing,
    is_tracer,
    matching,
    pushed,
    side,
    varying_as,
)
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Params
from verax.ir.records import ReprMixin
from verax.ops.elementwise.convert import convert
from verax.rules.rows.infer import for_unknowns
from verax.rules.rows.row import (
    Axis,
    Engine,
    Known,
    NDArray,
    Row,
    Tangent,
    Traits,
    Zero as Zero,
    as_typed,
)
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.state import STATE, interpreting
from verax.sharding import get_abstract_mesh, use_abstract_mesh

MODES = {
    "vjp_fwd": "grad",
    "vjp_bwd_retval": "grad",
    "jvp": "jvp",
    "lin": "linearize",
    "linearized": "linearize",
    "batch": "vmap",
}


@frozen(repr=False)
class AxisData(ReprMixin):
    """What a `batch` rule is told of the new dimension."""

    name: Any
    size: int
    spmd_name: Any = None
    explicit_mesh_axis: Any = None


# -----------------------------------------------------------------------------
# Rules that follow from others: assigned in the body of a class.


def derived(name: str) -> Callable[..., Any]:
    """What stands in a class for a method that follows from its other rules."""

    def method(self: object, *args: object) -> Any:
        raise NotImplementedError(f"{name} is derived; apply the transformation")

    method.is_derived = True  # type: ignore[attr-defined]  # a mark
    return method


linearize_from_jvp = derived("lin"), derived("linearized")
"""`lin, linearized = linearize_from_jvp`: linearization by the `jvp` rule."""
vjp_from_lin = derived("vjp_fwd"), derived("vjp_bwd_retval")
"""`vjp_fwd, vjp_bwd_retval = vjp_from_lin`: reverse mode by transposing the rule of
forward mode, with its residuals."""
vjp_from_jvp = derived("vjp_fwd"), derived("vjp_bwd_retval")
"""`vjp_fwd, vjp_bwd_retval = vjp_from_jvp`: the same of a class that has a `jvp`."""
jvp_from_lin = derived("jvp")
"""`jvp = jvp_from_lin`: forward mode by `lin` and `linearized`."""


class HiPrim:
    """One operation on values of fixed types; see the module.

    A subclass sets, before it calls `super().__init__()`, `in_avals`, a tuple with a
    pytree of types for each argument, `out_aval`, the pytree of types of the output,
    and `params`, hashable values by name that become attributes. Two operations of one
    class with equal `params` are the same.

    Raises:
        AttributeError: one of the three is missing, or the class has two backward
            rules.
    """

    in_avals: tuple[Any, ...]
    out_aval: Any
    params: Mapping[str, Any]
    effects: ClassVar[frozenset[Any]] = frozenset()

    def __init__(self) -> None:
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(f"subclass __init__ should set `self.{name}`")
        if self.defines("vjp_bwd") and self.defines("vjp_bwd_retval"):
            raise AttributeError(
                f"subclass {type(self)} should not override both `vjp_bwd` and "
                "`vjp_bwd_retval`, which are two forms of one rule: keep the first, "
                "which adds to accumulators, or the second, which returns cotangents"
            )
        self.ins, self.outs = side(self.in_avals), side(self.out_aval)
        self.__dict__.update(self.params)
        self.check(*self.in_avals)

    def check(self, *arg_tys: object) -> None:
        """Raise for types that the operation does not take; nothing, if not defined."""

    def expand(self, *args: Any) -> Any:
        """The output, in other operations."""
        raise NotImplementedError(f"subclass {type(self)} must implement `expand`")

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> tuple[Any, Any]:
        """The output and residuals; `nzs_in` says what is differentiated."""
        self.lacks("vjp_fwd")

    def vjp_bwd_retval(self, res: object, outgrad: object, /) -> Any:
        """A cotangent for each argument, None for zero."""
        self.lacks("vjp_bwd_retval")

    def vjp_bwd(self, res: object, outgrad: object, /, *arg_accums: object) -> Any:
        """`vjp_bwd_retval`, with accumulators to add to."""
        self.lacks("vjp_bwd")

    def jvp(self, primals: object, tangents: object) -> tuple[Any, Any]:
        """The output and its tangent."""
        self.lacks("jvp")

    def lin(self, nzs_in: object, *primals: object) -> tuple[Any, Any]:
        """The output and the residuals for `linearized`."""
        self.lacks("lin")

    def linearized(self, residuals: object, *tangents: object) -> Any:
        """The tangent of the output, linear in the tangents of the arguments."""
        self.lacks("linearized")

    def batch(self, axis_data: AxisData, args: object, dims: object) -> tuple[Any, Any]:
        """The output for stacked arguments, and its new dimensions."""
        self.lacks("batch")

    def batch_dim_rule(self, axis_data: AxisData, in_dims: object) -> Any:
        """The new dimensions of the output."""
        return 0

    def lacks(self, name: str) -> NoReturn:
        cls = type(self)
        if cls.jvp is jvp_from_lin and cls.lin is linearize_from_jvp[0]:
            raise TypeError(
                f"subclass {cls} can't set both `jvp = jvp_from_lin` and "
                "`lin, linearized = linearize_from_jvp`, since each would be defined "
                "by the other: write one of the rules"
            )
        raise NotImplementedError(
            f"for {MODES.get(name, 'grad')} support, subclass {type(self)} must "
            f"implement `{name}`"
        )

    def defines(self, name: str) -> bool:
        """Whether the class writes a rule itself."""
        method = getattr(type(self), name)
        return method is not getattr(HiPrim, name) and not hasattr(method, "is_derived")

    def __call__(self, *args: object) -> Any:
        """Apply the operation.

        Raises:
            TypeError: the arguments have another structure or other types.
        """
        if self.effects:
            raise NotImplementedError(f"{self.name}: effects of its own")
        leaves = self.ins.given(self.name, args)
        if STATE.interpreter.immediate and not any(map(is_tracer, leaves)):
            call_typing(HiParams(self), [aval_of(x) for x in leaves])
            out = self.expand(*args)
            if any([isinstance(ty, HiType) for ty in self.outs.types]):
                return out
            return self.outs.built(self.outs.values(self.name, "the output", out))
        return self.outs.built(call_p.bind(HiParams(self), *leaves))

    @property
    def name(self) -> str:
        """The name in programs and messages."""
        return type(self).__name__

    def pp_params(self) -> dict[str, Any]:
        """The params that programs print."""
        return {k: v for k, v in self.params.items() if not k.startswith("_")}

    def __repr__(self) -> str:
        inside = " ".join([f"{k}={v}" for k, v in self.pp_params().items()])
        return f"{self.name}[{inside}]" if inside else self.name

    def key(self) -> tuple[Any, ...]:
        return tuple(self.params.items()), self.ins, self.outs

    def __hash__(self) -> int:
        try:
            return hash((type(self), self.key()))
        except TypeError as error:
            raise TypeError(
                f"{self.name} has params or types that cannot be hashed ({error}), but "
                "programs compare them: pass arrays as arguments, and tuples for lists"
            ) from error

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.key() == other.key()


VJPHiPrimitive = HiPrim
"""The name that `HiPrim` had first."""


# -----------------------------------------------------------------------------
# The rows: the operation, its derivative, and what that is transposed to.


@frozen(eq=False, repr=False)
class RuleParams(Params):
    """What all of them have: rules read the mesh that was in force at the call."""

    mesh: Any = field(factory=get_abstract_mesh, kw_only=True)

    def configured(self) -> AbstractContextManager[Any]:
        """Have the mesh in force within the block."""
        return nullcontext() if self.mesh.empty else use_abstract_mesh(self.mesh)


@frozen(eq=False, repr=False)
class HiParams(RuleParams):
    """The operation."""

    prim: HiPrim


@frozen(eq=False, repr=False)
class LinearParams(RuleParams):
    """The derivative of an operation: operands are residuals, arguments, tangents.

    `nonzero` marks the arguments with tangents, `rest` completes the residuals.
    """

    prim: HiPrim
    nonzero: Mask
    residuals: int
    rest: "Rest"


@frozen(eq=False, repr=False)
class BackwardParams(RuleParams):
    """The backward rule: operands are residuals, and cotangents where `given`."""

    prim: HiPrim
    nonzero: Mask
    rest: "Rest"
    residuals: int
    given: Mask


@frozen(repr=False)
class Rest(ReprMixin):
    """The structure of residuals, and the leaves that are no arrays."""

    tree: PyTreeDef
    others: tuple[tuple[int, object], ...]

    def rebuilt(self, arrays: Sequence[object]) -> Any:
        """The residuals as the rule returned them."""
        return KeptLeaves(self.tree, self.others).rebuilt(arrays)


def compose_call(p: HiParams, *xs: object) -> list[object]:
    with p.configured():
        return expanded(p.prim, xs)


def call_typing(p: HiParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    prim = p.prim
    for given, due in zip(avals, prim.ins.avals, strict=True):
        if given.shape != due.shape or given.dtype != due.dtype:
            raise TypeError(f"{prim.name} takes {due}, but got {given}")
    return varying_as(avals, prim.outs.avals)


def evaluated(run: Callable[..., Sequence[object]], *args: object) -> list[NDArray]:
    """The results of rules on values, which they may look at."""
    with interpreting(STATE.eager):
        return [np.asarray(y) for y in run(*args)]


def arrays(xs: Sequence[NDArray]) -> list[Any]:
    return [vnp.asarray(x) for x in xs]


def jvp_call(
    engine: Engine, p: HiParams, xs: Sequence[Array], ts: Sequence[Tangent]
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """Reverse mode's rules where there are some: forward mode finds its own in them."""
    prim = p.prim
    nonzero = tuple(
        [
            moves and not isinstance(t, Zero)
            for t, moves in zip(ts, prim.ins.moves, strict=True)
        ]
    )
    zeros = [Zero(aval.tangent()) for aval in prim.outs.avals]
    if not any(nonzero):
        return call_p.bind(p, *xs), zeros
    if not prim.defines("vjp_fwd"):
        return pushed(prim, xs, ts)
    outs, saved, kept = forward(prim, nonzero, xs)
    if not any(prim.outs.moves):
        return outs, zeros
    params = LinearParams(prim, nonzero, len(saved), Rest(kept.tree, kept.others))
    live = [t for t, flag in zip(ts, nonzero, strict=True) if flag]
    pushes = prim.defines("jvp") or prim.defines("lin")
    made = iter(linear_p.bind(params, *saved, *(xs if pushes else ()), *live))
    pairs = zip(prim.outs.moves, zeros, strict=True)
    return outs, [next(made) if flag else zero for flag, zero in pairs]


def batch_call(
    engine: Engine, p: HiParams, size: int, xs: Sequence[Array], axes: Sequence[Axis]
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """The rule of the class, or the operation on each element.

    Values with types of a program's own are mapped as the arrays that they are made of.
    """
    prim, axis = p.prim, engine.axis
    data = AxisData(
        None if axis is None else axis.name, size, (axis and axis.spmd) or None
    )
    count = len(prim.outs.avals)
    places: list[Axis] = [0] * count
    if not any([isinstance(ty, HiType) for ty in (*prim.ins.types, *prim.outs.types)]):
        dims = prim.ins.tree.unflatten(axes)
        whole = prim.outs.tree.unflatten(range(count))
        if prim.defines("batch"):
            out, where = prim.batch(data, prim.ins.built(xs), dims)
            places = prefix_leaves("the new dimensions", where, whole, is_nothing)
            return matching(prim.name, "the output", out, prim.outs.tree), places
        where = prim.batch_dim_rule(data, dims)
        places = prefix_leaves("the new dimensions", where, whole, is_nothing)
    mapped = Mapped(prim, data, tuple(axes), tuple(places))
    return call_p.bind(HiParams(mapped), *xs), places


call_p: Row[HiParams] = Row(
    "hi_call",
    HiParams,
    typing=call_typing,
    evaluate=lambda engine, p, xs: evaluated(expanded, p.prim, arrays(xs)),
    jvp=jvp_call,
    batch=batch_call,
    composition=compose_call,
    multiple_results=True,
    sharding=as_typed,
    traits=Traits(),
)


def linear_typing(
    p: LinearParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    pairs = zip(p.prim.outs.avals, p.prim.outs.moves, strict=True)
    return varying_as(avals, [aval.tangent() for aval, flag in pairs if flag])


def push_linear(p: LinearParams, *operands: object) -> Sequence[object]:
    """The tangents of the output, by the rule of forward mode."""
    prim, count = p.prim, sum(p.nonzero)
    xs, live = operands[p.residuals : -count], iter(operands[-count:])
    ts = [
        next(live) if flag else Zero(aval.tangent())
        for flag, aval in zip(p.nonzero, prim.ins.avals, strict=True)
    ]
    with p.configured():
        tangents = pushed(prim, xs or [None] * len(ts), ts)[1]
    pairs = zip(tangents, prim.outs.moves, strict=True)
    return [instantiate_zeros(t) for t, flag in pairs if flag]


def transpose_linear(
    engine: Engine, p: LinearParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    """The backward rule."""
    live = [not isinstance(ct, Zero) for ct in cts]
    flags = iter(live)
    given = tuple([flag and next(flags) for flag in p.prim.outs.moves])
    params = BackwardParams(p.prim, p.nonzero, p.rest, p.residuals, given)
    pushed = [ct for ct, flag in zip(cts, live, strict=True) if flag]
    operands = [*args[: p.residuals], *pushed]
    if may_log(p.prim):  # what it logs is seen where its steps are
        pulled: Sequence[Array] = run_backward(params, operands)
    else:
        pulled = backward_p.bind(params, *operands)
    known = len(args) - len(pulled)
    return [*[None] * known, *for_unknowns(args[known:], pulled)]


def may_log(prim: HiPrim) -> bool:
    """Whether the backward rule may return logs, also of each element."""
    return may_log(prim.inner) if isinstance(prim, Mapped) else prim.defines("vjp_bwd")


linear_p: Row[LinearParams] = Row(
    "hi_linear",
    LinearParams,
    typing=linear_typing,
    transpose=transpose_linear,
    composition=push_linear,
    multiple_results=True,
    sharding=as_typed,
    traits=Traits(),
)


def backward_typing(
    p: BackwardParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    pairs = zip(p.prim.ins.avals, p.nonzero, strict=True)
    due = [aval.cotangent().strong() for aval, flag in pairs if flag]
    return varying_as(avals, due)


def run_backward(p: BackwardParams, operands: Sequence[object]) -> list[Array]:
    """The backward rule of the class."""
    live = iter(operands[p.residuals :])
    cts = [
        next(live) if flag else Zero(aval.cotangent())
        for flag, aval in zip(p.given, p.prim.outs.avals, strict=True)
    ]
    saved = p.rest.rebuilt(operands[: p.residuals])
    with p.configured():
        out = backward(p.prim, p.nonzero, saved, cts)
    return [convert(x, aval_of(x).dtype, False) for x in out]


backward_p: Row[BackwardParams] = Row(
    "hi_backward",
    BackwardParams,
    typing=backward_typing,
    evaluate=lambda engine, p, xs: evaluated(run_backward, p, arrays(xs)),
    composition=lambda p, *xs: run_backward(p, xs),
    multiple_results=True,
    sharding=as_typed,
    traits=Traits(),
)


class Mapped(HiPrim):
    """An operation on each element of stacks: its rules are mapped, too."""

    def __init__(
        self,
        inner: HiPrim,
        data: AxisData,
        in_dims: tuple[Axis, ...],
        out_dims: tuple[Axis, ...],
    ) -> None:
        self.inner, self.data = inner, data
        self.in_dims, self.out_dims = in_dims, out_dims
        pairs = zip(inner.ins.avals, in_dims, strict=True)
        self.in_avals = tuple([stacked(aval, data.size, d) for aval, d in pairs])
        results = zip(inner.outs.avals, out_dims, strict=True)
        self.out_aval = [stacked(aval, data.size, d) for aval, d in results]
        self.params = {"inner": inner, "data": data, "dims": (in_dims, out_dims)}
        super().__init__()
        self.ins = evolve(self.ins, moves=inner.ins.moves)
        self.outs = evolve(self.outs, moves=inner.outs.moves)

    @property
    def name(self) -> str:
        return f"{self.inner.name} under vmap"

    def defines(self, name: str) -> bool:
        if name in ("batch", "vjp_bwd"):
            return False
        return self.inner.defines(name)

    def over(self, f: Callable[..., object], in_axes: Any, out_axes: Any) -> Any:
        """`f` of each element."""
        return vmap(
            f,
            in_axes=in_axes,
            out_axes=out_axes,
            axis_size=self.data.size,
            axis_name=self.data.name,
        )

    def expand(self, *xs: Any) -> Any:
        def run(*leaves: object) -> list[Any]:
            return expanded(self.inner, leaves)

        return self.over(run, self.in_dims, list(self.out_dims))(*xs)

    def vjp_fwd(self, nzs_in: Any, /, *xs: Any) -> tuple[Any, Any]:
        rests: list[KeptLeaves] = []

        def run(*leaves: object) -> tuple[list[Any], list[Any]]:
            outs, saved, rest = forward(self.inner, tuple(nzs_in), leaves)
            rests.append(rest)
            return outs, saved

        outs, saved = self.over(run, self.in_dims, (list(self.out_dims), 0))(*xs)
        rest = rests[-1]
        return outs, (saved, Rest(rest.tree, rest.others), tuple(nzs_in))

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        saved, rest, nonzero = res
        given = [not isinstance(ct, Zero) for ct in outgrad]
        avals = [aval.cotangent() for aval in self.inner.outs.avals]

        def run(saved: list[Any], live: list[Any]) -> list[Any]:
            left = iter(live)
            cts = [
                next(left) if flag else Zero(aval)
                for flag, aval in zip(given, avals, strict=True)
            ]
            return backward(self.inner, nonzero, rest.rebuilt(saved), cts)

        live = [ct for ct in outgrad if not isinstance(ct, Zero)]
        dims = [d for d, flag in zip(self.out_dims, given, strict=True) if flag]
        own = [d for d, flag in zip(self.in_dims, nonzero, strict=True) if flag]
        ends = [0 if d is None else d for d in own]
        pulled = iter(self.over(run, (0, dims), ends)(saved, live))
        return tuple(
            [
                None if not flag else summed(next(pulled), d)
                for flag, d in zip(nonzero, self.in_dims, strict=True)
            ]
        )

    def jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        places = [i for i, t in enumerate(tangents) if not isinstance(t, Zero)]
        zeros = [Zero(aval.tangent()) for aval in self.inner.ins.avals]

        def run(xs: Any, live: list[Any]) -> tuple[list[Any], list[Any]]:
            ts: list[object] = list(zeros)
            for i, t in zip(places, live, strict=True):
                ts[i] = t
            outs, out_tangents = pushed(self.inner, xs, ts)
            return outs, [instantiate_zeros(t) for t in out_tangents]

        moving = [self.in_dims[i] for i in places]
        ends = list(self.out_dims)
        mapped = self.over(run, (self.in_dims, moving), (ends, ends))
        outs, out_tangents = mapped(tuple(primals), [tangents[i] for i in places])
        return outs, out_tangents

    def lin(self, nzs_in: object, *primals: object) -> tuple[Any, Any]:
        return self.expand(*primals), primals

    def linearized(self, residuals: object, *tangents: object) -> Any:
        return self.jvp(residuals, tangents)[1]


def stacked(aval: ShapedArray, size: int, axis: Axis) -> ShapedArray:
    """The type of stacked values; the same where nothing is stacked."""
    if axis is None:
        return aval
    return aval.with_shape((*aval.shape[:axis], size, *aval.shape[axis:]))


def summed(ct: Any, axis: Axis) -> Any:
    """The cotangent of what all elements share is the sum of theirs."""
    return vnp.sum(ct, axis=0) if axis is None else ct
