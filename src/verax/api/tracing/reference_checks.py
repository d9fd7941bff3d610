"""Floor 5: references among the arguments and results of traces: what is refused.

A reference comes into a trace once, and never out of it::

    check_closed_over(opened, leaves, describe)     # passed, and closed over, too
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from verax.api.tracing.wrapping import (
    Describe,
    function_name,
    name_and_line,
    short_name,
)
from verax.backend import pytrees
from verax.ir.avals import HasType, ShapedArray
from verax.ir.jaxpr import Jaxpr
from verax.rules.rows.leaks import depends_on
from verax.rules.rows.references import BoundRef, ConcreteRef, TracedRef
from verax.rules.values.reference import Ref, RefView
from verax.transforms.references import references


def has_references(jaxpr: Jaxpr) -> bool:
    """Whether a program takes references, or closes over some."""
    if any(references(jaxpr)):
        return True
    return any([isinstance(c.literal.value, Ref) for c in jaxpr.used_consts])


def is_part(x: object) -> bool:
    """Whether this is a part of a reference, which is a tree."""
    return isinstance(x, RefView)


def check_parts(
    what: str, args: object, leaves: Sequence[object], whole: Sequence[bool]
) -> None:
    """Raise TypeError if a part of a reference among the arguments is to be cut.

    `whole` says of each leaf whether the function gets all of it.
    """
    if not any([isinstance(x, Ref) for x in leaves]):
        return
    rest = iter(whole)
    for entry in pytrees.flatten(args, is_part)[0]:
        inside = pytrees.flatten(entry)[0] if is_part(entry) else [entry]
        if not all([next(rest) for _ in inside]) and is_part(entry):
            raise TypeError(
                f"TransformedRefs are not allowed here: {what} would cut the reference "
                f"of which it got a part, {entry!r}; pass the whole, or close over the "
                "part"
            )


def held(leaves: Sequence[object]) -> list[object]:
    """The leaves, with what references outside of traces hold instead of these."""
    return [x.value if isinstance(x, ConcreteRef) else x for x in leaves]


def is_input(ref: HasType) -> bool:
    """Whether a reference came into the trace, rather than being made there."""
    return isinstance(ref, BoundRef) and not (
        isinstance(ref, TracedRef) and ref.made is not None
    )


def returned(fun: Callable[..., object], ref: HasType) -> ValueError:
    """The error for a reference among the outputs of a trace."""
    origin = "was passed in or closed over"
    if isinstance(ref, TracedRef):
        named = depends_on(ref)
        if ref.made is not None:
            origin = f"was created on line {ref.made}"
        elif named:
            origin = f"was passed in as the argument {short_name(named[0])}"
    purpose = ref.builder.purpose if isinstance(ref, TracedRef) else "a trace"
    kind = "" if " " in function_name(fun) else "function "
    return ValueError(
        f"{kind}{name_and_line(fun)} traced for {purpose} returned a mutable array "
        f"reference of type {ref.aval}, but references cannot be returned; return what "
        f"it holds: ref[...]\n\nThe returned reference {origin}."
    )


def reference_aval(leaves: Sequence[object], i: int, describe: Describe) -> ShapedArray:
    """The type of leaf `i`, a reference.

    Raises:
        TypeError: it is a part of another.
        ValueError: it was frozen, or is an earlier leaf, too.
    """
    leaf = leaves[i]
    if not isinstance(leaf, BoundRef):
        raise TypeError(
            f"{describe()[i]}: {leaf!r} cannot be passed; pass the whole reference"
        )
    leaf.check_alive()
    for k, other in enumerate(leaves[:i]):
        if same_reference(leaf, other):
            names = describe()
            first, again = short_name(names[k]), short_name(names[i])
            raise ValueError(
                "only one reference to a mutable array may be passed as an argument to "
                f"a function, but for {names[i].rpartition(' of ')[2]} the mutable "
                f"array reference of type {leaf.aval} appeared at both {first} and "
                f"{again}"
            )
    return leaf.aval


def same_reference(x: object, y: object) -> bool:
    """Whether two values are the same reference."""
    if isinstance(x, TracedRef) and isinstance(y, TracedRef):
        return x.builder is y.builder and x.atom == y.atom
    return x is y


class HasCaptured(Protocol):
    """A function as a part of an equation: see `Opened`."""

    @property
    def captured(self) -> tuple[object, ...]: ...


def check_closed_over(
    opened: HasCaptured, leaves: Sequence[object], describe: Describe
) -> None:
    """Raise ValueError if a reference is an argument and closed over, too."""
    for x in opened.captured:
        for i, leaf in enumerate(leaves):
            if isinstance(x, Ref) and same_reference(x, leaf):
                raise ValueError(
                    f"a mutable array reference of type {x.aval} was both closed over "
                    f"and passed as the argument {short_name(describe()[i])}; use the "
                    "argument only"
                )
