"""Floor 5: the derivative of a function at a point, to be pushed or pulled.

One idea: it is the linear steps of the trace, on values or on atoms of a trace around;
reverse mode goes through them backwards, and a tangent program is written only for
those who ask for one::

    at, outs, linear = linearized(f, (x,), "vjp", has_aux=False)
    cotangents, mask = linear.pulled([one])
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Protocol, Self

from attrs import evolve, frozen

from verax.api.tracing.apply import (
    COMPUTING,
    ENGINE,
    apply,
    as_array,
    as_arrays,
    current_builder,
    is_observed,
    observed,
    typed_atoms,
)
from verax.api.trees.pytrees import register_pytree_node_class
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.avals import AbstractRef, ShapedArray, is_reference
from verax.ir.jaxpr import Jaxpr, Literal, consts_of
from verax.ir.records import ReprMixin
from verax.rules.rows.builder import Builder, Tracer
from verax.rules.rows.references import BoundRef
from verax.rules.rows.row import MissingRule
from verax.rules.values.state import current_context
from verax.transforms.engine.derivatives import (
    Step,
    Steps,
    backward_types,
    identity_of,
    linearize_into,
    pull_back,
    tangent_program,
    transpose,
    transpose_into,
)
from verax.transforms.public import hoist

# -----------------------------------------------------------------------------
# The residuals of a pullback that are arguments of its function.
#
# They stand apart from the others, so that a caller may drop them and put them back::
#
#     y, pull = vjp(f, x, w, saveable_args=(True, False))
#     pull.args_res               # [x, NotSaveable()]
#     pull.args_res[1] = w


type Layout = PyTreeDef | tuple[Layout, ...]
"""The structure of an argument, or a tuple where `saveable_args` has one."""


@frozen(repr=False)
class Absent(ReprMixin):
    """Stands where an argument is not kept; a pytree without leaves."""

    def tree_flatten(self) -> tuple[tuple[()], None]:
        """No children."""
        return (), None

    @classmethod
    def tree_unflatten(cls, metadata: None, children: object) -> Self:
        """It again."""
        return cls()


@register_pytree_node_class
class NotNeeded(Absent):
    """Stands for an argument whose value the derivative does not need."""

    def __repr__(self) -> str:
        return "NotNeeded()"


@register_pytree_node_class
class NotSaveable(Absent):
    """Stands for an argument that the derivative needs and must not keep."""

    def __repr__(self) -> str:
        return "NotSaveable()"


def is_absent(x: object) -> bool:
    """Whether `x` stands for an argument that is not kept."""
    return isinstance(x, Absent)


def layouts_of(
    saveable: object, trees: Sequence[PyTreeDef], what: str = "saveable_args"
) -> tuple[list[bool], list[Layout]]:
    """Flags of the leaves that may be kept, and how each argument is shown.

    Raises:
        ValueError: `saveable`, which messages call `what`, is not a bool, or a tuple of
            such for each argument.
    """
    if isinstance(saveable, bool):
        return [saveable] * sum([tree.num_leaves for tree in trees]), [*trees]
    parts = parts_of(saveable, trees, what, "")
    return [x for own, _ in parts for x in own], [layout for _, layout in parts]


def parts_of(
    saveable: object, trees: Sequence[PyTreeDef], what: str, place: str
) -> list[tuple[list[bool], Layout]]:
    """`layout_of` for each entry of a tuple, which stands for the `trees`."""
    if not isinstance(saveable, tuple):
        raise ValueError(
            f"{what} must be a tuple-tree of bools, but {what}{place} is "
            f"{saveable!r} of type {type(saveable).__name__}"
        )
    if len(saveable) != len(trees):
        whole = f"args{place}" if place else "the arguments"
        raise ValueError(
            f"{what}{place} has {len(saveable)} entries, but {whole} have "
            f"another number of children: {len(trees)}"
        )
    return [
        layout_of(entry, tree, what, f"{place}[{i}]")
        for i, (entry, tree) in enumerate(zip(saveable, trees, strict=True))
    ]


def layout_of(
    saveable: object, tree: PyTreeDef, what: str, place: str
) -> tuple[list[bool], Layout]:
    """Flags of the leaves of one part that may be kept, and how it is shown."""
    if isinstance(saveable, bool):
        return [saveable] * tree.num_leaves, tree
    if isinstance(saveable, tuple) and tree.num_nodes == 1 and tree.num_leaves == 1:
        raise ValueError(
            f"{what}{place} is a tuple, but args{place} is a leaf: it takes "
            "True or False"
        )
    parts = parts_of(saveable, tree.children(), what, place)
    flags = [x for own, _ in parts for x in own]
    return flags, tuple([layout for _, layout in parts])


def laid_out(layout: Layout, leaves: Iterator[object]) -> object:
    """The next leaves in a layout."""
    if isinstance(layout, tuple):
        return tuple([laid_out(part, leaves) for part in layout])
    return layout.unflatten([next(leaves) for _ in range(layout.num_leaves)])


def argument_leaves(
    result: Sequence[object], trees: Sequence[PyTreeDef]
) -> list[object]:
    """The leaves that stand in `args_res` for those of the arguments.

    Raises:
        ValueError: there is another number of arguments, or of leaves of one.
    """
    if len(result) != len(trees):
        raise ValueError(
            f"args_res must hold one entry for each of the {len(trees)} arguments, not "
            f"{len(result)}"
        )
    leaves = []
    for i, (part, tree) in enumerate(zip(result, trees, strict=True)):
        own, _ = pytrees.flatten(part, is_absent)
        if len(own) != tree.num_leaves:
            raise ValueError(
                f"args_res[{i}] has {len(own)} leaves where args[{i}] has "
                f"{tree.num_leaves}: put the argument back that the pullback needs, as "
                f"in pullback.args_res[{i}] = ..."
            )
        leaves += own
    return leaves


def leaf_place(tree: PyTreeDef, i: int) -> str:
    """The path of leaf `i` of (args, kwargs): `args[1]['w']`."""
    numbered = tree.unflatten(range(tree.num_leaves))
    path, _ = pytrees.flatten_with_path(numbered)[0][i]
    return "args" + "".join(map(str, path[1:]))


# -----------------------------------------------------------------------------
# The derivative of a function at a point, to be pushed or pulled.


type Mask = tuple[bool, ...]

NO_OPERANDS: Final[Mapping[int, int]] = MappingProxyType({})


@frozen(eq=False, repr=False)
class LinearPart(ReprMixin):
    """The derivative of a program at a point.

    Attributes:
        nonzero: which outputs have a tangent.
        given: the tangent program and its residuals, if it was written already.
        steps: else the linear steps, on values, or on the atoms of `builder`.
        builder: the trace to which they belong.
        operands: the number of each operand, by its identity; none unless they were
            asked for.
    """

    nonzero: Mask
    given: tuple[Jaxpr, tuple[object, ...]] | None
    steps: Steps[Any] | None = None
    builder: Builder | None = None
    operands: Mapping[int, int] = NO_OPERANDS

    @property
    def places(self) -> tuple[int | None, ...]:
        """For each saved value, which operand it is; None for any other."""
        saved = [] if self.steps is None else self.steps.saved
        return tuple([self.operands.get(identity_of(x)) for x in saved])

    @cached_property
    def program(self) -> tuple[Jaxpr, tuple[Any, ...]]:
        """The tangent program, and its residuals, which are its first inputs."""
        if self.given is not None:
            return self.given
        assert self.steps is not None
        saved = self.steps.saved
        owner = self.builder
        residuals = saved if owner is None else owner.tracers(saved)
        return tangent_program(ENGINE, self.steps), tuple(residuals)

    def parted(self) -> tuple[Jaxpr, tuple[object, ...]]:
        """`program`, with the arrays that it captured among the residuals, in front.

        So no array is left in it, and programs that differ in these alone are equal.
        """
        tangent, residuals = self.program
        if not tangent.used_consts:
            return tangent, residuals
        closed = hoist(tangent)
        free = closed.jaxpr
        invars = (*free.constvars, *free.invars)
        constants = [as_array(value) for value in closed.consts]
        return Jaxpr((), invars, free.eqns, free.outvars), (*constants, *residuals)

    @property
    def tangent(self) -> Jaxpr:
        """(residuals, tangents) to tangents, linear in the tangents."""
        return self.program[0]

    @property
    def residuals(self) -> tuple[Any, ...]:
        """The residuals: what the derivative needs of the point."""
        return self.program[1]

    @property
    def linear_inputs(self) -> Mask:
        """Flags of the tangent program's inputs that are tangents."""
        count = len(self.residuals)
        return (False,) * count + (True,) * (len(self.tangent.invars) - count)

    def transposed(self, given: Mask, cts: Sequence[object]) -> tuple[Any, Mask]:
        """Cotangents of the inputs, and of which, by way of the tangent program.

        `cts` are the cotangents of the outputs that `given` marks among those that
        have a tangent.
        """
        tangent, linear = self.tangent, self.linear_inputs
        args, builder = [*self.residuals, *cts], current_builder()
        atoms = typed_atoms(args, backward_types(tangent, linear, given))
        if builder is None or atoms is None or is_observed():
            jaxpr, mask = observed(
                "transpose", tangent, lambda p: transpose(ENGINE, p, linear, given)
            )
            return apply(jaxpr, args), mask
        with builder.undone_on_error():
            out, mask = transpose_into(ENGINE, builder, tangent, linear, given, atoms)
        return builder.tracers(out), mask

    def pulled(self, given: Mask, cts: Sequence[object]) -> tuple[Any, Mask]:
        """`transposed`, step by step where that can be done."""
        steps, builder = self.steps, current_builder()
        if steps is None or any([step.tangent.effects for step in steps.steps]):
            return self.transposed(given, cts)
        try:
            if builder is not None:
                return self.pulled_into(builder, steps, given, cts)
            if self.builder is None:
                out, mask = pull_back(
                    ENGINE, COMPUTING, steps, given, [as_array(ct) for ct in cts]
                )
                return as_arrays(out), mask
        except MissingRule:
            pass  # the program knows the line that the message names
        return self.transposed(given, cts)

    def pulled_for(
        self, given: Mask, cts: Sequence[object], due: Sequence[bool]
    ) -> tuple[Any, Mask]:
        """`pulled`, of which only the `due` cotangents are computed."""
        if all(due):
            return self.pulled(given, cts)
        tangent, linear = self.tangent, self.linear_inputs
        jaxpr, mask = observed(
            "transpose", tangent, lambda p: transpose(ENGINE, p, linear, given)
        )
        used = [w for w, flag in zip(due, mask, strict=True) if flag]
        slim, needed = ENGINE.dce(jaxpr, tuple(used))
        args = zip([*self.residuals, *cts], needed, strict=True)
        arrays = apply(slim, [x for x, flag in args if flag])
        return arrays, tuple([m and w for m, w in zip(mask, due, strict=True)])

    def pulled_into(
        self, builder: Builder, steps: Steps[Any], given: Mask, cts: Sequence[object]
    ) -> tuple[object, Mask]:
        """`pulled`, written into a trace."""
        pairs = zip(steps.results, given, strict=True)
        atoms = typed_atoms(cts, [aval for (_, aval), flag in pairs if flag])
        if atoms is None:
            return self.transposed(given, cts)
        with builder.undone_on_error():
            if self.builder is not builder:
                steps = brought(builder, steps, self.builder)
            out, mask = pull_back(ENGINE, builder, steps, given, atoms)
        return builder.tracers(out), mask


def brought(builder: Builder, steps: Steps[Any], owner: Builder | None) -> Steps[Any]:
    """Steps on values, or on atoms of the trace `owner`, as steps on atoms here."""
    here = {
        identity_of(x): builder.atom(x if owner is None else Tracer(owner, x))
        for x in steps.saved
    }

    def moved(step: Step[Any]) -> Step[Any]:
        saved = [x if type(x) is Literal else here[identity_of(x)] for x in step.saved]
        return step._replace(saved=tuple(saved))

    return evolve(steps, steps=[moved(step) for step in steps.steps])


def operands_of(jaxpr: Jaxpr, ins: Sequence[object]) -> dict[int, int]:
    """The numbers of the inputs of `jaxpr`, by their identity.

    What the linear steps save was made while the inputs were there, so none of it has
    the identity of another object, even when an input is gone.
    """
    known = {identity_of(x): i for i, x in enumerate(ins) if type(x) is not Literal}
    # Not `used_consts`: to keep them takes longer, and nobody asks this program again.
    for const in consts_of(jaxpr.eqns, jaxpr.outvars):
        known.pop(id(const.literal.value), None)  # the function closed over it, too
    return known


def linear_part(
    jaxpr: Jaxpr, active: Mask, args: Sequence[object], first: int | None = None
) -> tuple[Sequence[object], LinearPart]:
    """The outputs of `jaxpr` on `args`, and its derivative there in `active` inputs.

    The derivative knows which of its residuals are operands, counted from `first`.
    """
    builder = current_builder()
    if builder is None:
        values = [as_array(x) for x in args]
        results, steps, nonzero = linearize_into(
            ENGINE, COMPUTING, jaxpr, active, values
        )
        known = NO_OPERANDS if first is None else operands_of(jaxpr, values[first:])
        return as_arrays(results), LinearPart(nonzero, None, steps, None, known)
    observer = current_context().observer
    atoms = None if observer else typed_atoms(args, jaxpr.in_avals)
    if atoms is None:

        def make(program: Jaxpr) -> tuple[Jaxpr, Jaxpr, Mask]:
            return ENGINE.linearize(program, active)

        forward, tangent, nonzero = (
            observer.part("linearize", jaxpr, make) if observer else make(jaxpr)
        )
        outs = apply(forward, args)
        count = len(jaxpr.outvars)
        return outs[:count], LinearPart(nonzero, (tangent, tuple(outs[count:])))
    with builder.undone_on_error():
        written, saved, nonzero = linearize_into(ENGINE, builder, jaxpr, active, atoms)
    known = NO_OPERANDS if first is None else operands_of(jaxpr, atoms[first:])
    return builder.tracers(written), LinearPart(nonzero, None, saved, builder, known)


# -----------------------------------------------------------------------------
# Where the cotangents of a pullback go: into references, or nowhere.
#
# What a reference holds when the pullback is called is the cotangent of what the
# argument held at the end, and what it holds afterwards that of what it held to begin
# with; for an array, and a reference that is only read, that is accumulation::
#
#     pull.with_refs(ref, GradValue())(ct)    # ref += gradient; (GradRef(), gradient)


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
    """The point at which a pullback stands, as far as the function is known."""

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
    def checked(self, cotangents: tuple[object, ...]) -> list[object | None]: ...
    def cotangents(
        self, outs: Sequence[object], mask: Sequence[bool], *, due: Mask
    ) -> list[Any]: ...


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
        "can't be returned as a value and must be accumulated into a reference: "
        "pullback.with_refs(grad_ref)(ct), where new_ref(zeros) makes grad_ref"
    )


class Accumulating:
    """A pullback whose results go where the entries of `with_refs` say."""

    def __init__(self, pull: Pulls, entries: tuple[object, ...]) -> None:
        at = pull.at
        leaves, tree = pytrees.flatten(entries)
        due = at.in_tree.children()[0]
        if tree != due:
            raise ValueError(
                "with_refs: tree structures differ: it takes an entry for each leaf of "
                f"the arguments of {at.name} (a Ref, GradValue() or "
                f"DontWant()), so a tree of the structure {due}, not {tree}"
                + ("; a NoneType is no entry" if None in entries else "")
            )
        for i, (entry, aval) in enumerate(zip(leaves, at.avals, strict=True)):
            self.check(at, i, entry, aval)
        self.pullback = pull
        self.leaves = leaves

    def check(self, at: Point, i: int, entry: object, aval: ShapedArray) -> None:
        """Raise ValueError for a reference of another type, or where one is due."""
        if isinstance(aval, AbstractRef) and not isinstance(entry, BoundRef | DontWant):
            raise no_gradient_ref(at, i)
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
                f"requires a ref of type {due}, not {entry.aval}"
            )

    def __call__(self, *cotangents: object) -> tuple[Any, ...]:
        """The results of the pullback, with placeholders for what went elsewhere."""
        return self.pull(self.pullback.at.checked(cotangents))

    @property
    def at(self) -> Point:
        """The trace at the point."""
        return self.pullback.at

    def pull(self, cts: Sequence[object | None]) -> tuple[Any, ...]:
        """The results, from checked cotangent leaves."""
        at, leaves = self.at, self.leaves
        expected = tuple([not isinstance(entry, DontWant) for entry in leaves])
        result = self.cotangents(cts, self.state(at), expected)
        results = [
            self.placed(i, entry, ct, i in at.finals)
            for i, (entry, ct) in enumerate(zip(leaves, result, strict=True))
        ]
        args, _ = at.in_tree.unflatten(results)
        return tuple(args)

    def cotangents(
        self, cts: Sequence[object | None], state: Sequence[object], due: Mask
    ) -> list[Any]:
        """Cotangents of the leaves that are `due`, None for others.

        `state` are those of what references hold at the end, None for zero.
        """
        pull = self.pullback
        given, live = pull.given(cts)
        marks = pull.nonzero[len(pull.nonzero) - len(state) :]
        ends = [x for x, flag in zip(state, marks, strict=True) if flag]
        flags = (*given[: len(given) - len(ends)], *[x is not None for x in ends])
        live += [x for x in ends if x is not None]
        moving = zip(due, pull.at.active, strict=True)
        chosen = [flag for flag, moves in moving if moves]
        outs, mask = pull.linear.pulled_for(flags, live, chosen)
        return pull.at.cotangents(outs, mask, due=due)

    def state(self, at: Point) -> list[Any]:
        """The cotangents of what references hold at the end; None for zero."""
        entries = [None if i is None else self.leaves[i] for i in at.finals]
        return [x.read() if isinstance(x, BoundRef) else None for x in entries]

    def placed(self, i: int, entry: object, ct: object, written: bool) -> Any:
        """The stand-in for a result, which goes where its entry says."""
        if isinstance(entry, DontWant):
            return DidntWant()
        if not isinstance(entry, BoundRef):
            return ct
        if self.pullback.at.active[i]:
            if written:
                entry.write(entry.filled(ct))
            else:
                entry.addupdate(ct)
        return GradRef()
