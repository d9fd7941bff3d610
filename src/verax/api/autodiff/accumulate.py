"""Floor 5: where the cotangents of a pullback go: into references, or nowhere.

What a reference holds when the pullback is called is the cotangent of what the argument
held at the end, and what it holds afterwards that of what it held to begin with; for
an array, and a reference that is only read, that is accumulation::

    pull.with_refs(ref, GradValue())(ct)    # ref += gradient; (GradRef(), gradient)
"""

from collections.abc import Sequence
from typing import Any, Protocol, Self

from attrs import frozen

from verax.api.autodiff.kept_arguments import leaf_place
from verax.api.autodiff.pullback import LinearPart
from verax.api.trees.pytrees import register_pytree_node_class
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.avals import AbstractRef, ShapedArray, is_reference
from verax.ir.records import ReprMixin
from verax.rules.rows.references import BoundRef

type Mask = tuple[bool, ...]


class Placeholder:
    """A node of a tree without leaves."""

    __slots__ = ()

    def tree_flatten(self) -> tuple[tuple[()], None]:
        """No leaves."""
        return (), None

    @classmethod
    def tree_unflatten(cls, _: None, leaves: object) -> Self:
        """Another one."""
        return cls()


@frozen(repr=False)
class GradValue(ReprMixin):
    """In `with_refs`: return this gradient, as usual."""

    __module__ = "verax.ad"


@frozen(repr=False)
class DontWant(ReprMixin):
    """In `with_refs`: do not compute this gradient."""

    __module__ = "verax.ad"


@register_pytree_node_class
@frozen(repr=False)
class GradRef(Placeholder, ReprMixin):
    """Stands for a gradient that went into a reference."""

    __module__ = "verax.ad"


@register_pytree_node_class
@frozen(repr=False)
class DidntWant(Placeholder, ReprMixin):
    """Stands for a gradient that nobody wanted."""

    __module__ = "verax.ad"


class Point(Protocol):
    """What is known of the function at which a pullback stands."""

    @property
    def name(self) -> str: ...
    @property
    def in_tree(self) -> PyTreeDef: ...
    @property
    def avals(self) -> tuple[ShapedArray, ...]: ...
    @property
    def active(self) -> Mask: ...
    @property
    def finals(self) -> tuple[int | None, ...]: ...
    def checked(self, cotangents: tuple[Any, ...]) -> list[object | None]: ...
    def cotangents(self, outs: Sequence[Any], mask: Sequence[bool]) -> list[Any]: ...


class Pulls(Protocol):
    """A pullback that takes cotangents of what references hold at the end."""

    @property
    def at(self) -> Point: ...
    @property
    def nonzero(self) -> Mask: ...
    @property
    def linear(self) -> LinearPart: ...
    def given(self, cts: Sequence[object | None]) -> tuple[Mask, list[Any]]: ...


def check_no_references(at: Point) -> None:
    """Raise ValueError if an argument is a reference, whose gradient needs one."""
    for i, aval in enumerate(at.avals):
        if isinstance(aval, AbstractRef):
            raise no_gradient_ref(at, i)


def no_gradient_ref(at: Point, i: int) -> ValueError:
    """The error for a reference without one for its gradient."""
    return ValueError(
        f"{leaf_place(at.in_tree, i)} of {at.name} is a reference, so its gradient "
        "must be accumulated into a reference: pullback.with_refs(grad_ref)(ct), where "
        "new_ref(zeros) makes grad_ref"
    )


class Accumulating:
    """A pullback whose results go where the entries of `with_refs` say."""

    def __init__(self, pull: Pulls, entries: tuple[Any, ...]) -> None:
        at = pull.at
        leaves, tree = pytrees.flatten(entries)
        due = at.in_tree.children()[0]
        if tree != due:
            raise ValueError(
                f"with_refs takes an entry for each leaf of the arguments of {at.name} "
                "(a Ref, GradValue() or DontWant()), so a tree of the structure "
                f"{due}, not {tree}"
            )
        for i, (entry, aval) in enumerate(zip(leaves, at.avals, strict=True)):
            self.check(at, i, entry, aval)
        self.pull = pull
        self.leaves = leaves

    def check(self, at: Point, i: int, entry: object, aval: ShapedArray) -> None:
        """Raise ValueError for a reference of another type."""
        if not isinstance(entry, BoundRef):
            if is_reference(entry):
                raise ValueError(
                    f"with_refs: {entry!r} cannot hold a gradient; pass the whole "
                    "reference"
                )
            return
        due = AbstractRef(aval.tangent())
        if entry.aval is not due:
            raise ValueError(
                f"with_refs: the gradient for {leaf_place(at.in_tree, i)} of {at.name} "
                f"needs a reference of type {due}, not {entry.aval}"
            )

    def __call__(self, *cotangents: Any) -> tuple[Any, ...]:
        """The results of the pullback, with placeholders for what went elsewhere.

        Raises:
            ValueError: an argument is a reference, and there is none for its gradient.
        """
        at, leaves = self.pull.at, self.leaves
        cts = at.checked(cotangents)
        for i, (entry, aval) in enumerate(zip(leaves, at.avals, strict=True)):
            known = isinstance(entry, BoundRef | DontWant)
            if isinstance(aval, AbstractRef) and not known:
                raise no_gradient_ref(at, i)
        expected = tuple([not isinstance(entry, DontWant) for entry in leaves])
        result = self.cotangents(cts, self.state(at), expected)
        results = [
            self.placed(i, entry, ct, i in at.finals)
            for i, (entry, ct) in enumerate(zip(leaves, result, strict=True))
        ]
        args, _ = at.in_tree.unflatten(results)
        return tuple(args)

    def cotangents(
        self, cts: Sequence[object | None], state: Sequence[Any], due: Mask
    ) -> list[Any]:
        """Cotangents of the leaves that are `due`, zeros for others.

        `state` are those of what references hold at the end, None for zero.
        """
        pull = self.pull
        given, live = pull.given(cts)
        marks = pull.nonzero[len(pull.nonzero) - len(state) :]
        ends = [x for x, flag in zip(state, marks, strict=True) if flag]
        flags = (*given[: len(given) - len(ends)], *[x is not None for x in ends])
        live += [x for x in ends if x is not None]
        moving = zip(due, pull.at.active, strict=True)
        chosen = [flag for flag, moves in moving if moves]
        return pull.at.cotangents(*pull.linear.pulled_for(flags, live, chosen))

    def state(self, at: Point) -> list[Any]:
        """The cotangents of what references hold at the end; None for zero."""
        entries = [None if i is None else self.leaves[i] for i in at.finals]
        return [x.read() if isinstance(x, BoundRef) else None for x in entries]

    def placed(self, i: int, entry: Any, ct: Any, written: bool) -> Any:
        """What stands for a result, which goes where its entry says."""
        if isinstance(entry, DontWant):
            return DidntWant()
        if not isinstance(entry, BoundRef):
            return ct
        if self.pull.at.active[i]:
            if written:
                entry.write(entry.filled(ct))
            else:
                entry.addupdate(ct)
        return GradRef()
