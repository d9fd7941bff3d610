"""Floor 5: what values a training step has, every so many steps, as curves.

One idea: beside the compiled step there is a second compiled function that measures and
returns nothing else; every so many calls it runs first, on the same arguments, so that
the step itself is never another::

    step = verax.debug.watch_steps(step, every=100, log=logger)
    for batch in batches:
        state, loss = step(state, batch)
    step.history.plot("std")
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from pathlib import PurePath
from types import MethodType
from typing import Any, Final

import numpy as np
from attrs import evolve, field, frozen

from verax.api.arguments.call_keys import Statics
from verax.api.inspect.watching import Watched, WatchedValue, watch
from verax.api.jit import PjitFunction, jit
from verax.api.tracing.apply import is_tracing
from verax.api.tracing.wrapping import function_name, look_like, wraps
from verax.ir.facade import module_named
from verax.ir.records import ReprMixin, hiding
from verax.ir.text.columns import columns
from verax.ir.text.html import report, table
from verax.rules.values.conversions import check_callable, shown
from verax.transforms.watching import Site

type Log = Callable[[int, dict[str, float]], object]

MEASURES: Final = (
    "least",
    "greatest",
    "mean",
    "std",
    "zeros",
    "nans",
    "infinite",
    "below_float16",
    "above_float16",
)
"""The numbers of a value, which are curves of a history."""
HEADS: Final = ("line", "value", "name", "steps", "first std", "last std", "greatest")


@frozen(repr=False)
class LineHistory(ReprMixin):
    """A value of a line over the steps that measured it: an array for each measure.

    `steps` are the numbers of the steps; the arrays are as long, and mean what they
    mean in `WatchedValue`.

    >>> import verax
    >>> step = verax.debug.watch_steps(lambda x: x * 2, every=2)
    >>> for _ in range(4): _ = step(1.5)
    >>> step.history.lines[0].steps, step.history.lines[0].greatest
    (array([0, 2]), array([3., 3.]))
    """

    __module__ = "verax.debug"

    name: str
    file: str
    line: int
    function: str
    code: str
    primitive: str
    type: str
    kind: str
    steps: np.ndarray
    least: np.ndarray
    greatest: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    zeros: np.ndarray
    nans: np.ndarray
    infinite: np.ndarray
    below_float16: np.ndarray
    above_float16: np.ndarray

    @property
    def notes(self) -> str:
        """The first step with NaN, and the first with infinities."""
        notes = []
        for what, counts in (("NaN", self.nans), ("infinite", self.infinite)):
            steps = self.steps[counts > 0]
            notes += [f"{what} from step {steps[0]}"] if len(steps) else []
        return ", ".join(notes)


@frozen(repr=False)
class WatchHistory(ReprMixin):
    """What lines did over the steps of a training: `lines`, in the program's order.

    `history["train.py:12/std"]` is a curve by its name, `by_line(12)` gives the entries
    of a line, `str` is a table, and `plot` draws.

    >>> import verax
    >>> step = verax.debug.watch_steps(lambda x: x * 2, every=10)
    >>> for i in range(20): _ = step(float(i))
    >>> print(step.history.title)
    <lambda>: 1 value at 2 steps, from 0 to 10
    """

    __module__ = "verax.debug"

    name: str
    steps: np.ndarray
    lines: tuple[LineHistory, ...]

    @property
    def title(self) -> str:
        """What was measured, in a line."""
        values, steps = counted(len(self.lines), "value"), len(self.steps)
        ends = f", from {self.steps[0]} to {self.steps[-1]}" if steps else ""
        return f"{self.name}: {values} at {counted(steps, 'step')}{ends}"

    def by_line(self, line: int, kind: str | None = None) -> tuple[LineHistory, ...]:
        """The entries of a line; only those of a `kind`, "value" or "cotangent"."""
        return tuple(
            [e for e in self.lines if e.line == line and kind in (None, e.kind)]
        )

    def __getitem__(self, name: str) -> np.ndarray:
        """A measure of a line over its steps, such as "train.py:12/std".

        Raises:
            KeyError: there is none of that name.
        """
        base, _, measure = name.rpartition("/")
        named = {entry.name: entry for entry in self.lines}
        if base not in named or measure not in MEASURES:
            raise KeyError(
                f"{name}: there is no such curve; write one of {names_in(self.lines)} "
                f"with a measure: {', '.join(MEASURES)}"
            )
        curve: np.ndarray = getattr(named[base], measure)
        return curve

    def plot(
        self,
        measure: str = "std",
        lines: int | str | Sequence[int | str] | None = None,
        axes: Any = None,
    ) -> Any:
        """Draw a measure over the steps, a curve for each line, with matplotlib.

        Args:
            measure: "least", "greatest", "mean", "std", "zeros", "nans", "infinite",
                "below_float16" or "above_float16".
            lines: numbers of lines, or names such as "train.py:12"; all without it.
            axes: axes of matplotlib to draw on; new ones without it.

        Returns:
            The axes.

        Raises:
            ImportError: matplotlib is not installed, and there are no `axes`.
            ValueError: there is no such measure, or no such line.
        """
        if measure not in MEASURES:
            raise ValueError(f"plot draws {', '.join(MEASURES)}, not {shown(measure)}")
        entries = chosen(self.lines, lines)
        drawn = new_axes() if axes is None else axes
        for entry in entries:
            label = f"{entry.name}  {entry.code[:40]}"
            drawn.plot(entry.steps, getattr(entry, measure), label=label)
        drawn.set_xlabel("step")
        drawn.set_ylabel(measure)
        drawn.set_title(self.name)
        if entries:
            drawn.legend(fontsize="small")
        return drawn

    def __str__(self) -> str:
        head, *rows = columns([HEADS, *[cells(e)[:-1] for e in self.lines]], left=3)
        notes = [e.notes for e in self.lines]
        table = [
            f"{row}  {note}".rstrip() for row, note in zip(rows, notes, strict=True)
        ]
        return "\n".join([self.title, head, *table])

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        rows = [cells(e) for e in self.lines]
        return report(table(self.title, (*HEADS, "notes"), rows))


def names_in(entries: Sequence[LineHistory]) -> str:
    """The names of entries, for a message."""
    return ", ".join([entry.name for entry in entries]) or "no lines"


def chosen(
    entries: tuple[LineHistory, ...], lines: int | str | Sequence[int | str] | None
) -> tuple[LineHistory, ...]:
    """The entries with these numbers or names.

    Raises:
        ValueError: there is none for one of them.
    """
    if lines is None:
        return entries
    keys = [lines] if isinstance(lines, int | str) else list(lines)
    for one in keys:
        if not any(one in (e.line, e.name) for e in entries):
            raise ValueError(
                f"plot: nothing was measured at {one}; there are {names_in(entries)}"
            )
    return tuple([e for e in entries if e.line in keys or e.name in keys])


def counted(number: int, noun: str) -> str:
    """A number of things."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def cells(e: LineHistory) -> tuple[str, ...]:
    """The row of an entry in a table."""
    arrow = "← " if e.kind == "cotangent" else ""
    code = e.code if len(e.code) <= 48 else f"{e.code[:47]}…"
    finite = e.greatest[np.isfinite(e.greatest)]
    return (
        f"{e.line:>4}  {code}",
        f"{arrow}{e.primitive} {e.type}",
        e.name,
        f"{len(e.steps)}",
        f"{e.std[0]:.4g}",
        f"{e.std[-1]:.4g}",
        f"{finite.max() if len(finite) else np.nan:.4g}",
        e.notes,
    )


def new_axes() -> Any:
    """Axes of a new figure.

    Raises:
        ImportError: matplotlib is not installed.
    """
    try:
        pyplot = module_named("matplotlib.pyplot")
    except ImportError as error:
        raise ImportError(
            "plot draws with matplotlib, which is not installed; without it, the "
            "arrays are in history.lines"
        ) from error
    return pyplot.subplots()[1]


# -----------------------------------------------------------------------------
# Names of values, which stay the same from step to step.


def names_of(sites: Sequence[Site]) -> list[str]:
    """A name for each site: its line, and its primitive where a line has several.

    Cotangents say that they are; equal names are numbered. Paths are as short as
    keeps files apart.
    """
    files = short_paths({site.source.file for site in sites})
    bases = [
        f"{files[s.source.file]}:{s.source.line}"
        + ("/cotangent" if s.source.backward else "")
        for s in sites
    ]
    several = Counter(bases)
    out, seen = [], Counter[str]()
    for site, base in zip(sites, bases, strict=True):
        name = f"{base}/{site.primitive}" if several[base] > 1 else base
        seen[name] += 1
        out.append(name if seen[name] == 1 else f"{name}.{seen[name]}")
    return out


def short_paths(files: Iterable[str]) -> dict[str, str]:
    """Each path by its last parts: as many as it takes to tell it from the others.

    >>> short_paths(["/a/train.py", "/a/net/layers.py", "/a/old/layers.py"])
    {'/a/train.py': 'train.py', '/a/net/layers.py': 'net/layers.py', \
'/a/old/layers.py': 'old/layers.py'}
    """
    parts = {file: PurePath(file).parts for file in files}

    def short(own: tuple[str, ...]) -> str:
        for count in range(1, len(own)):
            alike = [p for p in parts.values() if p[-count:] == own[-count:]]
            if len(alike) == 1:
                return "/".join(own[-count:])
        return str(PurePath(*own))

    return {file: short(own) for file, own in parts.items()}


# -----------------------------------------------------------------------------
# Steps of a training.


@frozen(eq=False, repr=False)
class Measured(ReprMixin):
    """One step that was measured: a row of numbers for each name."""

    step: int
    values: Mapping[str, WatchedValue]
    numbers: Mapping[str, tuple[float, ...]] = field(repr=False)


class WatchedSteps[**P, R]:
    """A training step that measures itself every so many calls; see `watch_steps`.

    Call it as the step itself. `history` is what was measured, `last` the `Watched` of
    the last step that was, and `step` the number of the next call, which may be set.

    >>> import verax
    >>> step = verax.debug.watch_steps(lambda x: x * 2, every=100)
    >>> float(step(1.0)), step.step, step
    (2.0, 1, <WatchedSteps of <lambda>: 1 measured>)
    """

    __module__ = "verax.debug"
    __dir__ = hiding("every log programs record records repeated")

    def __init__(
        self,
        fun: Callable[P, R],
        every: int,
        log: Log | None,
        keep: int | None,
        start: int,
    ) -> None:
        look_like(self, fun)
        self.programs = programs_of(fun)
        self.every = every
        self.log = log
        self.step = start
        self.last: Watched | None = None
        self.records: deque[Measured] = deque(maxlen=keep)
        self.repeated: dict[str, bool] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if is_tracing():
            return self.programs.run(*args, **kwargs)
        number = self.step
        if number % self.every:
            result = self.programs.run(*args, **kwargs)
            self.step = number + 1
            return result
        result, seen = self.programs.measured(*args, **kwargs)
        self.step = number + 1
        self.record(number, seen)
        return result

    def record(self, number: int, seen: Watched) -> None:
        """Add a step that was measured to the history, and log it."""
        self.last, values = seen, seen.measured
        names, distinct = names_of(seen.sites), set(seen.distinct)
        numbers = {}
        for i, (name, value) in enumerate(zip(names, values, strict=True)):
            numbers[name] = tuple([float(getattr(value, m)) for m in MEASURES])
            # A value that is ever unlike the one before it has a curve of its own.
            self.repeated[name] = self.repeated.get(name, True) and i not in distinct
        without = {
            name: evolve(value, exponents=value.exponents[:0], courses=())
            for name, value in zip(names, values, strict=True)
        }
        self.records.append(Measured(number, without, numbers))
        if self.log is not None:
            self.log(
                number,
                {
                    f"{name}/{measure}": x
                    for name in names
                    if not self.repeated[name]
                    for measure, x in zip(MEASURES, numbers[name], strict=True)
                },
            )

    @property
    def history(self) -> WatchHistory:
        """What was measured so far."""
        order = dict.fromkeys(name for r in self.records for name in r.values)
        lines = [line_history(n, self.records) for n in order if not self.repeated[n]]
        steps = np.array([record.step for record in self.records], int)
        return WatchHistory(function_name(self), steps, tuple(lines))

    def plot(
        self,
        measure: str = "std",
        lines: int | str | Sequence[int | str] | None = None,
        axes: object = None,
    ) -> Any:
        """`history.plot`: curves of a measure over the steps, with matplotlib."""
        return self.history.plot(measure, lines, axes)

    def __repr__(self) -> str:
        measured = f"{len(self.records)} measured"
        return f"<WatchedSteps of {function_name(self)}: {measured}>"


def line_history(name: str, records: Iterable[Measured]) -> LineHistory:
    """The curves of one name."""
    there = [record for record in records if name in record.numbers]
    v = there[-1].values[name]
    table = np.array([record.numbers[name] for record in there], np.float64)
    return LineHistory(
        name,
        v.file,
        v.line,
        v.function,
        v.code,
        v.primitive,
        v.type,
        v.kind,
        np.array([record.step for record in there], int),
        *table.T,
    )


@frozen(eq=False, repr=False)
class Programs[**P, R](ReprMixin):
    """A step in its three forms, each compiled once.

    Attributes:
        run: the step.
        inner: the same, behind jit.
        measure: what `watch` says of it, and no result; it donates nothing.
        together: the pair of both, for a step that has effects, which happen once.
    """

    run: Callable[P, R]
    inner: PjitFunction[P, R]
    measure: PjitFunction[P, Watched]
    together: PjitFunction[P, tuple[R, Watched]]

    def measured(self, *args: P.args, **kwargs: P.kwargs) -> tuple[R, Watched]:
        """The step, and what it did."""
        if self.inner.trace(*args, **kwargs).traced.jaxpr.effects:
            both: tuple[R, Watched] = self.together(*args, **kwargs)
            return both
        seen = self.measure(*args, **kwargs)
        return self.run(*args, **kwargs), seen


def programs_of[**P, R](fun: Callable[P, R]) -> Programs[P, R]:
    """The forms of a step."""
    inner = behind_jit(fun)
    run = fun if isinstance(fun, PjitFunction | MethodType) else inner
    settings = inner.settings
    statics, places = settings.statics, settings.shardings
    watched = watch(
        inner.fun,
        static_argnums=statics.positions or None,
        static_argnames=tuple(statics.names) or None,
    )

    @wraps(inner.fun)
    def measure(*args: P.args, **kwargs: P.kwargs) -> Watched:
        return watched(*args, **kwargs)[1]

    kept = evolve(statics, donate_positions=(), donate_names=frozenset(), layouts={})
    outs = None if places.outs is None else (places.outs, None)
    return Programs(
        run,
        inner,
        PjitFunction(
            measure,
            evolve(settings, statics=kept, shardings=evolve(places, outs=None)),
        ),
        PjitFunction(watched, evolve(settings, shardings=evolve(places, outs=outs))),
    )


def behind_jit[**P, R](fun: Callable[P, R]) -> PjitFunction[P, R]:
    """The function behind jit, with its own settings if it has some."""
    method = getattr(fun, "__func__", None)
    if not isinstance(fun, MethodType) or not isinstance(method, PjitFunction):
        return fun if isinstance(fun, PjitFunction) else jit(fun)
    own, first = method.settings, next(iter(signature(method.fun).parameters))
    settings = evolve(own, statics=bound_of(own.statics, first))
    return PjitFunction(MethodType(method.fun, fun.__self__), settings)


def bound_of(statics: Statics, first: str) -> Statics:
    """Static and donated arguments of a method without its `first`."""

    def later(positions: tuple[int, ...]) -> tuple[int, ...]:
        return tuple([p - (p > 0) for p in positions if p != 0])

    return Statics(
        later(statics.positions),
        statics.names - {first},
        later(statics.donate_positions),
        statics.donate_names - {first},
    )


def watch_steps[**P, R](
    fun: Callable[P, R],
    *,
    every: int = 100,
    log: Log | None = None,
    keep: int | None = None,
    start: int = 0,
) -> WatchedSteps[P, R]:
    """A training step that every so many calls also measures its values, line by line.

    Every call runs `fun` itself, so results are the same bit for bit. Before each
    `every`-th, the first among them, a second compiled function measures what `watch`
    does, and adds it to a history: a curve for each measure of each line, of cotangents
    on the way back too. A step with effects (callbacks, prints, references) runs once
    where it is measured, compiled together with the measures, so that there its last
    digit may differ. Within a transformation it is `fun` alone.

    Args:
        fun: the step; one behind `jit` keeps its static and donated arguments and its
            placement, any other is put behind `jit`.
        every: how many calls there are from one that measures to the next.
        log: called after each step that measures, with its number and a dict of
            numbers by name, such as "train.py:12/std" or "train.py:12/cotangent/mean".
        keep: how many of the last steps that measure the history has; all without it.
        start: the number of the first call, for a training that goes on.

    Returns:
        A function of the arguments of `fun` that returns its result, with `history`,
        `last`, `step` and `plot`.

    Raises:
        TypeError: `fun` or `log` is not a function.
        ValueError: `every` or `keep` is not positive.

    >>> import verax, verax.numpy as vnp
    >>> def step(w):
    ...     error = vnp.sin(w)
    ...     return w - 0.1 * error
    >>> w, step = vnp.ones(3), verax.debug.watch_steps(step, every=10)
    >>> for _ in range(30):
    ...     w = step(w)
    >>> step.history.steps, [e.code for e in step.history.lines]
    (array([ 0, 10, 20]), ['error = vnp.sin(w)', 'return w - 0.1 * error'])
    """
    check_callable("watch_steps", fun)
    if log is not None:
        check_callable("watch_steps: log", log)
    for name, number in (("every", every), ("keep", keep)):
        if number is not None and number < 1:
            raise ValueError(f"watch_steps: {name} is {number}, and must be at least 1")
    return WatchedSteps(fun, every, log, keep, start)
