"""Floor 6: Einstein's sums: products of any number of arrays by index names.

One idea: a plan is made once per subscripts and shapes: `opt_einsum` finds the order,
and each step is one `dot_general` whose operands are chosen so that its result needs
no transpose, if that can be::

    einsum("ij,jk->ik", x, y)      # one dot_general
    einsum("bqhd,bkhd->bhqk", q, k)  # one dot_general
"""

from collections.abc import Callable, Sequence
from operator import index
from typing import Any, NamedTuple

from attrs import frozen

from verax.backend.eager.composites import remembered
from verax.ir.avals import Shape
from verax.ir.dtypes import DType, DTypeLike, is_bool
from verax.ir.records import ReprMixin
from verax.numpy.arguments.arguments import (
    as_array,
    as_type,
    avals_of,
    chosen_dtype,
    common_type,
    no_out,
    shown,
)
from verax.numpy.linalg.products import Contraction, Precision, contract
from verax.numpy.shaping.shapes import squeeze, transpose
from verax.ops.contraction.dot import dot_general
from verax.ops.elementwise.convert import convert
from verax.ops.indexing.gather import diagonal_of
from verax.ops.reductions.reduce import reduce_or, reduce_sum
from verax.ops.structure.reshard import call_sharded
from verax.rules.values.array import Array
from verax.rules.values.memo import pure

type Optimize = Any


class Reduction(NamedTuple):
    """The first step for one operand: diagonals, dimensions out, sums, a new order.

    `diagonals` are pairs of dimensions; each pair becomes the last dimension.
    """

    diagonals: tuple[tuple[int, int], ...]
    squeezed: Shape
    summed: Shape


@frozen(repr=False)
class Step(ReprMixin):
    """One contraction: the operands that it takes, and how.

    `numbers` is None for a single operand. `swapped` says that the second operand is
    the left one. `order` puts the dimensions of the result in their places.
    """

    taken: Shape
    before: tuple[Reduction, ...]
    numbers: Contraction | None
    swapped: bool
    order: Shape


# ----------------------------------------------------------------------- the plan


def distinct(names: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The names without repeats, and the pairs of dimensions that become one."""
    pairs = []
    while len(set(names)) < len(names):
        i, j = next(
            (i, j) for j in range(len(names)) for i in range(j) if names[i] == names[j]
        )
        pairs.append((i, j))
        kept = [name for place, name in enumerate(names) if place not in (i, j)]
        names = "".join(kept) + names[i]
    return names, tuple(pairs)


def reduction(
    names: str, sizes: dict[str, int], own: dict[str, int], used: set[str]
) -> tuple[str, Reduction]:
    """The names that are left of an operand, and how the others go.

    Names that no other operand has are summed; so are those that are only here. Names
    of size 1 that are larger elsewhere are squeezed.
    """
    names, pairs = distinct(names)
    squeezed = [n for n in names if own[n] == 1 and (sizes[n] != 1 or n not in used)]
    summed = [n for n in names if n not in squeezed and n not in used]
    left = "".join(n for n in names if n not in squeezed)
    parts = Reduction(
        pairs,
        tuple(names.index(n) for n in squeezed),
        tuple(left.index(n) for n in summed),
    )
    return "".join(n for n in left if n not in summed), parts


def pair_step(
    taken: Shape, names: tuple[str, str], parts: tuple[Reduction, ...], out: str
) -> Step:
    """The `dot_general` of two reduced operands, in the better of the two orders."""
    best: Step | None = None
    for swapped in (False, True):
        x, y = names[::-1] if swapped else names
        shared = [n for n in x if n in y]
        batch = sorted((n for n in shared if n in out), key=out.index)
        depth = [n for n in shared if n not in out]
        numbers = Contraction(
            (axes_named(x, depth), axes_named(y, depth)),
            (axes_named(x, batch), axes_named(y, batch)),
        )
        result = [*batch, *(n for n in x + y if n not in shared)]
        order = tuple(result.index(n) for n in out if n in result)
        step = Step(taken, parts, numbers, swapped, order)
        if order == tuple(range(len(order))):
            return step
        best = best or step
    assert best is not None
    return best


def axes_named(names: str, expected: Sequence[str]) -> Shape:
    return tuple(names.index(n) for n in expected)


@pure(1 << 10)
def einsum_plan(
    subscripts: str, shapes: tuple[Shape, ...], optimize: Optimize
) -> tuple[Step, ...]:
    """The contractions that `subscripts` ask of operands of these shapes.

    Raises:
        ValueError: the subscripts do not fit the shapes.
    """
    inputs, output = canonical(subscripts, shapes)
    check_sizes(subscripts, inputs, shapes)
    terms = list(inputs)
    result = [dict(zip(t, s, strict=True)) for t, s in zip(terms, shapes, strict=True)]
    steps = []
    for taken in path_of(inputs, output, shapes, optimize):
        names, owns = [terms[i] for i in taken], [result[i] for i in taken]
        rest = [i for i in range(len(terms)) if i not in taken]
        used = set(output).union(*(terms[i] for i in rest))
        step, left = make_step(taken, names, owns, used, None if rest else output)
        steps.append(step)
        sizes = together(owns)
        terms = [terms[i] for i in rest] + [left]
        result = [result[i] for i in rest] + [{name: sizes[name] for name in left}]
    return tuple(steps)


def check_sizes(
    subscripts: str, inputs: Sequence[str], shapes: tuple[Shape, ...]
) -> None:
    """Raise ValueError if an index has two sizes other than 1."""
    sizes: dict[str, int] = {}
    for term, shape in zip(inputs, shapes, strict=True):
        for name, n in zip(term, shape, strict=True):
            if sizes.setdefault(name, n) != n and n != 1:
                if sizes[name] != 1:
                    raise ValueError(
                        f"einsum: {subscripts!r} gives index {name!r} two sizes, "
                        f"{sizes[name]} and {n}"
                    )
                sizes[name] = n


def together(owns: Sequence[dict[str, int]]) -> dict[str, int]:
    """The sizes of indices in several operands, where 1 broadcasts."""
    sizes: dict[str, int] = {}
    for own in owns:
        for name, n in own.items():
            sizes[name] = n if sizes.get(name, 1) == 1 else sizes[name]
    return sizes


def make_step(
    taken: Shape,
    names: list[str],
    owns: list[dict[str, int]],
    used: set[str],
    out: str | None,
) -> tuple[Step, str]:
    """One step of a path, and the names of its result."""
    here = together(owns)
    reduced, parts = [], []
    for i, (term, own) in enumerate(zip(names, owns, strict=True)):
        # Of size 1 beside a larger one, a name is squeezed: its operand has it no more.
        others = used.union(
            n
            for j, t in enumerate(names)
            for n in t
            if j != i and owns[j][n] == here[n]
        )
        left, part = reduction(term, here, own, others)
        reduced.append(left)
        parts.append(part)
    if len(taken) == 1:
        result = out if out is not None else reduced[0]
        order = tuple(reduced[0].index(n) for n in result)
        return Step(taken, tuple(parts), None, False, order), result
    shared = set(reduced[0]) & set(reduced[1])
    kept = [n for n in reduced[0] + reduced[1] if n in used or n not in shared]
    free = "".join(sorted(set(kept), key=kept.index))
    batch = "".join(n for n in free if n in shared)
    result = (
        out if out is not None else batch + "".join(n for n in free if n not in shared)
    )
    return pair_step(taken, (reduced[0], reduced[1]), tuple(parts), result), result


def path_of(
    inputs: Sequence[str], out: str, shapes: tuple[Shape, ...], optimize: Optimize
) -> list[Shape]:
    """The operands to contract at each step, as places among those that are left."""
    if len(inputs) < 3:
        return [tuple(range(len(inputs)))]
    subscripts = f"{','.join(inputs)}->{out}"
    expected = "optimal" if optimize is True else optimize
    if isinstance(expected, tuple):
        expected = list(expected)
    if optimize is False:
        return [(0, 1), *((0, n - 1) for n in range(len(inputs) - 1, 1, -1))]
    path, _ = contraction_order(subscripts, shapes, expected)
    steps: list[Shape] = []
    count = len(inputs)
    for taken in path:
        steps += in_pairs(tuple(sorted(taken)), count)
        count -= len(taken) - 1
    return steps


def contraction_order(
    subscripts: str, shapes: Sequence[Shape], optimize: Optimize
) -> tuple[list[tuple[int, ...]], Any]:
    """The order that `opt_einsum` chooses, and its report on the cost."""
    from opt_einsum import contract_path

    path, report = contract_path(subscripts, *shapes, shapes=True, optimize=optimize)
    return path, report


def in_pairs(taken: Shape, count: int) -> list[Shape]:
    """A step that takes more than two of `count` operands as several that do not."""
    steps = []
    while len(taken) > 2:
        steps.append(taken[-2:])
        taken, count = (*taken[:-2], count - 2), count - 1
    return [*steps, taken]


def canonical(subscripts: str, shapes: tuple[Shape, ...]) -> tuple[list[str], str]:
    """The names of each operand's dimensions and of the result's.

    Raises:
        ValueError: the subscripts are malformed or do not fit.
    """
    try:
        from opt_einsum.parser import parse_einsum_input

        left, out, _ = parse_einsum_input((subscripts, *shapes), shapes=True)
    except (ValueError, TypeError, IndexError) as error:
        raise ValueError(f"einsum: {subscripts!r}: {error}") from error
    inputs = left.split(",")
    for term, shape in zip(inputs, shapes, strict=True):
        if len(term) != len(shape):
            raise ValueError(
                f"einsum: {term!r} of {subscripts!r} names {len(term)} dimensions, "
                f"but the operand has shape {shape}"
            )
    return inputs, out


# ---------------------------------------------------------------------- execution


def reduced(x: Array, part: Reduction) -> Array:
    """An operand after its diagonals and sums."""
    for i, j in part.diagonals:
        x = diagonal_of(x, i, j)
    if part.squeezed:
        x = squeeze(x, part.squeezed)
    if part.summed:
        x = (
            reduce_or(x, part.summed)
            if is_bool(x.dtype)
            else reduce_sum(x, part.summed)
        )
    return x


def performed(
    step: Step,
    operands: list[Array],
    precision: object,
    dtype: DType | None,
    product: Callable[..., Any],
) -> Array:
    """The result of one step; its operands leave the list."""
    parts = [operands[i] for i in step.taken]
    for i in reversed(step.taken):
        del operands[i]
    parts = [reduced(x, part) for x, part in zip(parts, step.before, strict=True)]
    if step.numbers is None:
        return transpose(parts[0], step.order)
    x, y = parts[::-1] if step.swapped else parts
    if product is dot_general:
        array = contract(x, y, step.numbers, precision, dtype)
    else:
        array = product(x, y, step.numbers, precision, preferred_element_type=dtype)
    return transpose(array, step.order)


@remembered
def einsum(
    subscripts: object,
    /,
    *operands: object,
    out: None = None,
    optimize: Optimize = "auto",
    precision: Precision = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Callable[..., object] = dot_general,
    out_sharding: object = None,
) -> Array:
    """The sum over all named indices that the result lacks of the operands' product.

    Args:
        subscripts: a letter for each dimension, as in "ij,jk->ik"; "..." stands for
            dimensions that broadcast, and a letter that one operand has twice for its
            diagonal. Without "->" the result has the letters that occur once, in the
            order of the alphabet. Or the first operand, if a list of integers follows
            each, and perhaps one for the result.
        *operands: arrays or scalars, one for each term of the subscripts.
        out: only None, since arrays are immutable.
        optimize: how the order of the products is found: "auto", "optimal", "greedy" or
            another name of `opt_einsum`; True for "optimal", False or None for products
            from the left; or a path as `einsum_path` gives it. Not read for fewer than
            three operands, which have one order.
        precision: how exact products are on accelerators: a `lax.Precision` or its
            name; None for the default.
        preferred_element_type: the dtype in which products are summed and returned;
            None for that of the operands.
        _dot_general: what is called for each product of two operands, as
            `lax.dot_general` is.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        an array with the dimensions after "->", in the common dtype of the operands
        unless another is preferred.

    Raises:
        KeyError: `optimize` is another name.
        ValueError: the subscripts are malformed or do not fit the shapes.
        NotImplementedError: `out` is given.

    >>> import verax.numpy as vnp
    >>> vnp.einsum("ij,j->i", vnp.ones((2, 3)), vnp.arange(3.0))
    Array([3., 3.], dtype=float32)
    >>> x = vnp.arange(4).reshape(2, 2)
    >>> vnp.einsum("ii", x), vnp.einsum("ii->i", x), vnp.einsum("ij->j", x)
    (Array(3, dtype=int32), Array([0, 3], dtype=int32), Array([2, 4], dtype=int32))
    """
    if out_sharding is not None:
        return call_sharded(einsum, locals())
    no_out("einsum", out)
    arrays: Sequence[object] = operands
    if not isinstance(subscripts, str):
        subscripts, arrays = named(subscripts, operands)
    avals = avals_of("einsum", arrays)
    if not avals:
        raise ValueError("einsum takes at least one operand")
    dtype, weak = common_type(avals)
    expected = chosen_dtype("einsum", preferred_element_type)
    steps = einsum_plan(subscripts, tuple([a.shape for a in avals]), as_key(optimize))
    left = [
        as_array("einsum", as_type(x, a, dtype, weak))
        for x, a in zip(arrays, avals, strict=True)
    ]
    for step in steps:
        left.append(performed(step, left, precision, expected, _dot_general))
    return left[0] if expected is None else finished(left[0], expected)


def as_key(optimize: Any) -> Optimize:
    """The way to find the order, as a key: a name, or a path as of `einsum_path`."""
    if optimize is None or isinstance(optimize, str | bool):
        return False if optimize is None else optimize
    steps = list(optimize)
    if steps and isinstance(steps[0], str):
        if steps[0] != "einsum_path":
            raise ValueError(
                f"einsum: optimize={shown(optimize)} is not a path; pass a list of "
                "tuples of operand numbers, with or without 'einsum_path' in front"
            )
        steps = steps[1:]
    return tuple([tuple([index(i) for i in taken]) for taken in steps])


def finished(x: Array, dtype: DType) -> Array:
    return x if x.dtype == dtype else convert(x, dtype)


def named(first: object, rest: Sequence[Any]) -> tuple[str, list[Any]]:
    """Subscripts from the form with lists: `einsum(x, [0, 1], y, [1], [0])`.

    Numbers or other names that have an order, such as strings, get letters in it.

    Raises:
        TypeError: the names have no order.
    """
    items = [first, *rest]
    operands, lists = items[: len(items) // 2 * 2 : 2], items[1::2]
    ends = [items[-1]] if len(items) % 2 else []
    names = {n for some in (*lists, *ends) for n in some if n is not Ellipsis}
    try:
        ordered = sorted(names)
    except TypeError as error:
        raise TypeError(
            "einsum: subscripts in lists must be integers or other objects that can be "
            f"compared with each other, not {shown(names)}"
        ) from error
    from opt_einsum.parser import get_symbol

    symbols = {n: get_symbol(i) for i, n in enumerate(ordered)}
    symbols[Ellipsis] = "..."
    terms = ["".join([symbols[n] for n in some]) for some in (*lists, *ends)]
    inputs = ",".join(terms[: len(lists)])
    return (f"{inputs}->{terms[-1]}" if ends else inputs), operands


def einsum_path(
    subscripts: object, /, *operands: object, optimize: Optimize = "auto"
) -> tuple[list[tuple[int, ...]], Any]:
    """The order in which `einsum` would contract, and a report on its cost.

    Nothing is computed: only the shapes count.

    Args:
        subscripts: as for `einsum`.
        *operands: as for `einsum`.
        optimize: as for `einsum`.

    Returns:
        a list of tuples and a report, which can be printed. A tuple has the numbers of
        the operands that are contracted together, whose result is appended to the
        others; `einsum` takes the list as `optimize`.

    >>> import verax.numpy as vnp
    >>> a, b, c = vnp.ones((50, 50)), vnp.ones((50, 50)), vnp.ones((50, 3))
    >>> path, report = vnp.einsum_path("ij,jk,kl->il", a, b, c)
    >>> path, int(report.opt_cost)
    ([(1, 2), (0, 1)], 30000)
    """
    arrays: Sequence[object] = operands
    if not isinstance(subscripts, str):
        subscripts, arrays = named(subscripts, operands)
    shapes = [a.shape for a in avals_of("einsum_path", arrays)]
    key = as_key(optimize)
    if key is False:
        key = ((0, 1),) * (len(shapes) - 1)  # from the left, pair by pair
    expected = (
        "optimal" if key is True else list(key) if isinstance(key, tuple) else key
    )
    return contraction_order(subscripts, shapes, expected)
