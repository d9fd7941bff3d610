"""Floor 1: reading and writing references: the primitives, and references with values.

A reference is made, read, written and frozen by an equation each; what it holds is read
and written as a whole::

    { lambda ; a:Ref{f32[3]}. let b:f32[3] = get_ref a; set_ref a b in () }

`verax.transforms.passes.discharge` turns these into equations on arrays.
"""

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, ClassVar, Never

from attrs import frozen

from verax.ir.avals import AbstractRef, ShapedArray
from verax.ir.effects import MAKE, READ, WRITE, Effect, RefEffect
from verax.ir.jaxpr import Atom, Params, Source
from verax.rules.rows.builder import Builder, Staged
from verax.rules.rows.infer import Uneven
from verax.rules.rows.row import (
    Engine,
    MissingRule,
    NDArray,
    Row,
    Traits,
    TypeRule,
    as_typed,
    no_flops,
)
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.reference import Ref


@frozen(eq=False, repr=False)
class RefParams(Params):
    """The params of what touches a reference: none, but its effect."""

    touches: ClassVar[bool] = True
    touch: ClassVar[frozenset[Effect]]

    @property
    def effects(self) -> frozenset[Effect]:
        return self.touch


@frozen(eq=False, repr=False)
class GetRefParams(RefParams):
    """Of a read."""

    touch = frozenset((RefEffect(READ, index=0),))


@frozen(eq=False, repr=False)
class SetRefParams(RefParams):
    """Of a write."""

    touch = frozenset((RefEffect(WRITE, index=0),))


@frozen(eq=False, repr=False)
class NewRefParams(RefParams):
    """Of the making of a reference."""

    touch = frozenset((RefEffect(MAKE),))


@frozen(eq=False, repr=False)
class FreezeParams(RefParams):
    """Of the end of a reference, after which nothing may touch it."""

    touch = frozenset((RefEffect(WRITE, index=0),))


class Cell:
    """A reference to the evaluator: a NumPy array that can be exchanged for another."""

    def __init__(self, value: NDArray) -> None:
        self.value = value

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def dtype(self) -> Any:
        return self.value.dtype


def reference(avals: Sequence[ShapedArray]) -> AbstractRef:
    """The type of the first operand, which is a reference."""
    first = avals[0]
    if not isinstance(first, AbstractRef):
        raise TypeError(f"the first operand must be a reference, not {first}")
    return first


def set_typing(p: SetRefParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    inner, value = reference(avals).inner_aval, avals[1]
    if value is inner:
        return ()
    if value.with_explicit(inner.explicit) is not inner:
        raise TypeError(f"a reference to {inner} cannot hold {value}")
    if extra := sorted(value.vma - inner.vma):
        raise TypeError(
            f"a reference to {inner}, which all devices have alike, cannot hold {value}"
            f": combine the values first (psum), or make the reference of one that "
            f"varies (verax.lax.pcast(..., {tuple(extra)}, to='varying'))"
        )
    raise Uneven("set")


def new_typing(p: NewRefParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    (init,) = avals
    if isinstance(init, AbstractRef) or init.weak_type:
        raise TypeError(f"a reference holds an array that is not weak, not {init}")
    return (AbstractRef(init),)


def evaluate_get(engine: Engine, p: RefParams, xs: Sequence[Any]) -> Sequence[object]:
    return (xs[0].value,)


def constants_only(*_: object) -> Never:
    """Raise the error for a tangent that would be lost.

    A reference that rules of the user's for derivatives take is not discharged.
    """
    raise ValueError(
        "a value that is differentiated is written to a reference which is not. Move "
        "the array reference to the differentiated arguments, or write "
        "lax.stop_gradient of the value"
    )


def evaluate_new(
    engine: Engine, p: NewRefParams, xs: Sequence[Any]
) -> Sequence[object]:
    return (Cell(xs[0]),)


def evaluate_set(
    engine: Engine, p: SetRefParams, xs: Sequence[Any]
) -> Sequence[object]:
    cell, value = xs
    cell.value = value
    return ()


def touching_row[P: RefParams](
    name: str,
    kind: type[P],
    typing: TypeRule[P],
    evaluate: Callable[[Engine, P, Sequence[Any]], Sequence[Any]],
    jvp: Callable[..., Never] | None = None,
) -> Row[P]:
    """The row of what touches a reference: transformations discharge it first."""

    def undischarged(*_: object) -> Never:
        raise MissingRule(
            f"{name} touches a mutable reference, which this transformation does not "
            "know; make the program pure first: verax.ref.discharge"
        )

    return Row(
        name,
        kind,
        typing=typing,
        evaluate=evaluate,
        jvp=jvp or undischarged,
        batch=undischarged,
        lower=undischarged,
        sharding=as_typed,
        traits=Traits(flops=no_flops),
    )


get_ref_p = touching_row(
    "get_ref",
    GetRefParams,
    lambda p, avals: (reference(avals).inner_aval,),
    evaluate_get,
)
set_ref_p = touching_row(
    "set_ref", SetRefParams, set_typing, evaluate_set, constants_only
)
new_ref_p = touching_row("new_ref", NewRefParams, new_typing, evaluate_new)
freeze_p = touching_row(
    "freeze",
    FreezeParams,
    lambda p, avals: (reference(avals).inner_aval,),
    evaluate_get,
)
GET, SET = GetRefParams(), SetRefParams()
NEW, FREEZE = NewRefParams(), FreezeParams()


class BoundRef(Ref):
    """A reference that equations take as an operand."""

    __slots__ = ("ended",)

    ended: Source | None

    @property
    def takes_constants(self) -> bool:
        """Whether what is written is a constant to derivatives."""
        return False

    def check_alive(self) -> None:
        """Raise ValueError if it was frozen or freed."""
        if self.ended is not None:
            raise ValueError(
                f"a reference to {self.inner_aval} was used after it was frozen or "
                f"freed at {self.ended}"
            )

    def read(self) -> Array:
        self.check_alive()
        return get_ref_p.call(GET, self)

    def write(self, value: Array) -> None:
        self.check_alive()
        set_ref_p.bind(SET, self, value)


def operand_aval(x: object) -> ShapedArray:
    """The type of an operand: an array, or a reference."""
    return x.aval if isinstance(x, BoundRef) else aval_of(x)


class ConcreteRef(BoundRef):
    """A reference outside of traces: it holds an array.

    Arrays never change, so what it holds may be shared with whoever read it; `shared`
    says so, for the memory must not be reused then. Once the address was asked for,
    nothing is shared any more: the values stay `pinned` where they are.
    """

    __module__ = "verax"
    __slots__ = ("__weakref__", "kind", "made", "pinned", "shared", "value")

    value: Array

    def __init__(self, value: Array, made: Source, kind: str | None = None) -> None:
        self.aval = AbstractRef(value.aval)
        self.value = value
        self.shared = True
        self.pinned = False
        self.kind = kind
        self.made = made
        self.ended = None

    @property
    def takes_constants(self) -> bool:
        """Whether what is written is a constant to derivatives."""
        return self.kind is not None and self.kind.startswith("no_grad")

    @property
    def sharding(self) -> Any:
        """The sharding of the values."""
        return self.value.sharding

    @property
    def committed(self) -> Any:
        """Whether the user chose the device."""
        return self.value.committed

    @property
    def format(self) -> Any:
        """The sharding of the values, and their layout."""
        return self.value.format

    def unsafe_buffer_pointer(self) -> int:
        """The address of the values on their device, where they stay from now on."""
        self.value, self.shared, self.pinned = self.unshared(), False, True
        pointer: int = self.value.unsafe_buffer_pointer()
        return pointer

    def unshared(self) -> Any:
        """Its values, in memory that nobody else uses."""
        return copy(self.value) if self.shared else self.value

    def __repr__(self) -> str:
        text = repr(self.value)
        return f"Ref{text[text.index('(') :]}" if "(" in text else f"Ref({text})"


class TracedRef(BoundRef, Staged):
    """A reference under tracing: an input of the jaxpr, or one that is made there."""

    __module__ = "verax"
    __slots__ = ("__weakref__", "atom", "builder", "made")

    def __init__(
        self, builder: Builder, atom: Atom, made: Source | None = None
    ) -> None:
        self.aval = atom.aval
        self.builder = builder
        self.atom = atom
        self.made = made
        self.ended = None

    def __repr__(self) -> str:
        return f"Traced<{self.aval}> under {self.builder.purpose}"
