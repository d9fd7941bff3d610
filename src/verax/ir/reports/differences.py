"""Floor 0: what differs between two jaxprs, in words and as text.

One idea: programs are numbered canonically, so equal parts are equal values, and the
first pair that is not equal is the answer::

    print(diff(before, after))
    # equation 1: the primitives are mul and add
    # - b:f32[8] = mul a 2.0:f32[]
    # + b:f32[8] = add a 2.0:f32[]
"""

from collections.abc import Sequence
from difflib import unified_diff

from attrs import fields

from verax.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Params
from verax.ir.text.printer import print_jaxpr


def diff(left: Jaxpr | ClosedJaxpr, right: Jaxpr | ClosedJaxpr) -> str:
    """The difference of `right` and `left`: the first one, then all changed lines.

    The result is empty if and only if they are equal; arrays are equal if they are the
    same object. Equations are shown with the user's line if it is known.
    """
    if isinstance(left, ClosedJaxpr) or isinstance(right, ClosedJaxpr):
        return closed_diff(left, right)
    if left == right:
        return ""
    changes = unified_diff(
        print_jaxpr(left).splitlines(),
        print_jaxpr(right).splitlines(),
        "left",
        "right",
        lineterm="",
    )
    return "\n".join([first_difference(left, right), *changes])


def closed_diff(left: Jaxpr | ClosedJaxpr, right: Jaxpr | ClosedJaxpr) -> str:
    """`diff` of programs with constants: those come last."""
    ours = left if isinstance(left, ClosedJaxpr) else ClosedJaxpr(left)
    theirs = right if isinstance(right, ClosedJaxpr) else ClosedJaxpr(right)
    if ours == theirs:
        return ""
    pairs = enumerate(zip(ours.consts, theirs.consts, strict=False))
    return diff(ours.jaxpr, theirs.jaxpr) or next(
        (
            f"constant {number} ({ours.jaxpr.constvars[number]}): two different arrays"
            for number, (a, b) in pairs
            if a is not b
        ),
        f"the numbers of constants are {len(ours.consts)} and {len(theirs.consts)}",
    )


def first_difference(left: Jaxpr, right: Jaxpr) -> str:
    """The first part in which two jaxprs that are not equal differ, in words."""
    for part in ("constvars", "invars"):
        ours, theirs = getattr(left, part), getattr(right, part)
        if ours != theirs:
            return f"{part}: {spaced(ours)} and {spaced(theirs)}"
    for number, (a, b) in enumerate(zip(left.eqns, right.eqns, strict=False)):
        if a != b:
            return f"equation {number}{lines(a, b)}: {equation_difference(a, b)}"
    if len(left.eqns) != len(right.eqns):
        return f"the numbers of equations are {len(left.eqns)} and {len(right.eqns)}"
    return f"outputs: {spaced(left.outvars)} and {spaced(right.outvars)}"


def lines(left: Eqn, right: Eqn) -> str:
    """The user's lines of two equations, as far as they are known."""
    known = [str(e.source) for e in (left, right) if e.source.code is not None]
    return f" (from {' and '.join(dict.fromkeys(known))})" if known else ""


def equation_difference(left: Eqn, right: Eqn) -> str:
    """The first part in which two equations that are not equal differ."""
    if left.primitive != right.primitive:
        names = f"{left.primitive.name} and {right.primitive.name}"
        same = left.primitive.name == right.primitive.name
        return f"the primitives are {names}{', of different rows' if same else ''}"
    if left.params != right.params:
        return f"{left.primitive.name}: {params_difference(left.params, right.params)}"
    part = "operands" if left.invars != right.invars else "results"
    ours, theirs = (
        (left.invars, right.invars)
        if part == "operands"
        else (left.outvars, right.outvars)
    )
    return f"{left.primitive.name}: the {part} are {spaced(ours)} and {spaced(theirs)}"


def params_difference(left: Params, right: Params) -> str:
    """The first field in which two params differ; inside of jaxprs, where."""
    if type(left) is not type(right):
        return f"the params are {type(left).__name__} and {type(right).__name__}"
    for attribute in fields(type(left)):
        ours: object = getattr(left, attribute.name)
        theirs: object = getattr(right, attribute.name)
        if ours != theirs:
            return f"{attribute.name}: {value_difference(ours, theirs)}"
    return "the params are not equal, though all fields are"


def value_difference(left: object, right: object) -> str:
    """The difference of two values of one field."""
    if isinstance(left, Jaxpr) and isinstance(right, Jaxpr):
        return first_difference(left, right)
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        for number, (ours, theirs) in enumerate(zip(left, right, strict=True)):
            if ours != theirs and isinstance(ours, Jaxpr) and isinstance(theirs, Jaxpr):
                return f"jaxpr {number}: {first_difference(ours, theirs)}"
    return f"{left!r} and {right!r}"


def spaced(parts: Sequence[object]) -> str:
    return " ".join(map(repr, parts)) or "none"
