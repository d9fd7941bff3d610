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

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np
from attrs import frozen

import verax.numpy as vnp
from verax.api.trees.pytrees import KeptLeaves, prefix_leaves, split_leaves
from verax.api.vmap import vmap
from verax.backend import pytrees
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import is_inexact
from verax.ir.jaxpr import Params
from verax.ir.records import ReprMixin
from verax.ops.elementwise.convert import convert
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

__all__ = [
    "AxisData",
    "GradAccum",
    "HiPrim",
    "NullAccum",
    "ShapedArray",
    "VJPHiPrimitive",
    "ValAccum",
    "Zero",
    "instantiate_zeros",
    "jvp_from_lin",
    "linearize_from_jvp",
    "vjp_from_jvp",
    "vjp_from_lin",
]

type Mask = tuple[bool, ...]
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


def instantiate_zeros(x: Any) -> Any:
    """An array of zeros for a `Zero`, and anything else as it is."""
    return vnp.zeros(x.aval.shape, x.aval.dtype) if isinstance(x, Zero) else x


# -----------------------------------------------------------------------------
# Where a backward rule may add up cotangents, instead of returning them.


class GradAccum:
    """What the cotangent of one argument is added to."""

    def accum(self, x: object) -> None:
        """Add a cotangent."""
        raise NotImplementedError


class NullAccum(GradAccum):
    """The accumulator of an argument that is not differentiated."""

    def __init__(self, aval: ShapedArray | None = None) -> None:
        self.aval = aval

    def accum(self, x: object) -> None:
        """Nothing: no cotangent is asked for."""


class ValAccum(GradAccum):
    """A sum of cotangents of type `aval`."""

    def __init__(self, aval: ShapedArray, val: Any = None) -> None:
        self.aval, self.total = aval, val

    def accum(self, x: Any) -> None:
        """Add a cotangent; None and a `Zero` add nothing."""
        if x is not None and not isinstance(x, Zero):
            self.total = x if self.total is None else self.total + x

    def freeze(self) -> Any:
        """The sum."""
        return Zero(self.aval) if self.total is None else self.total


# -----------------------------------------------------------------------------
# Rules that follow from others: assigned in the body of a class.


def derived(name: str) -> Callable[..., Any]:
    """What stands in a class for a method that follows from its other rules."""

    def method(self: Any, *args: object) -> Any:
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
        AttributeError: one of the three is missing.
    """

    in_avals: tuple[Any, ...]
    out_aval: Any
    params: Mapping[str, Any]
    effects: ClassVar[frozenset[Any]] = frozenset()

    def __init__(self) -> None:
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(f"subclass __init__ should set `self.{name}`")
        self.in_avals_flat, self.in_tree = pytrees.flatten(self.in_avals)
        self.out_avals_flat, self.out_tree = pytrees.flatten(self.out_aval)
        self.__dict__.update(self.params)
        self.check(*self.in_avals)

    def check(self, *arg_tys: Any) -> None:
        """Raise for types that the operation does not take; nothing, if not defined."""

    def expand(self, *args: Any) -> Any:
        """The output, in other operations."""
        raise NotImplementedError(f"subclass {type(self)} must implement `expand`")

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> tuple[Any, Any]:
        """The output and residuals; `nzs_in` says what is differentiated."""
        self.lacks("vjp_fwd")

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        """A cotangent for each argument, None for zero."""
        self.lacks("vjp_bwd_retval")

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> Any:
        """`vjp_bwd_retval`, with accumulators to add to."""
        self.lacks("vjp_bwd")

    def jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        """The output and its tangent."""
        self.lacks("jvp")

    def lin(self, nzs_in: Any, *primals: Any) -> tuple[Any, Any]:
        """The output and the residuals for `linearized`."""
        self.lacks("lin")

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        """The tangent of the output, linear in the tangents of the arguments."""
        self.lacks("linearized")

    def batch(self, axis_data: AxisData, args: Any, dims: Any) -> tuple[Any, Any]:
        """The output for stacked arguments, and its new dimensions."""
        self.lacks("batch")

    def batch_dim_rule(self, axis_data: AxisData, in_dims: Any) -> Any:
        """The new dimensions of the output."""
        return 0

    def lacks(self, name: str) -> NoReturn:
        raise NotImplementedError(
            f"for {MODES.get(name, 'grad')} support, subclass {type(self)} must "
            f"implement `{name}`"
        )

    def defines(self, name: str) -> bool:
        """Whether the class writes a rule itself."""
        method = getattr(type(self), name)
        return method is not getattr(HiPrim, name) and not hasattr(method, "is_derived")

    def __call__(self, *args: Any) -> Any:
        """Apply the operation.

        Raises:
            TypeError: the arguments have another structure or other types.
        """
        leaves, tree = pytrees.flatten(args)
        if tree != self.in_tree:
            raise TypeError(
                f"{self.name} takes arguments of structure {self.in_tree}, not {tree}"
            )
        if self.effects:
            raise NotImplementedError(f"{self.name}: effects of its own")
        return self.out_tree.unflatten(call_p.bind(HiParams(self), *leaves))

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
        types = (*self.in_avals_flat, None, *self.out_avals_flat)
        return (tuple(self.params.items()), types, self.in_tree, self.out_tree)

    def __hash__(self) -> int:
        return hash((type(self), self.key()))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.key() == other.key()


VJPHiPrimitive = HiPrim
"""The name that `HiPrim` had first."""


# -----------------------------------------------------------------------------
# The rules on leaves: arguments are built from them, and results are checked.


def given(prim: HiPrim, leaves: Sequence[Any]) -> Any:
    """The arguments of leaves."""
    return prim.in_tree.unflatten(leaves)


def outputs(
    prim: HiPrim, out: Any, avals: Sequence[ShapedArray], what: str
) -> list[Any]:
    """The leaves of an output, in the types that are due.

    Raises:
        TypeError: it has another structure, or other types.
    """
    leaves = matching(prim.name, what, out, prim.out_tree)
    pairs = zip(leaves, avals, strict=True)
    return [typed(prim.name, what, x, aval) for x, aval in pairs]


def expanded(prim: HiPrim, leaves: Sequence[Any]) -> list[Any]:
    """The leaves of the output."""
    out = prim.expand(*given(prim, leaves))
    return outputs(prim, out, prim.out_avals_flat, "the output")


def forward(
    prim: HiPrim, nonzero: Mask, leaves: Sequence[Any]
) -> tuple[list[Any], list[Any], KeptLeaves]:
    """The output, arrays among the residuals, and the rest of them."""
    out, res = prim.vjp_fwd(prim.in_tree.unflatten(nonzero), *given(prim, leaves))
    saved, rest = split_leaves(res, is_array)
    return outputs(prim, out, prim.out_avals_flat, "the output"), saved, rest


def backward(prim: HiPrim, nonzero: Mask, res: Any, cts: Sequence[Any]) -> list[Any]:
    """A cotangent for each argument that has a tangent."""
    due = [aval.cotangent() for aval in prim.in_avals_flat]
    outgrad = prim.out_tree.unflatten(cts)
    if prim.defines("vjp_bwd"):
        accums = [
            ValAccum(aval) if flag else NullAccum(aval)
            for aval, flag in zip(due, nonzero, strict=True)
        ]
        prim.vjp_bwd(res, outgrad, *given(prim, accums))
        pulled = [x.freeze() if isinstance(x, ValAccum) else None for x in accums]
    else:
        pulled = prefix_leaves(
            "the cotangents",
            prim.vjp_bwd_retval(res, outgrad),
            prim.in_tree.unflatten(range(len(due))),
            is_nothing,
        )
    rows = zip(pulled, due, nonzero, strict=True)
    return [filled(prim.name, ct, aval) for ct, aval, flag in rows if flag]


def pushed(
    prim: HiPrim, leaves: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """The output and its tangents, by the rule of forward mode."""
    primals, moved = given(prim, leaves), given(prim, tangents)
    nonzero = tuple([not isinstance(t, Zero) for t in tangents])
    if prim.defines("jvp"):
        out, tangent = prim.jvp(primals, moved)
    elif prim.defines("lin"):
        out, res = prim.lin(prim.in_tree.unflatten(nonzero), *primals)
        tangent = prim.linearized(res, *moved)
    elif prim.defines("vjp_fwd"):
        raise TypeError(
            "can't apply forward-mode autodiff (jvp) to a primitive with rules for "
            f"reverse mode only: give {prim.name} a method `jvp`, or use reverse "
            "mode (grad, vjp, jacrev)"
        )
    else:
        prim.lacks("vjp_fwd")
    due = [aval.tangent() for aval in prim.out_avals_flat]
    return (
        outputs(prim, out, prim.out_avals_flat, "the output"),
        outputs(prim, tangent, due, "the tangent of the output"),
    )


def is_nothing(x: object) -> bool:
    return x is None or isinstance(x, Zero)


def is_array(x: object) -> bool:
    """Whether a residual is a value of the program; others stay as they are."""
    return isinstance(x, Array | np.ndarray)


def matching(name: str, what: str, out: Any, tree: Any) -> list[Any]:
    """The leaves of what a rule returned.

    Raises:
        TypeError: it has another structure than is due.
    """
    leaves, structure = pytrees.flatten(out, lambda x: isinstance(x, Zero))
    if structure != tree:
        raise TypeError(f"{name}: {what} has the structure {structure}, not {tree}")
    return leaves


def typed(name: str, what: str, x: Any, due: ShapedArray) -> Any:
    """A value that a rule returned, in the type that is due."""
    if isinstance(x, Zero):
        return Zero(due)
    aval = aval_of(x)
    if aval.shape != due.shape or aval.dtype != due.dtype:
        raise TypeError(f"{name}: {what} is of type {aval}, but {due} is declared")
    return (
        x if aval.weak_type == due.weak_type else convert(x, due.dtype, due.weak_type)
    )


def filled(name: str, ct: Any, due: ShapedArray) -> Any:
    """A cotangent in the type that is due, of zeros for none."""
    if ct is None or isinstance(ct, Zero):
        return vnp.zeros(due.shape, due.dtype)
    return typed(name, "a cotangent", ct, due)


# -----------------------------------------------------------------------------
# The rows: the operation, its derivative, and what that is transposed to.


@frozen(eq=False, repr=False)
class HiParams(Params):
    """The operation."""

    prim: HiPrim


@frozen(eq=False, repr=False)
class LinearParams(Params):
    """The derivative of an operation: operands are residuals, arguments, tangents.

    `nonzero` marks the arguments with tangents, `rest` completes the residuals.
    """

    prim: HiPrim
    nonzero: Mask
    residuals: int
    rest: "Rest"


@frozen(eq=False, repr=False)
class BackwardParams(Params):
    """The backward rule: operands are residuals, and cotangents where `given`."""

    prim: HiPrim
    nonzero: Mask
    rest: "Rest"
    residuals: int
    given: Mask


@frozen(repr=False)
class Rest(ReprMixin):
    """The structure of residuals, and the leaves that are no arrays."""

    tree: Any
    others: tuple[tuple[int, object], ...]

    def rebuilt(self, arrays: Sequence[object]) -> Any:
        """The residuals as the rule returned them."""
        return KeptLeaves(self.tree, self.others).rebuilt(arrays)


def call_typing(p: HiParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    prim = p.prim
    for given, due in zip(avals, prim.in_avals_flat, strict=True):
        if given.shape != due.shape or given.dtype != due.dtype:
            raise TypeError(f"{prim.name} takes {due}, but got {given}")
    return list(prim.out_avals_flat)


def evaluated(run: Callable[..., Sequence[Any]], *args: Any) -> list[NDArray]:
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
    if not prim.defines("vjp_fwd"):
        return pushed(prim, xs, ts)
    nonzero = tuple([not isinstance(t, Zero) for t in ts])
    outs, saved, kept = forward(prim, nonzero, xs)
    params = LinearParams(prim, nonzero, len(saved), Rest(kept.tree, kept.others))
    live = [t for t in ts if not isinstance(t, Zero)]
    pushes = prim.defines("jvp") or prim.defines("lin")
    made = iter(linear_p.bind(params, *saved, *(xs if pushes else ()), *live))
    return outs, [
        next(made) if is_inexact(aval.dtype) else Zero(aval.tangent())
        for aval in prim.out_avals_flat
    ]


def batch_call(
    engine: Engine, p: HiParams, size: int, xs: Sequence[Array], axes: Sequence[Axis]
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """The rule of the class, or the operation on each element."""
    prim, axis = p.prim, engine.axis
    data = AxisData(
        None if axis is None else axis.name, size, (axis and axis.spmd) or None
    )
    dims = prim.in_tree.unflatten(axes)
    whole = prim.out_tree.unflatten(range(len(prim.out_avals_flat)))
    if prim.defines("batch"):
        out, where = prim.batch(data, given(prim, xs), dims)
        places = prefix_leaves("the new dimensions", where, whole, is_nothing)
        return matching(prim.name, "the output", out, prim.out_tree), places
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
    composition=lambda p, *xs: expanded(p.prim, xs),
    multiple_results=True,
    sharding=as_typed,
    traits=Traits(),
)


def linear_typing(p: LinearParams, avals: object) -> Sequence[ShapedArray]:
    results = p.prim.out_avals_flat
    return [aval.tangent() for aval in results if is_inexact(aval.dtype)]


def push_linear(p: LinearParams, *operands: Any) -> Sequence[Any]:
    """The tangents of the output, by the rule of forward mode."""
    prim, count = p.prim, sum(p.nonzero)
    xs, live = operands[p.residuals : -count], iter(operands[-count:])
    ts = [
        next(live) if flag else Zero(aval.tangent())
        for flag, aval in zip(p.nonzero, prim.in_avals_flat, strict=True)
    ]
    tangents = pushed(prim, xs or [None] * len(ts), ts)[1]
    return [
        instantiate_zeros(t)
        for t, aval in zip(tangents, prim.out_avals_flat, strict=True)
        if is_inexact(aval.dtype)
    ]


def transpose_linear(
    engine: Engine, p: LinearParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    """The backward rule."""
    live = [not isinstance(ct, Zero) for ct in cts]
    flags = iter(live)
    active = [is_inexact(aval.dtype) for aval in p.prim.out_avals_flat]
    given = tuple([flag and next(flags) for flag in active])
    params = BackwardParams(p.prim, p.nonzero, p.rest, p.residuals, given)
    pushed = [ct for ct, flag in zip(cts, live, strict=True) if flag]
    pulled = backward_p.bind(params, *args[: p.residuals], *pushed)
    return [*[None] * (len(args) - len(pulled)), *pulled]


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


def backward_typing(p: BackwardParams, avals: object) -> Sequence[ShapedArray]:
    pairs = zip(p.prim.in_avals_flat, p.nonzero, strict=True)
    return [aval.cotangent().strong() for aval, flag in pairs if flag]


def run_backward(p: BackwardParams, operands: Sequence[Any]) -> list[Any]:
    """The backward rule of the class."""
    live = iter(operands[p.residuals :])
    cts = [
        next(live) if flag else Zero(aval.cotangent())
        for flag, aval in zip(p.given, p.prim.out_avals_flat, strict=True)
    ]
    saved = p.rest.rebuilt(operands[: p.residuals])
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
        pairs = zip(inner.in_avals_flat, in_dims, strict=True)
        self.in_avals = tuple([stacked(aval, data.size, d) for aval, d in pairs])
        results = zip(inner.out_avals_flat, out_dims, strict=True)
        self.out_aval = [stacked(aval, data.size, d) for aval, d in results]
        self.params = {"inner": inner, "data": data, "dims": (in_dims, out_dims)}
        super().__init__()

    @property
    def name(self) -> str:
        return f"{self.inner.name} under vmap"

    def defines(self, name: str) -> bool:
        if name in ("batch", "vjp_bwd"):
            return False
        return self.inner.defines(name)

    def over(self, f: Callable[..., Any], in_axes: Any, out_axes: Any) -> Any:
        """`f` of each element."""
        return vmap(
            f,
            in_axes=in_axes,
            out_axes=out_axes,
            axis_size=self.data.size,
            axis_name=self.data.name,
        )

    def expand(self, *xs: Any) -> Any:
        def run(*leaves: Any) -> list[Any]:
            return expanded(self.inner, leaves)

        return self.over(run, self.in_dims, list(self.out_dims))(*xs)

    def vjp_fwd(self, nzs_in: Any, /, *xs: Any) -> tuple[Any, Any]:
        rests: list[KeptLeaves] = []

        def run(*leaves: Any) -> tuple[list[Any], list[Any]]:
            outs, saved, rest = forward(self.inner, tuple(nzs_in), leaves)
            rests.append(rest)
            return outs, saved

        outs, saved = self.over(run, self.in_dims, (list(self.out_dims), 0))(*xs)
        rest = rests[-1]
        return outs, (saved, Rest(rest.tree, rest.others), tuple(nzs_in))

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        saved, rest, nonzero = res
        given = [not isinstance(ct, Zero) for ct in outgrad]
        avals = [aval.cotangent() for aval in self.inner.out_avals_flat]

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
        zeros = [Zero(aval.tangent()) for aval in self.inner.in_avals_flat]

        def run(xs: Any, live: list[Any]) -> tuple[list[Any], list[Any]]:
            ts: list[Any] = list(zeros)
            for i, t in zip(places, live, strict=True):
                ts[i] = t
            outs, out_tangents = pushed(self.inner, xs, ts)
            return outs, [instantiate_zeros(t) for t in out_tangents]

        moving = [self.in_dims[i] for i in places]
        ends = list(self.out_dims)
        mapped = self.over(run, (self.in_dims, moving), (ends, ends))
        outs, out_tangents = mapped(tuple(primals), [tangents[i] for i in places])
        return outs, out_tangents

    def lin(self, nzs_in: Any, *primals: Any) -> tuple[Any, Any]:
        return self.expand(*primals), primals

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        return self.jvp(residuals, tangents)[1]


def stacked(aval: ShapedArray, size: int, axis: Axis) -> ShapedArray:
    """The type of stacked values; the same where nothing is stacked."""
    if axis is None:
        return aval
    return aval.with_shape((*aval.shape[:axis], size, *aval.shape[axis:]))


def summed(ct: Any, axis: Axis) -> Any:
    """The cotangent of what all elements share is the sum of theirs."""
    return vnp.sum(ct, axis=0) if axis is None else ct
