"""Floor 5: a function traced where it is differentiated, and its tangents' types.

One idea: `jvp`, `linearize` and `vjp` begin alike, with the jaxpr of the function at
its primals, and check the tangents and cotangents they are given against its types::

    at = trace_primals(fun, primals, "grad", has_aux=False)
    live = check_tangents(at.signature, tangents, at.describe)
"""

from collections.abc import Callable, Sequence
from operator import and_
from typing import Any, Final, cast

import numpy as np
from attrs import evolve, field, frozen

from verax.api.tracing.apply import ENGINE, as_array
from verax.api.tracing.references import OnValues, on_values
from verax.api.tracing.trace import leaf_avals, trace
from verax.api.tracing.wrapping import Describe, describe_arguments, function_name
from verax.api.trees.hitypes import HI, refuse_hi
from verax.api.trees.pytrees import KeptLeaves, split_leaves
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float0, is_complex, is_inexact
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.ops.structure import casts, create
from verax.rules.rows.builder import Tracer
from verax.rules.rows.infer import as_cotangent
from verax.rules.rows.references import BoundRef
from verax.rules.values.constants import aval_of
from verax.rules.values.sizes import ShapeError

# -----------------------------------------------------------------------------
# A function of some of its arguments, the others being fixed.
#
# What `argnums` chooses is differentiated; messages name it as the user's function
# does::
#
#     OfChosen(f, (x, y), {}, (1,))(z)    # f(x, z)


@frozen(eq=False, repr=False)
class OfChosen(ReprMixin):
    """`fun` as a function of the arguments at `numbers` alone."""

    fun: Callable[..., Any]
    args: tuple[object, ...]
    kwargs: dict[str, Any]
    numbers: tuple[int, ...]

    @property
    def __name__(self) -> str:
        return function_name(self.fun)

    def __call__(self, *chosen: object) -> Any:
        filled = list(self.args)
        for number, arg in zip(self.numbers, chosen, strict=True):
            filled[number] = arg
        return self.fun(*filled, **self.kwargs)


# -----------------------------------------------------------------------------
# A function traced where it is differentiated, and its tangents' types.


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
        """Flags of the leaves that have tangents: those of inexact dtype.

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

    def checked(self, cotangents: tuple[object, ...]) -> list[object | None]:
        """The leaves of the cotangent, which is to be the only one."""
        if len(cotangents) != 1:
            raise TypeError(
                f"the function returned by vjp applied to {self.name} was called with "
                f"{len(cotangents)} arguments, but takes one cotangent with the "
                f"structure of the output, {self.out_tree}; for several outputs pass a "
                "tuple"
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
        self, outs: Sequence[object], mask: Sequence[bool], stack: tuple[int, ...] = ()
    ) -> tuple[object, ...]:
        """Cotangents as trees like the arguments, zeros where there is none.

        `stack` are the sizes of leading dimensions that the leaves have in addition.
        """
        args, _ = self.in_tree.unflatten(self.cotangents(outs, mask, stack))
        return tuple(args)

    def cotangents(
        self,
        outs: Sequence[object],
        mask: Sequence[bool],
        stack: tuple[int, ...] = (),
        due: Sequence[bool] | None = None,
    ) -> list[object]:
        """`pack`, as a list of leaves; None for those that are not `due`."""
        out, flags = iter(outs), iter(mask)
        wanted = (True,) * len(self.avals) if due is None else due
        return [
            next(out)
            if moves and next(flags)
            else zero(aval.cotangent().with_shape((*stack, *aval.shape)))
            if asked
            else None
            for aval, moves, asked in zip(self.avals, self.active, wanted, strict=True)
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
        """Flags of the inputs of the jaxpr that have tangents."""
        return (False,) * len(self.captured) + self.signature.active

    def write(
        self, outs: Sequence[object], nonzero: Sequence[bool]
    ) -> Sequence[object]:
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

    def unpack(self, outs: Sequence[object]) -> tuple[object, object]:
        """Output and auxiliary output, as the user's trees."""
        tree = self.signature.out_tree
        count = tree.num_leaves
        aux = None if self.aux is None else self.aux.rebuilt(outs[count:])
        return tree.unflatten(outs[:count]), aux


def trace_primals(
    fun: Callable[..., object], primals: Sequence[object], purpose: str, has_aux: bool
) -> Primals:
    """Trace `fun` at `primals`, where Python may branch on concrete values."""
    if HI.types:
        refuse_hi(purpose, "takes", primals)
    leaves, tree = pytrees.flatten((tuple(primals), {}))
    name = function_name(fun)
    describe = (
        describe_arguments(fun.fun, tree, places=fun.numbers)
        if isinstance(fun, OfChosen)
        else describe_arguments(fun, tree)
    )
    avals = leaf_avals(leaves, describe)
    result: list[tuple[PyTreeDef, KeptLeaves | None]] = []

    def flat(*args: object) -> list[object]:
        out = fun(*args)
        if HI.types:
            refuse_hi(purpose, "returns", out)
        if not has_aux:
            leaves, out_tree = pytrees.flatten(out)
            result[:] = [(out_tree, None)]
            return leaves
        value, aux = check_pair(fun, out)
        leaves, out_tree = pytrees.flatten(value)
        arrays, kept = split_leaves(aux, is_tracer)
        result[:] = [(out_tree, kept)]
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
    jaxpr, [(out_tree, kept)] = traced.jaxpr, result
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


def check_pair(fun: object, out: object) -> tuple[object, object]:
    if not isinstance(out, tuple | list) or len(out) != 2:
        raise TypeError(
            f"with has_aux=True, {function_name(fun)} must return a two-element tuple "
            f"(out, aux), not {type(out).__name__}"
        )
    return out[0], out[1]


def check_sequence(name: str, primals: object, tangents: object) -> None:
    """Raise TypeError unless both are tuples or lists, with one for each argument."""
    if not (isinstance(primals, tuple | list) and isinstance(tangents, tuple | list)):
        raise TypeError(
            f"primal and tangent arguments to verax.{name} must be tuples or lists; "
            f"found {type(primals).__name__} and {type(tangents).__name__}."
        )
    if len(primals) != len(tangents) or type(primals) is not type(tangents):
        trees = [pytrees.flatten(x)[1] for x in (primals, tangents)]
        raise TypeError(
            f"primal and tangent arguments to verax.{name} must have the same tree "
            f"structure; they are {trees[0]} and {trees[1]}"
        )


type Openings = tuple[str, str]
"""How messages begin about a tangent of another shape, and of another dtype."""
UNEXPECTED: Final = ("unexpected JAX type",) * 2
OF_JVP: Final = (
    "jvp called with different primal and tangent shapes",
    "primal and tangent arguments to verax.jvp do not match",
)
OF_LINEARIZE: Final = (
    "linearized function called on tangent values inconsistent with the original "
    "primal values",
) * 2


def check_tangents(
    at: Signature,
    tangents: tuple[object, ...],
    describe: Describe,
    openings: Openings,
) -> list[object | None]:
    """Tangent leaves of the right types, None for float0 ones."""
    leaves, tree = pytrees.flatten((tangents, {}))
    if tree != at.in_tree:
        raise TypeError(
            "primal and tangent arguments to verax.jvp must have the same tree "
            f"structure; the tangents have {tree}, but the primals have {at.in_tree}"
        )
    return [
        check_tangent(describe, i, aval, t, openings)
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
    describe: Describe,
    i: int,
    aval: ShapedArray,
    tangent: object,
    openings: Openings = UNEXPECTED,
) -> object | None:
    """`tangent` in the tangent type of `aval`, or an error that says what was due."""
    due = aval.tangent()
    if getattr(tangent, "dtype", None) == float0:
        given = ShapedArray(np.shape(cast(Any, tangent)), float0)
    else:
        given = aval_of(tangent)
    if given.shape != due.shape or not fits(given, due):
        raise ShapeError(
            f"{openings[given.shape == due.shape]}: the tangent or cotangent for "
            f"{describe()[i]} must be {type_text(due)}"
            + ("" if due.dtype == aval.dtype else f", the tangent type of {aval.dtype}")
            + f", not {type_text(given)}"
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
    out = check_tangent(describe, i, aval, cotangent)
    if aval.explicit is None or not aval.explicit.terms:
        return out
    return as_cotangent(ENGINE, out, aval.cotangent())


def type_text(aval: ShapedArray) -> str:
    """Dtype and shape in words: `float32[3]`."""
    name = "float0" if aval.dtype == float0 else aval.dtype.name
    return f"{name}{list(aval.shape)}"


def fill(
    nonzero: Sequence[bool], live: Sequence[object], avals: Sequence[ShapedArray]
) -> list[object]:
    """Tangents of all outputs: the known ones, and zeros elsewhere."""
    out = iter(live)
    return [
        next(out) if flag else zero(aval.tangent())
        for flag, aval in zip(nonzero, avals, strict=False)
    ]


def zero(aval: ShapedArray) -> Any:
    """A zero tangent; of dtype float0 a NumPy array, since no device can hold it."""
    if aval.dtype == float0:
        return np.zeros(aval.shape, float0)
    return create.zeros(aval)
