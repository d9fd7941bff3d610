"""Floor 6: what is said where functions of control flow return what does not agree.

One idea: two trees of types are compared place by place, and each place that differs is
one clause, in the words by which programs know JAX's::

    check_carry("scan", f, in_tree, avals, out_tree, result)
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from verax.api.tracing.wrapping import ParameterNames, name_and_line
from verax.api.trees.mismatch import Difference, first_difference
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.avals import ShapedArray
from verax.ops.structure.casts import cast_advice, fits_within, varying_too

LEAF: Final = type("array", (), {})()
"""Stands for a leaf where structures are compared; messages show its class."""


class Unequal(NamedTuple):
    """A place where two trees differ, what they have there, and in what they differ."""

    place: str
    left: str
    right: str
    why: str


def mismatch(expected: PyTreeDef, actual: PyTreeDef, root: str) -> Difference:
    """The first place where two structures differ, and how."""
    left, right = skeleton(expected), skeleton(actual)
    if out := first_difference(left, right, root, None):
        return out
    if out := first_difference(right, left, root, None):  # a container for a leaf
        kind, _, _ = out.detail.removeprefix("expected ").partition(",")
        return Difference(out.place, out.kind, f"expected array, got {kind}")
    return Difference(root, "different pytree metadata", "the structures differ")


def skeleton(tree: PyTreeDef) -> object:
    """A tree of this structure, to be looked at."""
    return tree.unflatten([LEAF] * tree.num_leaves)


def paths(tree: PyTreeDef) -> Iterator[str]:
    """The key paths of the leaves as strings."""
    filled = tree.unflatten(range(tree.num_leaves))
    for path, _ in pytrees.flatten_with_path(filled)[0]:
        yield "".join(map(str, path))


def unequal_nodes(left: object, right: object, place: str) -> Iterator[Unequal]:
    """Every place at which two trees have other nodes.

    >>> print(*unequal_nodes((1, [2]), (1, [2, 3]), ""))
    Unequal(place='[1]', left='a list of length 1', right='a list of length 2', why='the
    lengths do not match')
    """
    ours = pytrees.flatten_one_level_with_keys(left)
    theirs = pytrees.flatten_one_level_with_keys(right)
    if ours is None and theirs is None:
        return
    if ours is None or theirs is None or type(left) is not type(right):
        first = "a pytree leaf" if ours is None else f"a {type(left)}"
        second = "a pytree leaf" if theirs is None else f"a {type(right)}"
        yield Unequal(place, first, second, "their Python types differ")
        return
    children, others = list(ours[0]), list(theirs[0])
    if len(children) != len(others):
        first, second = (count_of(left, len(x)) for x in (children, others))
        sequence = isinstance(left, tuple | list)
        what = "lengths" if sequence else "numbers of children"
        why = f"the {what} do not match"
        if not sequence:
            keys = {str(key) for key, _ in children} ^ {str(key) for key, _ in others}
            why += f", with the symmetric difference of key sets: {sorted(keys)}"
        yield Unequal(place, first, second, why)
        return
    if ours[1] != theirs[1]:
        first, second = (
            f"a {type(left)} with pytree metadata {x}" for x in (ours[1], theirs[1])
        )
        why = "the pytree node metadata does not match"
        yield Unequal(place, first, second, why)
        return
    for (key, child), (_, other) in zip(children, others, strict=True):
        yield from unequal_nodes(child, other, f"{place}{key}")


def count_of(node: object, count: int) -> str:
    """A node with so many children, in words."""
    if isinstance(node, tuple | list):
        return f"a {type(node).__name__} of length {count}"
    return f"a {type(node)} with {count} child{'ren' * (count != 1)}"


def type_difference(left: ShapedArray, right: ShapedArray) -> tuple[str, str, str]:
    """Two types as they are shown beside each other, and in what they differ.

    >>> import numpy as np
    >>> types = ShapedArray((), np.dtype("int32")), ShapedArray((2,), np.dtype("int32"))
    >>> type_difference(*types)
    ('int32[]', 'int32[2]', 'the shapes do not match')
    """
    parts = (
        ("dtypes", left.dtype != right.dtype),
        ("shapes", left.shape != right.shape),
        ("varying manual axes", left.vma != right.vma),
    )
    reasons = [f"the {what} do not match" for what, differ in parts if differ]
    texts = left.str_short(), right.str_short()
    if texts[0] == texts[1]:
        texts = str(left), str(right)
    return (*texts, ", and ".join(reasons) or "the shardings do not match")


def listed(clauses: Sequence[str]) -> str:
    """A clause as a sentence, or several as a list."""
    if len(clauses) == 1:
        return f"{re.sub('^the ', 'The ', clauses[0])}."
    return ";\n".join([f"  * {clause}" for clause in clauses]) + "."


def check_carry(
    name: str,
    fun: object,
    in_tree: PyTreeDef,
    avals: Sequence[ShapedArray],
    out_tree: PyTreeDef,
    result: Sequence[ShapedArray],
    *,
    counted: bool = False,
) -> None:
    """Raise TypeError with each place where the carry comes out as something else.

    Places begin with the name of the function's parameter. With `counted`, that is its
    second one, and the carry is a pair of an index and what the function makes.
    """
    if counted:
        in_tree, out_tree = in_tree.children()[1], out_tree.children()[1]
        avals, result = avals[1:], result[1:]
    types = zip(avals, result, strict=True) if in_tree == out_tree else ()
    wrong = [i for i, (a, b) in enumerate(types) if not agrees(a, b)]
    if in_tree == out_tree and not wrong:
        return
    root = ParameterNames(fun).name(int(counted)) or "carry"
    begin = f"{name} body function carry input and carry output must have"
    who = name_and_line(fun)
    if in_tree != out_tree:
        raise other_carry(root, begin, who, in_tree, out_tree)
    places = list(paths(in_tree))
    pairs = [(places[i], *type_difference(avals[i], result[i])) for i in wrong]
    clauses = [
        f"the input carry {component(root, place)} has type {a} but the corresponding "
        f"output carry component has type {b}, so {why}"
        for place, a, b, why in pairs
    ]
    cases = zip(
        avals,
        result,
        [f"the initial carry value, {root}{x}" for x in places],
        strict=True,
    )
    raise TypeError(
        f"{begin} equal types, but they differ:\n\n{listed(clauses)}\n"
        + (
            cast_advice(cases)
            or f"\nRevise {who} so that it returns a carry of the types it takes: "
            "convert the initial value or the returned value (astype)."
        )
    )


def agrees(a: ShapedArray, b: ShapedArray) -> bool:
    """Whether a carry of the type `a` may come out as one of the type `b`."""
    return a == b or fits_within(b.strong(), a.strong())


def other_carry(
    root: str, begin: str, who: str, in_tree: PyTreeDef, out_tree: PyTreeDef
) -> TypeError:
    """The error of a carry that comes out as another pytree."""
    nodes = list(unequal_nodes(skeleton(in_tree), skeleton(out_tree), ""))
    clauses = [
        f"the input carry {component(root, x.place)} is {x.left} but the "
        f"corresponding component of the carry output is {x.right}, so {x.why}"
        for x in nodes
    ]
    none = any([x.right == f"a {type(None)}" for x in nodes])
    return TypeError(
        f"{begin} the same pytree structure, but they differ:\n\n{listed(clauses)}"
        f"\n\nRevise {who} so that it returns a carry of the structure {in_tree}, "
        f"not {out_tree}.{' Is there a return statement?' if none else ''}"
    )


def component(root: str, place: str) -> str:
    """A part of a carry, or all of it."""
    return f"component {root}{place}" if place else root


def check_structures(
    name: str, trees: Sequence[PyTreeDef], names: Sequence[str], whos: Sequence[str]
) -> None:
    """Raise TypeError with the places where structures of branches' results differ."""
    for tree, label in zip(trees, names, strict=True):
        if tree != trees[0]:
            clauses = [
                f"{names[0]} output{at(x.place)} is {x.left} but {label} output"
                f"{at(x.place)} is {x.right}, so {x.why}"
                for x in unequal_nodes(skeleton(trees[0]), skeleton(tree), "")
            ]
            raise TypeError(
                f"{name} branch outputs must have the same pytree structure, but they "
                f"differ:\n\n{listed(clauses)}\n\nThe branches are {'; '.join(whos)}."
            )


def check_branch_types(
    name: str,
    tree: PyTreeDef,
    types: Sequence[Sequence[ShapedArray]],
    names: Sequence[str],
    whos: Sequence[str],
) -> None:
    """Raise TypeError with the places where types of branches' results differ."""
    places = list(paths(tree))
    for avals, label in zip(types, names, strict=True):
        pairs = [
            (place, *type_difference(a, b))
            for place, a, b in zip(places, types[0], avals, strict=True)
            if a.strong() is not b.strong()
        ]
        if not pairs:
            continue
        clauses = [
            f"the output of {names[0]}{at(place)} has type {a} but the corresponding "
            f"output of {label} has type {b}, so {why}"
            for place, a, b, why in pairs
        ]
        advice = cast_advice(varying_cases(places, types, names))
        raise TypeError(
            f"{name} branches must have equal output types but they differ.\n\n"
            + listed(clauses)
            + "\n"
            + (advice or "\nConvert the results of one of them (astype, reshape).")
            + f"\nThe branches are {'; '.join(whos)}."
        )


def at(place: str) -> str:
    """The path of an output within the result."""
    return f" at path {place}" if place else ""


def varying_cases(
    places: Sequence[str],
    types: Sequence[Sequence[ShapedArray]],
    names: Sequence[str],
) -> Iterator[tuple[ShapedArray, ShapedArray, str]]:
    """Results of branches, and those of others, which may vary along more axes."""
    for i, path in enumerate(places):
        axes = frozenset().union(*[avals[i].vma for avals in types])
        due = varying_too(types[0][i], axes)
        for avals, name in zip(types, names, strict=True):
            yield avals[i], due, f"the output of {name}{at(path)}"
