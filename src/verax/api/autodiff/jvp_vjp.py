"""Floor 5: derivatives of Python functions: jvp, linearize, vjp, grad.

One idea: trace once, rewrite the jaxpr, run what comes out; `grad` is `vjp` at one,
`vjp` is `linearize` transposed::

    value, pull = vjp(f, x)
    (gradient,) = pull(1.0)
"""

from collections.abc import Callable, Iterable, Sequence
from operator import and_
from typing import Any, Self, cast

import numpy as np
from attrs import evolve, field, frozen

from verax.api.autodiff.accumulate import Accumulating, check_no_references
from verax.api.autodiff.chosen import OfChosen
from verax.api.autodiff.kept_arguments import (
    Layout,
    NotNeeded,
    NotSaveable,
    argument_leaves,
    is_absent,
    laid_out,
    layouts_of,
    leaf_place,
)
from verax.api.autodiff.pullback import LinearPart, linear_part
from verax.api.tracing.apply import ENGINE, apply, as_array, observed, rewritten
from verax.api.tracing.argument_names import (
    Describe,
    describe_arguments,
    function_name,
)
from verax.api.tracing.references import OnValues, on_values
from verax.api.tracing.trace import leaf_avals, trace
from verax.api.trees.classes import KeptLeaves, register_pytree_node_class, split_leaves
from verax.api.vmap import apply_batched
from verax.backend import pytrees
from verax.backend.pytrees import Partial, PyTreeDef
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float0, is_complex, is_inexact
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.ops.structure import casts, create
from verax.rules.rows.builder import Tracer
from verax.rules.rows.infer import as_cotangent
from verax.rules.rows.references import BoundRef
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import shown
from verax.rules.values.sizes import ShapeError
from verax.transforms.engine import derivatives


@frozen(cache_hash=True, repr=False)
class Signature(ReprMixin):
    """The types of a function's arguments and outputs, without auxiliary ones.

    `name` is what messages call the function: two of one type are equal.
    """

    name: str = field(eq=False)
    in_tree: PyTreeDef
    avals: tuple[ShapedArray, ...]
    out_tree: PyTreeDef
    out_avals: tuple[ShapedArray, ...]
    moving: tuple[bool, ...] | None = None
    finals: tuple[int | None, ...] = ()
    """For each reference that is written, its leaf; None if it is closed over."""

    @property
    def active(self) -> tuple[bool, ...]:
        """Which leaves of the arguments have tangents: those of inexact dtype.

        Of these, those that are `moving`; None stands for all.
        """
        inexact = tuple([is_inexact(aval.dtype) for aval in self.avals])
        if self.moving is None:
            return inexact
        return tuple(map(and_, inexact, self.moving))

    @property
    def argument_trees(self) -> list[PyTreeDef]:
        """The structures of the arguments."""
        return list(self.in_tree.children()[0].children())

    def pad(self, mask: Sequence[bool]) -> Sequence[bool]:
        """The part of an output mask that belongs to the output proper."""
        return mask[: self.out_tree.num_leaves]

    def checked(self, cotangents: tuple[Any, ...]) -> list[object | None]:
        """The leaves of the cotangent, which is to be the only one."""
        if len(cotangents) != 1:
            raise TypeError(
                f"the function returned by vjp applied to {self.name} takes one "
                f"cotangent with the structure of the output, {self.out_tree}, not "
                f"{len(cotangents)} arguments; for several outputs pass a tuple"
            )
        (cotangent,) = cotangents
        leaves, tree = pytrees.flatten(cotangent)
        if tree != self.out_tree:
            raise ValueError(
                f"unexpected tree structure: the cotangent has the structure {tree}, "
                f"but the output of {self.name} has {self.out_tree}"
            )
        avals = self.out_avals
        return [
            check_cotangent(
                lambda: [f"output {k}" for k in range(len(avals))], i, a, ct
            )
            for i, (a, ct) in enumerate(zip(avals, leaves, strict=True))
        ]

    def pack(
        self, outs: Sequence[Any], mask: Sequence[bool], stack: tuple[int, ...] = ()
    ) -> tuple[Any, ...]:
        """Cotangents as trees like the arguments, zeros where there is none.

        `stack` are the sizes of leading dimensions that the leaves have in addition.
        """
        args, _ = self.in_tree.unflatten(self.cotangents(outs, mask, stack))
        return tuple(args)

    def cotangents(
        self, outs: Sequence[Any], mask: Sequence[bool], stack: tuple[int, ...] = ()
    ) -> list[Any]:
        """`pack`, as a list of leaves."""
        found, flags = iter(outs), iter(mask)
        return [
            next(found)
            if moves and next(flags)
            else zero(aval.cotangent().with_shape((*stack, *aval.shape)))
            for aval, moves in zip(self.avals, self.active, strict=True)
        ]

    def describe(self) -> Sequence[str]:
        """The names of the leaves of the arguments in messages."""
        return describe_arguments(self.name, self.in_tree)()


@frozen(eq=False, repr=False)
class Primals(ReprMixin):
    """A function traced at some arguments, ready to be differentiated."""

    jaxpr: Jaxpr
    captured: tuple[object, ...]
    leaves: tuple[object, ...]
    aux: KeptLeaves | None
    signature: Signature
    describe: Describe
    refs: tuple[BoundRef, ...] = ()

    @property
    def active(self) -> tuple[bool, ...]:
        """Which inputs of the jaxpr have tangents."""
        return (False,) * len(self.captured) + self.signature.active

    def write(self, outs: Sequence[Any], nonzero: Sequence[bool]) -> Sequence[Any]:
        """Have references hold what comes out; the other outputs.

        Raises:
            ValueError: what a reference holds has a tangent, and the reference none.
        """
        count = len(outs) - len(self.refs)
        marks = nonzero[len(nonzero) - len(self.refs) :]
        given = zip(self.refs, outs[count:], marks, self.signature.finals, strict=True)
        written = list(given)
        for ref, _, flag, place in written:
            moving = place is not None and self.signature.active[place]
            if flag and not moving and not ref.takes_constants:
                raise ValueError(
                    f"{self.signature.name} writes a value that is differentiated to "
                    f"{ref!r}, which is not. Move the array reference to the "
                    "differentiated arguments, or write lax.stop_gradient of the value"
                )
        for ref, value, _, _ in written:
            ref.write(ref.filled(value))
        return outs[:count]

    def unpack(self, outs: Sequence[Any]) -> tuple[Any, Any]:
        """Output and auxiliary output, as the user's trees."""
        tree = self.signature.out_tree
        count = tree.num_leaves
        aux = None if self.aux is None else self.aux.rebuilt(outs[count:])
        return tree.unflatten(outs[:count]), aux


def trace_primals(
    fun: Callable[..., Any], primals: Sequence[Any], purpose: str, has_aux: bool
) -> Primals:
    """Trace `fun` at `primals`, where Python may branch on concrete values."""
    leaves, tree = pytrees.flatten((tuple(primals), {}))
    name = function_name(fun)
    describe = (
        describe_arguments(fun.fun, tree, places=fun.numbers)
        if isinstance(fun, OfChosen)
        else describe_arguments(fun, tree)
    )
    avals = leaf_avals(leaves, describe)
    found: list[tuple[PyTreeDef, KeptLeaves | None]] = []

    def flat(*args: Any) -> list[Any]:
        out = fun(*args)
        if not has_aux:
            leaves, out_tree = pytrees.flatten(out)
            found[:] = [(out_tree, None)]
            return leaves
        value, aux = check_pair(fun, out)
        leaves, out_tree = pytrees.flatten(value)
        arrays, kept = split_leaves(aux, is_tracer)
        found[:] = [(out_tree, kept)]
        return [*leaves, *arrays]

    flat.__name__ = name
    traced = trace(
        flat,
        tree,
        avals,
        purpose,
        describe=describe,
        values=leaves,
        differentiates=True,
    )
    jaxpr, [(out_tree, kept)] = traced.jaxpr, found
    out_avals = tuple(jaxpr.out_avals[: out_tree.num_leaves])
    signature = Signature(name, tree, tuple(avals), out_tree, out_avals)
    if traced.refs:
        return on_contents(
            on_values(traced, leaves, describe, keep=True), kept, signature, describe
        )
    return Primals(jaxpr, traced.captured, tuple(leaves), kept, signature, describe)


def on_contents(
    pure: OnValues, kept: KeptLeaves | None, signature: Signature, describe: Describe
) -> Primals:
    """A function of arrays instead of references, with what they hold at the end."""
    count = len(pure.captured)
    finals = tuple([None if i < count else i - count for i in pure.written])
    at = evolve(signature, finals=finals)
    return Primals(
        pure.jaxpr, pure.captured, pure.leaves, kept, at, describe, pure.refs
    )


def is_tracer(x: object) -> bool:
    return isinstance(x, Tracer)


def check_pair(fun: object, out: Any) -> tuple[Any, Any]:
    if not isinstance(out, tuple | list) or len(out) != 2:
        raise TypeError(
            f"with has_aux=True, {function_name(fun)} must return a two-element tuple "
            f"(out, aux), not {type(out).__name__}"
        )
    return out[0], out[1]


def jvp[R](
    fun: Callable[..., R],
    primals: Sequence[Any],
    tangents: Sequence[Any],
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
    pushed = check_tangents(signature, tuple(tangents), at.describe)
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
) -> tuple[Sequence[Any], tuple[bool, ...]]:
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


def check_sequence(name: str, primals: object, tangents: object) -> None:
    for label, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple | list):
            raise TypeError(
                f"{name} takes a tuple or list of {label}, one per argument, not "
                f"{type(given).__name__}"
            )


def check_tangents(
    at: Signature, tangents: tuple[Any, ...], describe: Describe
) -> list[object | None]:
    """Tangent leaves of the right types, None for float0 ones."""
    leaves, tree = pytrees.flatten((tangents, {}))
    if tree != at.in_tree:
        raise TypeError(
            f"the tangents have the structure {tree}, but the primals have {at.in_tree}"
        )
    return [
        check_tangent(describe, i, aval, t)
        for i, (aval, t) in enumerate(zip(at.avals, leaves, strict=True))
    ]


def fits(given: ShapedArray, due: ShapedArray) -> bool:
    """Whether a tangent has the dtype that is due, or a float that is converted."""
    if given.dtype == due.dtype:
        return True
    real = is_complex(due.dtype) or not is_complex(given.dtype)
    inexact = is_inexact(due.dtype) and is_inexact(given.dtype)
    return given.weak_type and inexact and real


def check_tangent(
    describe: Describe, i: int, aval: ShapedArray, tangent: object
) -> object | None:
    """`tangent` in the tangent type of `aval`, or an error that says what was due."""
    due = aval.tangent()
    if getattr(tangent, "dtype", None) == float0:
        given = ShapedArray(np.shape(cast(Any, tangent)), float0)
    else:
        given = aval_of(tangent)
    if given.shape != due.shape or not fits(given, due):
        raise ShapeError(
            f"unexpected JAX type: the tangent or cotangent for {describe()[i]} must "
            f"be {type_text(due)}, the tangent type of {aval}, not {type_text(given)}"
        )
    if due.dtype == float0:
        return None
    if given is due:
        return tangent
    same = ENGINE.core.convert(as_array(tangent), due.dtype, due.weak_type)
    if given.vma == due.vma:
        return same
    casts.check_derivative(describe()[i], given, due)
    return ENGINE.core.reshard(same, due.explicit)


def check_cotangent(
    describe: Describe, i: int, aval: ShapedArray, cotangent: object
) -> object | None:
    """As `check_tangent`; whatever has the shape may stand for one that is not read."""
    if not is_inexact(aval.dtype) and np.shape(cast(Any, cotangent)) == aval.shape:
        return None
    found = check_tangent(describe, i, aval, cotangent)
    if aval.explicit is None or not aval.explicit.terms:
        return found
    return as_cotangent(ENGINE, found, aval.cotangent())


def type_text(aval: ShapedArray) -> str:
    """Dtype and shape in words: `float32[3]`."""
    name = "float0" if aval.dtype == float0 else aval.dtype.name
    return f"{name}{list(aval.shape)}"


def fill(
    nonzero: Sequence[bool], live: Sequence[Any], avals: Sequence[ShapedArray]
) -> list[Any]:
    """Tangents of all outputs: the known ones, and zeros elsewhere."""
    found = iter(live)
    return [
        next(found) if flag else zero(aval.tangent())
        for flag, aval in zip(nonzero, avals, strict=False)
    ]


def zero(aval: ShapedArray) -> Any:
    """A zero tangent; of dtype float0 a NumPy array, since no device can hold it."""
    if aval.dtype == float0:
        return np.zeros(aval.shape, float0)
    return create.zeros(aval)


@frozen(cache_hash=True, repr=False)
class Pushforward:
    """The derivative of a function, linear in tangents, at the point of its residuals.

    It holds no arrays, so that it can be a part of a structure: equal programs have
    equal trees around their residuals, and nothing is kept alive by a cached call.
    """

    at: Signature
    nonzero: tuple[bool, ...]
    tangent: Jaxpr

    def __call__(self, residuals: Sequence[Any], *tangents: Any) -> Any:
        """The tangent of the output for tangents of the arguments."""
        checked = check_tangents(self.at, tangents, self.at.describe)
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
        self, residuals: Sequence[Any], stacked: Sequence[Any], size: int
    ) -> list[Any]:
        """Output tangents for `size` tangents, stacked in the last dimension."""
        axes = (*[None] * len(residuals), *[0] * len(stacked))
        wanted = [-1] * len(self.tangent.outvars)
        outs = apply_batched(self.tangent, [*residuals, *stacked], axes, size, wanted)
        avals = [a.with_shape((*a.shape, size)) for a in self.at.out_avals]
        return fill(self.at.pad(self.nonzero), outs, avals)


@frozen(cache_hash=True, repr=False)
class Slots(ReprMixin):
    """Where the residuals of a pullback come from.

    Attributes:
        sources: for each residual, its leaf of the arguments; None for any other.
        layouts: how `args_res` shows each argument.
    """

    sources: tuple[int | None, ...]
    layouts: tuple[Layout, ...]


class Residuals:
    """What a pullback keeps of the point; a caller may take arguments out."""

    def __init__(
        self, program: Pushforward, slots: Slots, args: list[Any], others: list[Any]
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
        by_leaf: dict[int, Any] = {}
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

    def restored(self, i: int, x: Any, aval: ShapedArray) -> Any:
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
class Pullback:
    """The transposed derivative of a function at a point; reusable.

    A pytree: its residuals are the leaves, and the rest belongs to the structure.
    Residuals that are arguments of the function stand in `args_res`, a list with one
    entry for each argument, the others in the list `opaque_residuals`. Both may be
    changed: an argument that was dropped must be put back before the next call.
    """

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
        """Which outputs have a tangent."""
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
    def args_res(self, args: Sequence[Any]) -> None:
        self.sorted.args = list(args)

    @property
    def opaque_residuals(self) -> list[Any]:
        """The residuals that are not arguments."""
        return self.sorted.others

    @opaque_residuals.setter
    def opaque_residuals(self, others: Sequence[Any]) -> None:
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
        """Which outputs have a tangent, as a tree like the output."""
        return self.at.out_tree.unflatten(self.at.pad(self.nonzero))

    @property
    def residuals(self) -> tuple[Any, ...]:
        """What is kept of the point."""
        return self.linear.residuals

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Pushforward, Slots]]:
        """The residuals, and the program that they complete."""
        found = self.sorted
        return (found.args, found.others), (found.program, found.slots)

    @classmethod
    def tree_unflatten(
        cls, whole: tuple[Pushforward, Slots], residuals: Iterable[Any]
    ) -> Self:
        """The pullback at the point of these residuals."""
        (program, slots), (args, others) = whole, residuals
        return cls(program.at, None, True, Residuals(program, slots, args, others))

    def __repr__(self) -> str:
        return f"Pullback({self.at.name})"

    def __call__(self, *cotangents: Any) -> tuple[Any, ...]:
        """The cotangents of the arguments for a cotangent of the output."""
        cts = self.at.checked(cotangents)
        check_no_references(self.at)
        return self.pull(cts)

    def with_refs(self, *entries: Any) -> Accumulating:
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
        given, live = self.given(cts)
        return self.at.pack(*self.linear.pulled(given, live))

    def rows(self, stacked: Sequence[Any], size: int) -> tuple[Any, ...]:
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
        wanted = [0] * len(jaxpr.outvars)
        outs = apply_batched(jaxpr, [*residuals, *live], axes, size, wanted)
        return self.at.pack(outs, mask, (size,))

    def given(
        self, cts: Sequence[object | None]
    ) -> tuple[tuple[bool, ...], list[object | None]]:
        """Which outputs with a tangent have a cotangent, and which it is."""
        nonzero = self.nonzero
        proper = self.at.pad(nonzero)
        live = [ct for ct, flag in zip(cts, proper, strict=True) if flag]
        aux = sum(nonzero[len(proper) :])
        return (True,) * len(live) + (False,) * aux, live


def linearized(
    fun: Callable[..., Any],
    primals: Sequence[Any],
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


def linearize(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    in_nzs: bool | tuple[Any, ...] | None = None,
) -> Any:
    """The value of `fun` at `primals` and its derivative there, as a function.

    The function takes tangents like the primals and may be called many times; `fun` is
    not run again. It is a `tree_util.Partial`, whose leaves are what the derivative
    needs from the point. With `has_aux`, the auxiliary output comes third. `in_nzs` is
    as in `vjp`: the tangents of other primals are taken as zero.

    Raises:
        ValueError: `in_nzs` does not fit the primals.

    >>> import verax
    >>> y, f_jvp = verax.linearize(lambda x: x * x, 3.0)
    >>> float(y), float(f_jvp(1.0))
    (9.0, 6.0)
    """
    at, outs, linear = linearized(fun, primals, "linearize", has_aux, False, in_nzs)
    out, aux = at.unpack(outs)
    tangent, residuals = linear.parted()
    push = Partial(Pushforward(at.signature, linear.nonzero, tangent), residuals)
    return (out, push, aux) if has_aux else (out, push)


def pulled_from(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    has_aux: bool,
    placed: bool = False,
    moving: object = None,
) -> tuple[Any, Pullback, Any]:
    """The value of `fun`, the pullback, `placed` if it is for the user, and aux."""
    at, outs, linear = linearized(fun, primals, "vjp", has_aux, placed, moving)
    out, aux = at.unpack(outs)
    return out, Pullback(at.signature, linear), aux


def vjp(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    reduce_axes: Sequence[object] = (),
    saveable_args: bool | tuple[Any, ...] = True,
    in_nzs: bool | tuple[Any, ...] | None = None,
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
    nothing is kept for them. `reduce_axes` must be empty.

    Raises:
        NotImplementedError: there are `reduce_axes`.
        ValueError: `saveable_args` or `in_nzs` does not fit the primals.

    >>> import verax
    >>> y, pull = verax.vjp(lambda x, y: x * y, 3.0, 4.0)
    >>> print(*pull(1.0))
    4.0 3.0
    """
    check_reduce_axes("vjp", reduce_axes)
    out, pull, aux = pulled_from(fun, primals, has_aux, True, in_nzs)
    if not isinstance(saveable_args, bool):
        layouts_of(saveable_args, pull.at.argument_trees)
    pull.saveable = saveable_args
    return (out, pull, aux) if has_aux else (out, pull)
