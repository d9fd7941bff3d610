"""Floor 5: what values a function has while it runs, as a value.

One idea: the program is written again so that it measures what leaves each line, and
what it has measured is a tree of arrays beside the result, with a report around it::

    loss, seen = verax.jit(verax.debug.watch(loss_fn))(params, batch)
    print(seen)
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from math import prod
from typing import Final

import numpy as np
from attrs import frozen

from verax.api.arguments.call_keys import Names, Numbers
from verax.api.inspect.on_values import OnValues
from verax.api.jit import own_statics
from verax.api.tracing.wrapping import function_name, wraps
from verax.api.trees.pytrees import register_pytree_node_class
from verax.ir.records import ReprMixin, hiding
from verax.ir.reports.lines import AtLine
from verax.ir.text.columns import columns
from verax.ir.text.html import Cell, report, table
from verax.ops.calls.call import CallParams, jit_p
from verax.rules.values.conversions import shown
from verax.transforms.watching import (
    COUNTED,
    INFINITE,
    NANS,
    RUNS,
    SAMPLED,
    SLOTS,
    ZEROS,
    Course,
    Site,
    Watching,
    watch as rewritten,
)

type Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]

FLOAT16_NORMAL: Final = 127 - 14
"""The exponent, as float32 stores it, from which float16 has all of its digits."""
FLOAT16_END: Final = 127 + 16
"""The exponent from which float16 is infinite."""
SPECIAL: Final = 255
"""The exponent of NaN and infinities."""


@frozen(repr=False)
class LoopCourse(ReprMixin):
    """What a value was in the iterations of a loop: an entry for each, or for a few.

    `iterations` are the first of each entry. Of a loop that runs backwards they are the
    rows, so that they agree with those of the loop forwards.

    >>> import verax
    >>> f = lambda x: verax.lax.fori_loop(0, 3, lambda i, x: x * 2, x)
    >>> _, seen = verax.debug.watch(f)(1.0)
    >>> seen.values[0].courses[0].greatest
    array([2., 4., 8.])
    """

    __module__ = "verax.debug"

    loop: str
    iterations: np.ndarray
    least: np.ndarray
    greatest: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    nans: np.ndarray


@frozen(repr=False)
class WatchedValue(AtLine):
    """A value of a program: all of its elements, in all runs of its line.

    `kind` is "value", or "cotangent" on the way back of a gradient. `zeros` is a
    fraction, `nans` and `infinite` are counts; extremes, mean and standard deviation
    are those of the finite elements. `exponents[e]` is the fraction of elements whose
    exponent float32 stores as e, from a sample of large values: 127 is [1, 2), 0 zero.

    >>> import verax, verax.numpy as vnp
    >>> _, seen = verax.debug.watch(lambda x: x * 2)(vnp.array([0.0, 0.5, 0.75]))
    >>> seen.values[0].greatest, float(seen.values[0].exponents[127])
    (1.5, 0.6666666666666666)
    """

    __module__ = "verax.debug"

    primitive: str
    type: str
    kind: str
    runs: int
    least: float
    greatest: float
    mean: float
    std: float
    zeros: float
    nans: int
    infinite: int
    exponents: np.ndarray
    courses: tuple[LoopCourse, ...]

    @property
    def below_float16(self) -> float:
        """The fraction of elements that float16 keeps with fewer digits, or as 0."""
        return float(self.exponents[1:FLOAT16_NORMAL].sum())

    @property
    def above_float16(self) -> float:
        """The fraction of finite elements that are infinite in float16."""
        return float(self.exponents[FLOAT16_END:SPECIAL].sum())

    @property
    def notes(self) -> str:
        """What is worth a look: NaN, infinities, zeros, the limits of float16."""
        notes = []
        if self.nans:
            notes.append(f"{self.nans} NaN")
        if self.infinite:
            notes.append(f"{self.infinite} infinite")
        if self.zeros == 1:
            notes.append("all zero")
        if self.above_float16:
            notes.append(f"{share(self.above_float16)} above float16")
        if self.below_float16 > 0.01:
            notes.append(f"{share(self.below_float16)} below float16")
        return ", ".join(notes)


def share(fraction: float) -> str:
    """A fraction in percent."""
    percent = 100 * fraction
    return f"{percent:.0f} %" if percent >= 1 else f"{percent:.1g} %"


@register_pytree_node_class
class Watched:
    """What a program did: a value for each line's results; a tree of arrays.

    So it may be a result of a jitted function, or of a `vmap`, whose elements count as
    one. `values` are the entries in the order of the program; `str` is a table of them,
    and `by_line(line)` are those of one line.

    >>> import verax
    >>> verax.debug.watch(lambda x: x * 2)(1.0)[1]
    <Watched: 1 values of <lambda>>
    """

    __module__ = "verax.debug"
    __dir__ = hiding("distinct measured")

    def __init__(
        self,
        name: str,
        arrays: Sequence[object],
        sites: tuple[Site, ...],
        courses: tuple[Course, ...],
    ) -> None:
        self.name = name
        self.arrays = tuple(arrays)
        self.sites: tuple[Site, ...] = sites
        self.courses: tuple[Course, ...] = courses

    def tree_flatten(self) -> tuple[tuple[object, ...], tuple[object, ...]]:
        """The arrays, and what is not an array."""
        return self.arrays, (self.name, self.sites, self.courses)

    @classmethod
    def tree_unflatten(
        cls,
        aux: tuple[str, tuple[Site, ...], tuple[Course, ...]],
        arrays: Sequence[object],
    ) -> "Watched":
        """The inverse of `tree_flatten`."""
        name, sites, courses = aux
        return cls(name, arrays, sites, courses)

    @cached_property
    def values(self) -> tuple[WatchedValue, ...]:
        """Each value that was watched, in the order of the program.

        Raises:
            AbstractValueError: the arrays are traced; return them from the function.
        """
        return tuple([self.measured[i] for i in self.distinct])

    @cached_property
    def measured(self) -> tuple[WatchedValue, ...]:
        """The value of each site."""
        blocks = list(self.blocks())
        ends, moments, sums = blocks[0]
        tracks: dict[int, list[LoopCourse]] = {}
        for course, block in zip(self.courses, blocks[1:], strict=True):
            for i in range(course.first, course.end):
                tracks.setdefault(i, []).append(course_of(course, block, i))
        return tuple(
            [
                value_of(site, ends[i], moments[i], sums[i], tracks.get(i, ()))
                for i, site in enumerate(self.sites)
            ]
        )

    @cached_property
    def distinct(self) -> tuple[int, ...]:
        """The sites without those that compute a value again.

        What is computed again on the way back is the same, and is there once.
        """
        firsts: dict[object, int] = {}
        for i, value in enumerate(self.measured):
            known = i if value.kind == "cotangent" else identity(value)
            firsts.setdefault(known, i)
        return tuple(firsts.values())

    def blocks(self) -> Iterator[Arrays]:
        """The measures in NumPy, those of batch elements as one."""
        arrays = [np.asarray(x, np.float64) for x in self.arrays]
        extra = arrays[0].ndim - 2
        for i in range(0, len(arrays), 3):
            ends, moments, sums = [
                x.reshape(prod(x.shape[:extra]), *x.shape[extra:])
                for x in arrays[i : i + 3]
            ]
            yield ends.max(0), together(moments), sums.sum(0)

    def by_line(self, line: int, kind: str | None = None) -> tuple[WatchedValue, ...]:
        """The values of a line, in the order of the program.

        Args:
            line: the number of the line in its file.
            kind: "value" or "cotangent"; both where it is left out.
        """
        return tuple(
            [v for v in self.values if v.line == line and kind in (None, v.kind)]
        )

    def log(self) -> dict[str, float]:
        """Numbers by name, for a logger: mean, standard deviation, NaNs of each value.

        >>> import verax, verax.numpy as vnp
        >>> _, seen = verax.debug.watch(lambda x: vnp.sin(x))(vnp.zeros(3))
        >>> sorted(name.split("/")[-1] for name in seen.log())
        ['greatest', 'infinite', 'least', 'mean', 'nans', 'std', 'zeros']
        """
        names = ("least", "greatest", "mean", "std", "zeros", "nans", "infinite")
        seen: dict[str, int] = {}
        out: dict[str, float] = {}
        for v in self.values:
            base = f"{v.file.rpartition('/')[2]}:{v.line}/{v.kind}/{v.primitive}"
            number = seen[base] = seen.get(base, -1) + 1
            base = f"{base}.{number}" if number else base
            out |= {f"{base}/{name}": float(getattr(v, name)) for name in names}
        return out

    def __str__(self) -> str:
        head, *table = columns([HEADS, *[cells(v)[:-1] for v in self.values]], left=2)
        lines, where = [f"{self.name}: {len(self.values)} values", head], ""
        for v, row in zip(self.values, table, strict=True):
            here = f"{v.file}, {v.function}:"
            lines += [here] if here != where else []
            lines.append(f"{row}  {v.notes}".rstrip())
            where = here
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Watched: {len(self.sites)} values of {self.name}>"

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        rows = [
            [
                Cell(x, RED if v.notes and i == 8 else None)
                for i, x in enumerate(cells(v))
            ]
            for v in self.values
        ]
        return report(table(f"Values of {self.name}", (*HEADS, "notes"), rows))


HEADS: Final = ("line", "value", "runs", "least", "greatest", "mean", "std", "zeros")
RED: Final = 0


def cells(v: WatchedValue) -> tuple[str, ...]:
    """The row of a value in a table."""
    arrow = "← " if v.kind == "cotangent" else ""
    code = v.code if len(v.code) <= 48 else f"{v.code[:47]}…"
    return (
        f"{v.line:>4}  {code}",
        f"{arrow}{v.primitive} {v.type}",
        f"{v.runs}",
        *[f"{x:.4g}" for x in (v.least, v.greatest, v.mean, v.std)],
        share(v.zeros) if v.zeros else "0",
        v.notes,
    )


def together(moments: np.ndarray) -> np.ndarray:
    """The moments of batch elements as those of all."""
    counts, means, squares = moments[..., 0], moments[..., 1], moments[..., 2]
    count = counts.sum(0)
    with np.errstate(over="ignore", invalid="ignore"):  # of values near the end
        mean = (counts * means).sum(0) / np.maximum(count, 1)
        square = (squares + counts * (means - mean) ** 2).sum(0)
    return np.stack([count, mean, square], -1)


def identity(v: WatchedValue) -> object:
    """What two computations of one value have in common."""
    numbers = [f"{x:.4g}" for x in (v.least, v.greatest, v.mean, v.std, v.runs)]
    return v.file, v.line, v.primitive, v.type, *numbers


def value_of(
    site: Site,
    ends: np.ndarray,
    moments: np.ndarray,
    sums: np.ndarray,
    courses: Sequence[LoopCourse],
) -> WatchedValue:
    source, count = site.source, moments[0]
    elements = count + sums[INFINITE]
    return WatchedValue(
        source.file,
        source.line,
        source.function,
        source.text,
        site.primitive,
        str(site.aval),
        "cotangent" if source.backward else "value",
        int(sums[RUNS]),
        float(-ends[0]) if count else np.nan,
        float(ends[1]) if count else np.nan,
        float(moments[1]) if count else np.nan,
        float(np.sqrt(moments[2] / count)) if count else np.nan,
        float(sums[ZEROS] / elements) if elements else 0.0,
        int(sums[NANS]),
        int(sums[INFINITE] - sums[NANS]),
        sums[COUNTED:] / max(sums[SAMPLED], 1),
        tuple(courses),
    )


def course_of(course: Course, block: Arrays, site: int) -> LoopCourse:
    """What one site was in the iterations of one loop."""
    ends, moments, sums = [x[:, site - course.first] for x in block]
    some = sums[:, RUNS] > 0
    counts = np.maximum(moments[some, 0], 1)
    return LoopCourse(
        str(course.source),
        first_iterations(course.length)[some],
        -ends[some, 0],
        ends[some, 1],
        moments[some, 1],
        np.sqrt(moments[some, 2] / counts),
        sums[some, NANS].astype(int),
    )


def first_iterations(length: int | None) -> np.ndarray:
    """The first iteration of each slot."""
    slots = np.arange(SLOTS)
    if length is not None:
        return slots if length <= SLOTS else -(-slots * length // SLOTS)
    half = SLOTS // 2
    late = np.ceil(2.0 ** ((slots - half + 20) / 4)).astype(int)
    return np.where(slots < half, slots, late)


def watch[**P, R](
    fun: Callable[P, R],
    *,
    every: bool = False,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
) -> Callable[P, tuple[R, Watched]]:
    """`fun`, which also says what values it has while it runs, line by line.

    A value that leaves its line is measured: least, greatest, mean, standard deviation,
    zeros, NaNs, infinities and a histogram of exponents, of all runs of the line, and
    for each iteration of the loops around it. What a gradient computes on the way back
    is there too, as cotangents of the lines.

    Args:
        fun: the function; it may be a gradient, a `vmap` or any other composition.
        every: measure the result of each equation, not only what leaves a line.
        static_argnums: positions of arguments that are not traced, as in `jit`.
        static_argnames: names of arguments that are not traced, as in `jit`.

    Returns:
        A function of the arguments of `fun` that returns the pair (result, `Watched`).
        It is a transformation like others: it may be jitted, mapped or differentiated,
        which does not change the measures.

    Raises:
        TypeError: `fun` is not a function.

    >>> import verax, verax.numpy as vnp
    >>> def f(x):
    ...     y = vnp.exp(x)
    ...     return vnp.log(y - 1)
    >>> out, seen = verax.debug.watch(f)(vnp.array([0.0, 1.0]))
    >>> [(v.primitive, v.least, v.infinite) for v in seen.values][0]
    ('exp', 1.0, 0)
    >>> seen.values[-1].notes
    '1 infinite'
    """
    if not callable(fun):
        raise TypeError(
            f"watch takes a function, not {shown(fun)}; write watch(f)(*xs)"
        )
    statics = own_statics(fun, static_argnums, static_argnames)

    @wraps(fun)
    def watched(*args: P.args, **kwargs: P.kwargs) -> tuple[R, Watched]:
        call = OnValues.of(fun, statics.bind(args, kwargs), "watch")
        traced = call.trace()
        made = rewritten(traced.jaxpr, every)
        name = function_name(fun)
        outs = ran(name, made, (*traced.captured, *call.leaves))
        count = len(traced.jaxpr.outvars)
        result: R = traced.out_tree.unflatten(outs[:count])
        return result, Watched(name, outs[count:], made.sites, made.courses)

    return watched


def ran(name: str, made: Watching, operands: Sequence[object]) -> Sequence[object]:
    """The outputs of the program, compiled where there are values."""
    jaxpr, consts = made.opened
    return jit_p.bind(CallParams(name, jaxpr), *consts, *operands)
