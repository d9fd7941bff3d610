"""Floor 5: what is wrong with a gradient, by parameter and by line.

One idea: the gradient is taken once, watched, and asked about each leaf; what the
values do not say, the traced program does::

    print(verax.debug.audit_gradient(loss)(params, batch))
"""

import linecache
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np
from attrs import frozen

from verax.api.arguments.call_keys import numbers as positions
from verax.api.autodiff.grad import Argnums, choose, value_and_grad
from verax.api.autodiff.primals import OfChosen
from verax.api.inspect.find_nans import find_infs, find_nans
from verax.api.inspect.watching import LoopCourse, WatchedValue, watch
from verax.api.tracing.apply import ENGINE, check_has_values
from verax.api.tracing.trace import leaf_avals, trace
from verax.api.tracing.wrapping import (
    ParameterNames,
    describe_arguments,
    function_name,
    wraps,
)
from verax.backend import pytrees
from verax.ir.dtypes import is_inexact
from verax.ir.jaxpr import Jaxpr, Source
from verax.ir.records import ReprMixin
from verax.ir.text.columns import columns
from verax.ir.text.html import report, table
from verax.ir.walk import walk
from verax.ops.control.scan_params import ScanParams
from verax.rules.values.conversions import check_callable
from verax.transforms.gradient_paths import (
    Barrier,
    GradientPath,
    gradient_paths,
    select_after,
)
from verax.transforms.nans import Finding

KINDS: Final[tuple[str, ...]] = (
    "nan",
    "infinite",
    "blocked",
    "zero",
    "exploding",
    "vanishing",
    "equal",
)
"""The kinds of findings, the worst first."""
SMALL: Final = 1e-3
"""The ratio from which a cotangent counts as vanishing; its inverse, as exploding."""
NAMED: Final = 3
"""How many parameters, or barriers, a line of text names."""


@frozen(repr=False)
class GradientFinding(ReprMixin):
    """A fault of a gradient: its parameter, its kind and the user's line.

    `kind` is "nan", "infinite", "blocked", "zero", "exploding", "vanishing" or "equal".
    `parameter` is empty for what concerns a loop or a line; `file` is empty and `line`
    is 0 where no line is to blame.

    >>> import verax
    >>> loss = lambda p: p["used"] ** 2
    >>> report = verax.debug.audit_gradient(loss)({"used": 1.0, "dead": 2.0})
    >>> finding = report.findings[0]
    >>> finding.parameter, finding.kind, finding.message
    ("p['dead']", 'blocked', 'the loss does not use it')
    """

    __module__ = "verax.debug"

    parameter: str
    kind: str
    message: str
    file: str = ""
    line: int = 0

    @property
    def code(self) -> str:
        """The text of the line."""
        return linecache.getline(self.file, self.line).strip() if self.line else ""

    @property
    def place(self) -> str:
        """The file and the line; empty where there is none."""
        return f"{self.file}:{self.line}" if self.line else ""


@frozen(repr=False)
class ParameterGradient(ReprMixin):
    """The gradient of a leaf: its path, its type, and numbers over its elements.

    `norm` and `std` are those of all elements, so that they are NaN if one is.

    >>> import verax, verax.numpy as vnp
    >>> loss = lambda w: (w * vnp.array([3.0, 4.0])).sum()
    >>> (w,) = verax.debug.audit_gradient(loss)(vnp.ones(2)).parameters
    >>> w.path, w.shape, w.norm, w.std
    ('w', (2,), 5.0, 0.5)
    """

    __module__ = "verax.debug"

    path: str
    shape: tuple[int, ...]
    dtype: str
    norm: float
    std: float
    nans: int
    infinite: int


@frozen(repr=False)
class GradientAudit(ReprMixin):
    """What `audit_gradient` has found, the worst first, and all parameters.

    `str` is a table of both.

    >>> import verax
    >>> audit = verax.debug.audit_gradient(lambda x: x ** 2)(3.0)
    >>> audit.findings, audit.value
    ((), 9.0)
    """

    __module__ = "verax.debug"

    name: str
    value: float
    findings: tuple[GradientFinding, ...]
    parameters: tuple[ParameterGradient, ...]

    def by_parameter(self, path: str) -> tuple[GradientFinding, ...]:
        """The findings about one leaf."""
        return tuple([x for x in self.findings if x.parameter == path])

    @property
    def title(self) -> str:
        """How many findings there are, in a line."""
        count, leaves = len(self.findings), len(self.parameters)
        summary = {0: "nothing found", 1: "1 finding"}.get(count, f"{count} findings")
        word = "parameter" if leaves == 1 else "parameters"
        return f"gradient of {self.name}: {summary}, {leaves} {word}"

    @cached_property
    def rows(self) -> tuple[tuple[str, str, str, str], ...]:
        """Kind, parameters, message and line, those with one message together."""
        groups: dict[tuple[str, str, str], list[str]] = {}
        for x in self.findings:
            where = f"{x.place}  {x.code}".rstrip()
            groups.setdefault((x.kind, x.message, where), []).append(x.parameter)
        return tuple(
            [
                (kind, several([n for n in names if n]), message, where)
                for (kind, message, where), names in groups.items()
            ]
        )

    def __str__(self) -> str:
        lines = [self.title]
        for kind, names, message, where in self.rows:
            lines.append(f"{kind}: {f'{names}: ' if names else ''}{message}")
            lines += [f"    {where}"] if where else []
        table = columns([HEADS, *map(cells, self.parameters)], left=1)
        return "\n".join([*lines, *table])

    def _repr_html_(self) -> str:
        """The two tables, for notebooks."""
        heads = ("kind", "parameter", "message", "line")
        return report(
            table(self.title, heads if self.rows else (), self.rows),
            table("Parameters", HEADS, list(map(cells, self.parameters))),
        )


HEADS: Final = ("parameter", "type", "norm", "std")


def cells(x: ParameterGradient) -> tuple[str, ...]:
    """The row of a parameter in a table."""
    kind = f"{x.dtype}[{','.join(map(str, x.shape))}]"
    return x.path, kind, f"{x.norm:.4g}", f"{x.std:.4g}"


def several(names: Sequence[str]) -> str:
    """A few names, and how many more there are."""
    more = len(names) - NAMED
    shown = ", ".join(names[:NAMED])
    return f"{shown} and {more} more" if more > 0 else shown


# -----------------------------------------------------------------------------
# Findings by leaf.


def summed_up(path: str, gradient: np.ndarray) -> ParameterGradient:
    """The numbers of a leaf."""
    sizes = np.abs(gradient) if np.iscomplexobj(gradient) else gradient
    x = np.asarray(sizes, np.float64)
    with np.errstate(all="ignore"):
        return ParameterGradient(
            path,
            gradient.shape,
            str(gradient.dtype),
            float(np.sqrt((x**2).sum())),
            float(x.std()) if x.size else 0.0,
            int(np.isnan(x).sum()),
            int(np.isinf(x).sum()),
        )


def of_value(value: float, nan: "Origin", infinite: "Origin") -> list[GradientFinding]:
    """What is wrong with the loss itself."""
    if np.isnan(value):
        return [GradientFinding("", "nan", f"the loss is NaN{nan.message}", *nan.at)]
    if np.isinf(value):
        message = f"the loss is infinite{infinite.message}"
        return [GradientFinding("", "infinite", message, *infinite.at)]
    return []


def of_leaf(
    x: ParameterGradient, path: GradientPath, nan: "Origin", infinite: "Origin"
) -> list[GradientFinding]:
    """What is wrong with one leaf by itself."""
    size = int(np.prod(x.shape))
    if x.nans:
        message = f"{x.nans} of {size} elements are NaN{nan.message}"
        return [GradientFinding(x.path, "nan", message, *nan.at)]
    if x.infinite:
        message = f"{x.infinite} of {size} elements are infinite{infinite.message}"
        return [GradientFinding(x.path, "infinite", message, *infinite.at)]
    if x.norm or not size:
        return []
    if path.open:
        message = "zero everywhere: a factor on the way to the loss is zero, by value"
        return [GradientFinding(x.path, "zero", message)]
    return [blocked(x.path, path)]


def blocked(name: str, path: GradientPath) -> GradientFinding:
    """The finding about a leaf without a path to the loss."""
    if not path.used:
        return GradientFinding(name, "blocked", "the loss does not use it")
    if not path.barriers:
        message = "the loss passes on nothing of it that has a derivative"
        return GradientFinding(name, "blocked", message)
    first, *others = path.barriers
    message = reason(first)
    if others:
        more = several([f"{b.primitive} in line {b.source.line}" for b in others])
        message += f"; its other paths end at {more}"
    return GradientFinding(name, "blocked", message, *at(first.source))


def reason(barrier: Barrier) -> str:
    """Why a barrier is one."""
    name, function, dtype = barrier.primitive, barrier.function, barrier.dtype
    if function:
        return f"{function} has a derivative of its own ({name}), which is zero"
    if is_inexact(dtype):
        return f"{name} passes no gradient on: its derivative is zero"
    return f"{name} passes no gradient on: its result is {dtype}, without derivative"


def at(source: Source) -> tuple[str, int]:
    """The file and the line; ("", 0) if nobody knows."""
    return ("", 0) if source.code is None else (source.file, source.line)


def equal_leaves(
    parameters: Sequence[ParameterGradient], gradients: Sequence[np.ndarray]
) -> Iterator[GradientFinding]:
    """A finding for each group of leaves whose gradients are the same."""
    groups: dict[tuple[object, ...], list[str]] = {}
    for x, gradient in zip(parameters, gradients, strict=True):
        if x.norm and np.isfinite(x.norm):
            key = x.shape, x.dtype, gradient.tobytes()
            groups.setdefault(key, []).append(x.path)
    for first, *others in groups.values():
        if others:
            message = f"equal, element by element, to the gradient of {several(others)}"
            yield GradientFinding(first, "equal", message)


# -----------------------------------------------------------------------------
# Where NaN and infinities come from.


@frozen(repr=False)
class Origin(ReprMixin):
    """Where NaN or infinities begin: the end of a sentence, and the line."""

    message: str = ""
    at: tuple[str, int] = ("", 0)


def origins(
    slopes: Callable[..., object],
    chosen: Sequence[object],
    parameters: Sequence[ParameterGradient],
    jaxpr: Jaxpr,
    value: float,
) -> tuple[Origin, Origin]:
    """The origins of NaN and of infinities, as far as there are any."""
    nan = infinite = Origin()
    if np.isnan(value) or any([x.nans for x in parameters]):
        nan = origin_of(find_nans(slopes)(*chosen), jaxpr, value)
    if np.isinf(value) or any([x.infinite for x in parameters]):
        infinite = origin_of(find_infs(slopes)(*chosen), jaxpr, value)
    return nan, infinite


def origin_of(finding: Finding | None, jaxpr: Jaxpr, value: float) -> Origin:
    """What a finding says of a gradient; `jaxpr` is the program of the loss."""
    if finding is None:
        return Origin()
    if finding.eqn is None:
        return Origin(f", as in {', '.join(finding.bad_inputs)}")
    here = at(finding.source)
    where = "in the backward pass" if finding.backward else "on the way to the loss"
    message = f"; the first is made by {finding.primitive} {where}"
    hidden = np.isfinite(value) and (not finding.backward or meets_zero(finding))
    hidden &= finding.kind == "NaN" and here[1] > 0
    chosen = select_after(jaxpr, here) if hidden else None
    if chosen is None:
        return Origin(message, here)
    line = "" if at(chosen) == here else f" in line {chosen.line}"
    why = (
        "the derivative there is not finite, and zero times it is NaN"
        if finding.backward
        else "the value there is NaN, and so is zero times its derivative"
    )
    return Origin(
        f"{message}: the `where`{line} does not choose these elements, but {why}; make "
        "the operand safe inside, as in where(x > 0, f(where(x > 0, x, 1)), 0)",
        here,
    )


def meets_zero(finding: Finding) -> bool:
    """Whether an operand is zero where the NaN is, or nobody knows."""
    index = finding.index
    if finding.operands is None or index is None:
        return True
    shape = () if finding.results is None else finding.results[0].shape
    same = [x for x in finding.operands if x.shape == shape]
    return not same or any([x[index] == 0 for x in same])


# -----------------------------------------------------------------------------
# What vanishes or explodes, by loop and by line.


@frozen(repr=False)
class Step(ReprMixin):
    """A cotangent in a loop: its std in the first iteration and in the last."""

    value: WatchedValue
    first: float
    last: float

    @property
    def ratio(self) -> float:
        """How many times the std in the last iteration that in the first is."""
        return self.first / self.last


def by_depth(values: Sequence[WatchedValue], jaxpr: Jaxpr) -> Iterator[GradientFinding]:
    """Findings about loops, whose cotangents shrink or grow from step to step."""
    backwards = reversed_loops(jaxpr)
    loops: dict[str, list[Step]] = {}
    for v in values:
        for course in v.courses:
            # The first state may be zero, and with it what it is multiplied by.
            stds = course.std[(course.std > 0) & np.isfinite(course.std)]
            if len(stds) > 1:
                name = loop_name(course)
                first, last = (-1, 0) if name in backwards else (0, -1)
                step = Step(v, float(stds[first]), float(stds[last]))
                loops.setdefault(name, []).append(step)
    for name, steps in loops.items():
        # The middle one of them: a single value may have reasons of its own.
        steps.sort(key=lambda step: step.ratio)
        low, high = steps[(len(steps) - 1) // 2], steps[len(steps) // 2]
        if low.ratio < SMALL:
            yield of_loop(name, low, "vanishing", "falls")
        elif high.ratio > 1 / SMALL:
            yield of_loop(name, high, "exploding", "grows")


def of_loop(name: str, step: Step, kind: str, verb: str) -> GradientFinding:
    """The finding about a loop."""
    message = (
        f"in the loop of {name}, the cotangent's std {verb} from {step.last:.3g} in "
        f"the last iteration to {step.first:.3g} in the first, {step.ratio:.2g} times"
    )
    return GradientFinding("", kind, message, step.value.file, step.value.line)


def loop_name(course: LoopCourse) -> str:
    """The line of a loop, without what derived it."""
    return course.loop.partition(", by ")[0]


def reversed_loops(jaxpr: Jaxpr) -> set[str]:
    """The lines of loops that begin with the last row."""
    return {
        str(eqn.source).partition(", by ")[0]
        for _, eqn in walk(jaxpr)
        if isinstance(eqn.params, ScanParams) and eqn.params.reverse
    }


def by_line(
    values: Sequence[WatchedValue], parameters: Sequence[ParameterGradient]
) -> Iterator[GradientFinding]:
    """Findings about lines whose cotangents are far smaller, or greater, than others'.

    What is zero or has one element says nothing here. Gradients of parameters, and of
    their rows in a loop, are sums over a batch, which grow with it.
    """
    shapes = {x.shape[i:] for x in parameters for i in (0, 1)}
    summed = {f"[{','.join(map(str, shape))}]" for shape in shapes}
    spread = [
        v
        for v in values
        if np.isfinite(v.std) and v.std > 0 and v.type[v.type.find("[") :] not in summed
    ]
    if not spread:
        return
    middle = float(np.median([v.std for v in spread]))
    lines: dict[tuple[str, int], list[float]] = {}
    for v in spread:
        lines.setdefault((v.file, v.line), []).append(v.std / middle)
    for (file, line), ratios in lines.items():
        ratio = float(np.median(ratios))
        if SMALL <= ratio <= 1 / SMALL:
            continue
        kind = "vanishing" if ratio < 1 else "exploding"
        message = (
            f"the cotangent's std is {ratio * middle:.3g}, which is {ratio:.2g} times "
            f"the median of all lines, {middle:.3g}"
        )
        yield GradientFinding("", kind, message, file, line)


# -----------------------------------------------------------------------------
# The function.


def audit_gradient[**P](
    loss: Callable[P, object], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[P, GradientAudit]:
    """A function that says what is wrong with the gradient of `loss`.

    It finds leaves whose gradients are NaN, infinite, zero everywhere or equal to those
    of others; leaves without a path to the loss that has a derivative, with the line
    that blocks it; loops over whose iterations cotangents vanish or explode, and lines
    where they are far from those of others; and `where` with a branch that is not
    chosen and brings NaN.

    Args:
        loss: the function, to a real scalar; it may be jitted, mapped and so on.
        argnums: the position of the argument to differentiate by, or several, as in
            `grad`.
        has_aux: `loss` returns (output, aux), as in `grad`.

    Returns:
        A function of the arguments of `loss` that takes the gradient and returns a
        `GradientAudit`. Arguments that are not differentiated stay as they are.

    Raises:
        ConcretizationTypeError: it is called inside a function that is being traced.
        TypeError: `loss` is no function, or has no gradient by these arguments.

    >>> import verax, verax.numpy as vnp
    >>> def loss(x):
    ...     return vnp.sum(vnp.argmax(x) * 2.0)
    >>> audit = verax.debug.audit_gradient(loss)(vnp.arange(3.0))
    >>> finding = audit.findings[0]
    >>> finding.parameter, finding.kind, finding.line
    ('x', 'blocked', 2)
    >>> finding.message
    'argmax passes no gradient on: its result is int32, without derivative'
    """
    check_callable("audit_gradient", loss)
    numbers = positions("argnums", argnums)

    @wraps(loss)
    def audit(*args: P.args, **kwargs: P.kwargs) -> GradientAudit:
        outside = "audit_gradient(jit(loss))"
        check_has_values("audit_gradient", function_name(loss), outside)
        rest, chosen = choose(loss, args, kwargs, numbers, TypeError)
        places = rest.numbers
        both = value_and_grad(loss, places, has_aux=has_aux)
        slopes = OfChosen(both, args, kwargs, places)
        (out, gradient), seen = watch(slopes)(*chosen)
        value = float(out[0] if has_aux else out)
        gradients = [np.asarray(g) for g in pytrees.flatten(gradient)[0]]
        parameters = [
            summed_up(path, g)
            for path, g in zip(names(loss, chosen, places), gradients, strict=True)
        ]
        jaxpr = traced(rest, chosen)
        nan, infinite = origins(slopes, chosen, parameters, jaxpr, value)
        findings = list(of_value(value, nan, infinite))
        paths = gradient_paths(ENGINE, jaxpr, 0)
        for x, path in zip(parameters, paths, strict=True):
            findings += of_leaf(x, path, nan, infinite)
        findings += equal_leaves(parameters, gradients)
        if all([np.isfinite(x.norm) for x in parameters]):
            back = [v for v in seen.values if v.kind == "cotangent"]
            # A loop that is far off moves the median of all lines.
            findings += list(by_depth(back, jaxpr)) or by_line(back, parameters)
        findings.sort(key=lambda x: KINDS.index(x.kind))
        name = function_name(loss)
        return GradientAudit(name, value, tuple(findings), tuple(parameters))

    return audit


def names(
    loss: Callable[..., object], chosen: Sequence[object], places: Sequence[int]
) -> list[str]:
    """The name of each leaf of the chosen arguments: `params['w'][0]`."""
    parameters, out = ParameterNames(loss), []
    for place, argument in zip(places, chosen, strict=True):
        label = parameters.positional(place)
        for path, _ in pytrees.flatten_with_path(argument)[0]:
            out.append(label + "".join(map(str, path)))
    return out


def traced(loss: OfChosen, chosen: tuple[object, ...]) -> Jaxpr:
    """The program of the loss, of the leaves of the chosen arguments."""
    leaves, tree = pytrees.flatten((chosen, {}))
    describe = describe_arguments(loss.fun, tree, places=loss.numbers)
    avals = leaf_avals(leaves, describe)
    return trace(
        loss, tree, avals, "audit_gradient", describe=describe, values=leaves
    ).jaxpr
