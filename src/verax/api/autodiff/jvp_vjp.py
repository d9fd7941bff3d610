"""Floor 5: derivatives of Python functions: jvp, linearize, vjp, grad.

One idea: trace once, rewrite the jaxpr, run what comes out; `grad` is `vjp` at one,
`vjp` is `linearize` transposed::

    value, pull = vjp(f, x)
    (gradient,) = pull(1.0)
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Self, overload

from attrs import evolve, frozen

from verax.api.autodiff.primals import (
    OF_JVP,
    OF_LINEARIZE,
    Primals,
    Signature,
    check_sequence,
    check_tangents,
    fill,
    fits,
    trace_primals,
    type_text,
)
from verax.api.autodiff.pullback import (
    Accumulating,
    Layout,
    LinearPart,
    NotNeeded,
    NotSaveable,
    argument_leaves,
    check_no_references,
    is_absent,
    laid_out,
    layouts_of,
    leaf_place,
    linear_part,
)
from verax.api.custom.backward_logs import Logging
from verax.api.custom.checkpoint import checkpoint
from verax.api.memory.budgets import Size
from verax.api.memory.policies import budget
from verax.api.tracing.apply import ENGINE, apply, as_array, observed, rewritten
from verax.api.trees.pytrees import register_pytree_node_class
from verax.api.vmap import apply_batched
from verax.backend.pytrees import Partial, PyTreeDef
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin, hiding
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import shown
from verax.transforms.engine import derivatives


@overload
def jvp[R](
    fun: Callable[..., R],
    primals: Sequence[object],
    tangents: Sequence[object],
    has_aux: Literal[False] = False,
) -> tuple[R, R]: ...
@overload
def jvp[R, A](
    fun: Callable[..., tuple[R, A]],
    primals: Sequence[object],
    tangents: Sequence[object],
    has_aux: Literal[True],
) -> tuple[R, R, A]: ...
@overload
def jvp(
    fun: Callable[..., object],
    primals: Sequence[object],
    tangents: Sequence[object],
    has_aux: bool,
) -> Any: ...
def jvp[R](
    fun: Callable[..., R],
    primals: Sequence[object],
    tangents: Sequence[object],
    has_aux: bool = False,
) -> Any:
    """The value of `fun` and its directional derivative.

    `tangents` has the structure, shapes and dtypes of `primals`; the tangent of an
    integer or boolean has dtype `float0`. Returns (output, output tangent), and the
    auxiliary output third with `has_aux`; it may hold leaves that are not arrays, and
    what does not depend on the trace comes out of it as it is.

    Raises:
        TypeError: primals and tangents do not match; the message says where.

    >>> import verax
    >>> verax.jvp(verax.numpy.sin, (0.0,), (2.0,))
    (Array(0., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    check_sequence("jvp", primals, tangents)
    at = trace_primals(fun, primals, "jvp", has_aux)
    signature = at.signature
    pushed = check_tangents(signature, tuple(tangents), at.describe, OF_JVP)
    active = [
        flag and t is not None
        for flag, t in zip(at.active[len(at.captured) :], pushed, strict=True)
    ]
    mask = (*[False] * len(at.captured), *active)
    live = [t for t, flag in zip(pushed, active, strict=True) if flag]
    outs, nonzero = pushed_forward(at, mask, live)
    count = len(at.jaxpr.outvars)
    out, aux = at.unpack(at.write(outs[:count], nonzero))
    tangent = signature.out_tree.unflatten(
        fill(signature.pad(nonzero), outs[count:], signature.out_avals)
    )
    return (out, tangent, aux) if has_aux else (out, tangent)


def pushed_forward(
    at: Primals, mask: tuple[bool, ...], tangents: Sequence[object]
) -> tuple[Sequence[object], tuple[bool, ...]]:
    """Outputs and their nonzero tangents, and which are, for the tangents in `mask`."""
    return rewritten(
        "jvp",
        at.jaxpr,
        [*at.captured, *at.leaves, *tangents],
        lambda: derivatives.pushed_types(at.jaxpr, mask),
        lambda writer, values: derivatives.jvp_into(
            ENGINE, writer, at.jaxpr, mask, values
        ),
        lambda program: derivatives.jvp(ENGINE, program, mask),
    )


def check_reduce_axes(name: str, reduce_axes: Sequence[object]) -> None:
    """Raise NotImplementedError unless it is empty, as JAX asks today."""
    if reduce_axes:
        raise NotImplementedError(
            f"{name} no longer takes reduce_axes: sum over {reduce_axes!r} yourself, "
            "with lax.psum in the function or of its gradient"
        )


@frozen(cache_hash=True, repr=False)
class Pushforward:
    """The derivative of a function, linear in tangents, at the point of its residuals.

    It holds no arrays, so that it can be a part of a structure: equal programs have
    equal trees around their residuals, and nothing is kept alive by a cached call.
    """

    at: Signature
    nonzero: tuple[bool, ...]
    tangent: Jaxpr

    def __call__(self, residuals: Sequence[object], *tangents: object) -> Any:
        """The tangent of the output for tangents of the arguments."""
        checked = check_tangents(self.at, tangents, self.at.describe, OF_LINEARIZE)
        pushed = zip(checked, self.at.active, strict=True)
        live = [t for t, moves in pushed if moves]
        outs = apply(self.tangent, [*residuals, *live])
        filled = fill(self.at.pad(self.nonzero), outs, self.at.out_avals)
        return self.at.out_tree.unflatten(filled)

    @property
    def args(self) -> tuple[Jaxpr, ...]:
        """The program that it runs: (residuals, tangents) to tangents."""
        return (self.tangent,)

    def __repr__(self) -> str:
        """Short, because the text of a tree holds it."""
        types = shown(list(self.at.avals))
        return f"derivative of {self.at.name} at {types}"

    def columns(
        self, residuals: Sequence[object], stacked: Sequence[object], size: int
    ) -> list[Any]:
        """Output tangents for `size` tangents, stacked in the last dimension."""
        axes = (*[None] * len(residuals), *[0] * len(stacked))
        expected = [-1] * len(self.tangent.outvars)
        outs = apply_batched(self.tangent, [*residuals, *stacked], axes, size, expected)
        avals = [a.with_shape((*a.shape, size)) for a in self.at.out_avals]
        return fill(self.at.pad(self.nonzero), outs, avals)


@frozen(cache_hash=True, repr=False)
class Slots(ReprMixin):
    """The sources of a pullback's residuals.

    Attributes:
        sources: for each residual, its leaf of the arguments; None for any other.
        layouts: how `args_res` shows each argument.
    """

    sources: tuple[int | None, ...]
    layouts: tuple[Layout, ...]


class Residuals:
    """The residuals of a pullback; a caller may take arguments out."""

    def __init__(
        self,
        program: Pushforward,
        slots: Slots,
        args: list[object],
        others: list[object],
    ) -> None:
        self.program = program
        self.slots = slots
        self.args = args
        self.others = others

    @classmethod
    def sorted(cls, at: Signature, linear: LinearPart, saveable: object) -> Self:
        """The residuals of `linear`, those that are arguments apart."""
        tangent, values = linear.parted()
        kept, layouts = layouts_of(saveable, at.argument_trees)
        others_first = [None] * (len(values) - len(linear.places))
        sources = (*others_first, *linear.places)
        slots = Slots(sources, tuple(layouts))
        by_leaf: dict[int, object] = {}
        others = []
        for i, value in zip(sources, values, strict=True):
            if i is None:
                others.append(value)
            else:
                by_leaf[i] = value if kept[i] else NotSaveable()
        leaves = iter([by_leaf.get(i, NotNeeded()) for i in range(len(at.avals))])
        args = [laid_out(layout, leaves) for layout in layouts]
        return cls(Pushforward(at, linear.nonzero, tangent), slots, args, others)

    def linear(self) -> LinearPart:
        """The derivative at the point, from all residuals.

        Raises:
            ValueError: an argument that it needs is missing, or has another type.
        """
        at, tangent = self.program.at, self.program.tangent
        leaves = argument_leaves(self.args, at.argument_trees)
        missing = [
            leaf_place(at.in_tree, i)
            for i in self.slots.sources
            if i is not None and is_absent(leaves[i])
        ]
        if missing:
            raise ValueError(
                f"the pullback of {at.name} needs not-saveable arguments: "
                f"{', '.join(missing)}; put them back before it is called, as in "
                "pullback.args_res[0] = ..."
            )
        others = iter(self.others)
        residuals = [
            next(others) if i is None else self.restored(i, leaves[i], v.aval)
            for i, v in zip(self.slots.sources, tangent.invars, strict=False)
        ]
        return LinearPart(self.program.nonzero, (tangent, tuple(residuals)))

    def restored(self, i: int, x: object, aval: ShapedArray) -> Any:
        """Leaf `i` of the arguments in the type that the derivative takes.

        Raises:
            ValueError: it has another shape or dtype.
        """
        given = aval_of(x)
        if given.shape != aval.shape or not fits(given, aval):
            place = leaf_place(self.program.at.in_tree, i)
            raise ValueError(
                f"args_res holds {type_text(given)} where the pullback of "
                f"{self.program.at.name} was made with {type_text(aval)} as {place}"
            )
        if given is aval:
            return x
        return ENGINE.core.convert(as_array(x), aval.dtype, aval.weak_type)


@register_pytree_node_class
class Pullback(Logging):
    """The transposed derivative of a function at a point; reusable.

    A pytree: its residuals are the leaves, and the rest belongs to the structure.
    Residuals that are arguments of the function stand in `args_res`, a list with one
    entry for each argument, the others in the list `opaque_residuals`. Both may be
    changed: an argument that was dropped must be put back before the next call.
    """

    __dir__ = hiding(
        "at given in_tree linear nonzero out_nzs out_tree pull residuals rows "
        "saveable sorted tree_flatten tree_unflatten"
    )

    __slots__ = ("_made", "_sorted", "at", "saveable")

    def __init__(
        self,
        at: Signature,
        linear: LinearPart | None,
        saveable: object = True,
        residuals: Residuals | None = None,
    ) -> None:
        self.at = at
        self.saveable = saveable
        self._made = linear
        self._sorted = residuals

    @property
    def sorted(self) -> Residuals:
        """The residuals, in the lists that the caller sees; the only ones from now."""
        if self._sorted is None:
            assert self._made is not None
            self._sorted = Residuals.sorted(self.at, self._made, self.saveable)
            self._made = None
        return self._sorted

    @property
    def nonzero(self) -> tuple[bool, ...]:
        """The outputs that have a tangent, as flags."""
        made = self._made
        return self.sorted.program.nonzero if made is None else made.nonzero

    @property
    def linear(self) -> LinearPart:
        """The derivative at the point."""
        return self._made or self.sorted.linear()

    @property
    def args_res(self) -> list[Any]:
        """The residuals that are arguments, by argument."""
        return self.sorted.args

    @args_res.setter
    def args_res(self, args: Sequence[object]) -> None:
        self.sorted.args = list(args)

    @property
    def opaque_residuals(self) -> list[Any]:
        """The residuals that are not arguments."""
        return self.sorted.others

    @opaque_residuals.setter
    def opaque_residuals(self, others: Sequence[object]) -> None:
        self.sorted.others = list(others)

    @property
    def in_tree(self) -> PyTreeDef:
        """The structure of the tuple of arguments."""
        return self.at.in_tree.children()[0]

    @property
    def out_tree(self) -> PyTreeDef:
        """The structure of the output, and of the cotangent."""
        return self.at.out_tree

    @property
    def out_nzs(self) -> Any:
        """The outputs that have a tangent, as flags in a tree like the output."""
        return self.at.out_tree.unflatten(self.at.pad(self.nonzero))

    @property
    def residuals(self) -> tuple[Any, ...]:
        """The residuals: all that is kept of the point."""
        return self.linear.residuals

    def tree_flatten(self) -> tuple[tuple[object, ...], tuple[Pushforward, Slots]]:
        """The residuals, and the program that they complete."""
        out = self.sorted
        return (out.args, out.others), (out.program, out.slots)

    @classmethod
    def tree_unflatten(
        cls, whole: tuple[Pushforward, Slots], residuals: Iterable[Any]
    ) -> Self:
        """The pullback at the point of these residuals."""
        (program, slots), (args, others) = whole, residuals
        return cls(program.at, None, True, Residuals(program, slots, args, others))

    def __repr__(self) -> str:
        return f"Pullback({self.at.name})"

    def __call__(self, *cotangents: object) -> tuple[Any, ...]:
        """The cotangents of the arguments for a cotangent of the output."""
        return self.pull(self.at.checked(cotangents))

    def with_refs(self, *entries: object) -> Accumulating:
        """The pullback whose results go where the entries say, one for each leaf.

        The gradient for a leaf is added to a `Ref`, returned for `ad.GradValue()`, and
        not computed for `ad.DontWant()`. An argument that is a reference needs one.

        Raises:
            ValueError: the entries have another structure than the arguments, or a
                reference has another type than the gradient.

        >>> import verax
        >>> total = verax.new_ref(0.0)
        >>> for x in (1.0, 2.0):
        ...     _, pull = verax.vjp(lambda x: x * x, x)
        ...     pull.with_refs(total)(1.0)
        (GradRef(),)
        (GradRef(),)
        >>> total
        Ref(6., dtype=float32)
        """
        return Accumulating(self, entries)

    def pull(self, cts: Sequence[object | None]) -> tuple[Any, ...]:
        """Cotangents of the arguments, from checked cotangent leaves."""
        check_no_references(self.at)
        given, live = self.given(cts)
        return self.at.pack(*self.linear.pulled(given, live))

    def rows(self, stacked: Sequence[object], size: int) -> tuple[Any, ...]:
        """Cotangents of the arguments for `size` cotangents, stacked in the first."""
        given, live = self.given(stacked)
        tangent, residuals = self.linear.parted()
        count = len(residuals)
        linear = [i >= count for i in range(len(tangent.invars))]
        jaxpr, mask = observed(
            "transpose",
            tangent,
            lambda p: derivatives.transpose(ENGINE, p, tuple(linear), given),
        )
        axes = (*[None] * len(residuals), *[0] * len(live))
        expected = [0] * len(jaxpr.outvars)
        outs = apply_batched(jaxpr, [*residuals, *live], axes, size, expected)
        return self.at.pack(outs, mask, (size,))

    def given(
        self, cts: Sequence[object | None]
    ) -> tuple[tuple[bool, ...], list[object | None]]:
        """Flags of the outputs with both tangent and cotangent, and the cotangents."""
        nonzero = self.nonzero
        proper = self.at.pad(nonzero)
        live = [ct for ct, flag in zip(cts, proper, strict=True) if flag]
        aux = sum(nonzero[len(proper) :])
        return (True,) * len(live) + (False,) * aux, live


def linearized(
    fun: Callable[..., object],
    primals: Sequence[object],
    purpose: str,
    has_aux: bool,
    placed: bool = False,
    moving: object = None,
) -> tuple[Primals, Sequence[Any], LinearPart]:
    """The trace at `primals`, the outputs, and the derivative; see `linear_part`."""
    at = trace_primals(fun, primals, purpose, has_aux)
    if moving is not None:
        flags, _ = layouts_of(moving, at.signature.argument_trees, "in_nzs")
        at = evolve(at, signature=evolve(at.signature, moving=tuple(flags)))
    operands = [*at.captured, *at.leaves]
    first = len(at.captured) if placed else None
    outs, linear = linear_part(at.jaxpr, at.active, operands, first)
    return at, at.write(outs, linear.nonzero) if at.refs else outs, linear


@overload
def linearize[R](
    fun: Callable[..., R],
    *primals: object,
    has_aux: Literal[False] = False,
    in_nzs: bool | tuple[object, ...] | None = None,
    memory: Size | None = None,
) -> tuple[R, Callable[..., R]]: ...
@overload
def linearize[R, A](
    fun: Callable[..., tuple[R, A]],
    *primals: object,
    has_aux: Literal[True],
    in_nzs: bool | tuple[object, ...] | None = None,
    memory: Size | None = None,
) -> tuple[R, Callable[..., R], A]: ...
@overload
def linearize(
    fun: Callable[..., object],
    *primals: object,
    has_aux: bool,
    in_nzs: bool | tuple[object, ...] | None = None,
    memory: Size | None = None,
) -> Any: ...
def linearize(
    fun: Callable[..., object],
    *primals: object,
    has_aux: bool = False,
    in_nzs: bool | tuple[object, ...] | None = None,
    memory: Size | None = None,
) -> Any:
    """The value of `fun` at `primals` and its derivative there, as a function.

    The function takes tangents like the primals and may be called many times; `fun` is
    not run again. It is a `tree_util.Partial`, whose leaves are what the derivative
    needs from the point. With `has_aux`, the auxiliary output comes third. `in_nzs` is
    as in `vjp`: the tangents of other primals are taken as zero; so is `memory`.

    Raises:
        ValueError: `in_nzs` does not fit the primals, or `memory` is no budget.

    >>> import verax
    >>> y, f_jvp = verax.linearize(lambda x: x * x, 3.0)
    >>> float(y), float(f_jvp(1.0))
    (9.0, 6.0)
    """
    fun = within(fun, memory)
    at, outs, linear = linearized(fun, primals, "linearize", has_aux, False, in_nzs)
    out, aux = at.unpack(outs)
    tangent, residuals = linear.parted()
    push = Partial(Pushforward(at.signature, linear.nonzero, tangent), residuals)
    return (out, push, aux) if has_aux else (out, push)


def within(fun: Callable[..., object], memory: Size | None) -> Callable[..., Any]:
    """The function whose derivative holds no more than a budget."""
    return fun if memory is None else checkpoint(fun, policy=budget(memory))


def pulled_from(
    fun: Callable[..., object],
    primals: Sequence[object],
    has_aux: bool,
    placed: bool = False,
    moving: object = None,
) -> tuple[object, Pullback, object]:
    """The value of `fun`, the pullback, `placed` if it is for the user, and aux."""
    at, outs, linear = linearized(fun, primals, "vjp", has_aux, placed, moving)
    out, aux = at.unpack(outs)
    return out, Pullback(at.signature, linear), aux


@overload
def vjp[R](
    fun: Callable[..., R],
    *primals: object,
    has_aux: Literal[False] = False,
    reduce_axes: Sequence[object] = (),
    saveable_args: bool | tuple[object, ...] = True,
    in_nzs: bool | tuple[object, ...] | None = None,
    memory: Size | None = None,
) -> tuple[R, Pullback]: ...
@overload
def vjp[R, A](
    fun: Callable[..., tuple[R, A]],
    *primals: object,
    has_aux: Literal[True],
    reduce_axes: Sequence[object] = (),
    saveable_args: bool | tuple[object, ...] = True,
    in_nzs: bool | tuple[object, ...] | None = None,
    memory: Size | None = None,
) -> tuple[R, Pullback, A]: ...
@overload
def vjp(
    fun: Callable[..., object],
    *primals: object,
    has_aux: bool,
    reduce_axes: Sequence[object] = (),
    saveable_args: bool | tuple[object, ...] = True,
    in_nzs: bool | tuple[object, ...] | None = None,
    memory: Size | None = None,
) -> Any: ...
def vjp(
    fun: Callable[..., object],
    *primals: object,
    has_aux: bool = False,
    reduce_axes: Sequence[object] = (),
    saveable_args: bool | tuple[object, ...] = True,
    in_nzs: bool | tuple[object, ...] | None = None,
    memory: Size | None = None,
) -> Any:
    """The value of `fun` at `primals` and the pullback of cotangents at that point.

    The pullback takes a cotangent like the output and returns a tuple of cotangents
    like the primals; it may be called many times. It is a pytree, whose leaves are what
    the derivative needs from the point. With `has_aux`, the auxiliary output comes
    third.

    `saveable_args`, a bool or a tuple-tree of bools that is a prefix of `primals`, says
    which arguments the pullback may keep. Those that it may not and needs are missing
    in its list `args_res`, and must be put there before it is called. `in_nzs`, such a
    tree too, says which primals have a tangent: the cotangents of others are zeros, and
    nothing is kept for them. `reduce_axes` must be empty. With `memory`, a budget for
    what the pullback holds beside the arguments, the rest is computed again when it is
    called; see `checkpoint_policies.budget`.

    Raises:
        NotImplementedError: there are `reduce_axes`.
        ValueError: `saveable_args` or `in_nzs` does not fit the primals, or `memory` is
            no budget.

    >>> import verax
    >>> y, pull = verax.vjp(lambda x, y: x * y, 3.0, 4.0)
    >>> print(*pull(1.0))
    4.0 3.0
    """
    check_reduce_axes("vjp", reduce_axes)
    fun = within(fun, memory)
    out, pull, aux = pulled_from(fun, primals, has_aux, True, in_nzs)
    if not isinstance(saveable_args, bool):
        layouts_of(saveable_args, pull.at.argument_trees)
    pull.saveable = saveable_args
    return (out, pull, aux) if has_aux else (out, pull)
