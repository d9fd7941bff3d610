"""Cases of the stages before XLA: trace, rewrite, lower, first call, growth, memory.

The idea: a stage is a function from a program to work; the cases are the product of
stages and programs. A transformation is timed as the trace of the transformed
function, which is what both libraries do in one piece.

    staged(hessian, mlp_program)(load("verax"), FULL)  # Looped(...)
"""

import functools
import gc
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

from . import programs
from .case import NO_GOAL, Case, Goal
from .figures import growth_exponent
from .measure import Figure, Fresh, Looped, Work
from .module_text import inlined, written
from .namespace import Namespace, Scale, block
from .programs import BATCH, Build, Program

type Transform = Callable[[Namespace, Program], Callable[..., Any]]
type Stage = Callable[[Namespace, Program], Work]


def traced(ns: Namespace, program: Program) -> Callable[..., Any]:
    """The function itself."""
    return program.fresh(ns.salt())


def gradient(ns: Namespace, program: Program) -> Callable[..., Any]:
    """Gradient in the first argument."""
    gradient_of: Callable[..., Any] = ns.api.grad(program.fresh(ns.salt()))
    return gradient_of


def forward(ns: Namespace, program: Program) -> Callable[..., Any]:
    """Value and tangent, with the arguments as their own tangents."""
    f = program.fresh(ns.salt())
    return lambda *xs: ns.api.jvp(f, xs, xs)


def hessian(ns: Namespace, program: Program) -> Callable[..., Any]:
    """Forward over reverse in the moving argument."""
    f, moving = program.fresh(ns.salt()), program.moving
    inner = ns.api.jacrev(f, argnums=moving)
    outer: Callable[..., Any] = ns.api.jacfwd(inner, argnums=moving)
    return outer


def fourth(ns: Namespace, program: Program) -> Callable[..., Any]:
    """Fourth derivative along a line through the moving argument, by grad alone."""
    f, moving = program.fresh(ns.salt()), program.moving

    def along(t: Any, *xs: Any) -> Any:
        moved = (*xs[:moving], xs[moving] * (1.0 + t), *xs[moving + 1 :])
        return f(*moved)

    for _ in range(4):
        along = ns.api.grad(along)
    return lambda *xs: along(0.5, *xs)


def transformed(transform: Transform, build: Build) -> Callable[..., Work]:
    """Work: make_jaxpr of a freshly transformed program."""

    def work(ns: Namespace, scale: Scale) -> Work:
        program = build(ns, scale)
        return Looped(
            lambda: ns.api.make_jaxpr(transform(ns, program))(*program.arguments)
        )

    return work


def mapped(build: Build, inner: Transform = traced) -> Callable[..., Work]:
    """Work: make_jaxpr of vmap of a program."""

    def work(ns: Namespace, scale: Scale) -> Work:
        program = build(ns, scale)

        def call() -> object:
            f = ns.api.vmap(inner(ns, program), in_axes=program.axes)
            return ns.api.make_jaxpr(f)(*program.batched)

        return Looped(call)

    return work


def lowered(build: Build, transform: Transform = traced) -> Callable[..., Work]:
    """Work: lower a program that was traced just before, outside of the clock."""

    def work(ns: Namespace, scale: Scale) -> Work:
        program = build(ns, scale)

        def prepare() -> Callable[[], object]:
            f = ns.api.jit(transform(ns, program))
            lower: Callable[[], object] = f.trace(*program.arguments).lower
            return lower

        return Fresh(prepare)

    return work


@functools.cache
def module(ns: Namespace, scale: Scale, build: Build, transform: Transform) -> str:
    """The text of the lowered module of a program."""
    program = build(ns, scale)
    f = ns.api.jit(transform(ns, program))
    return str(f.trace(*program.arguments).lower().as_text())


def operations(
    build: Build, transform: Transform, count: Callable[[str], int]
) -> Callable[..., Work]:
    """Work: the number of StableHLO operations of the lowered program."""
    return lambda ns, scale: Figure(lambda: count(module(ns, scale, build, transform)))


def first_call(build: Build, transform: Transform = traced) -> Callable[..., Work]:
    """Work: trace, lower, compile and run a fresh program in a warm process."""

    def work(ns: Namespace, scale: Scale) -> Work:
        program = build(ns, scale)

        def prepare() -> Callable[[], object]:
            f = ns.api.jit(transform(ns, program))
            return lambda: block(f(*program.arguments))

        return Fresh(prepare)

    return work


def _map_all(ns: Namespace, program: Program) -> Callable[..., Any]:
    mapped_f = ns.api.vmap(program.fresh(ns.salt()), in_axes=program.axes)
    return lambda *_: mapped_f(*program.batched)


CURVES: dict[str, Transform] = {
    "trace": traced,
    "gradient": gradient,
    "vmap": _map_all,
}


@functools.cache
def curve(ns: Namespace, stage: str, sizes: tuple[int, ...]) -> tuple[float, ...]:
    """CPU seconds of one stage at each size of the scalar program by operators."""

    def seconds(size: int) -> float:
        program = programs.scalars_operators(ns, size)
        times = []
        for _ in range(max(1, min(5, 4000 // size))):
            f = CURVES[stage](ns, program)
            begin = time.process_time()
            ns.api.make_jaxpr(f)(*program.arguments)
            times.append(time.process_time() - begin)
        return median(times)

    seconds(sizes[0])
    return tuple(max(seconds(size), 1e-9) for size in sizes)


def _exponent(stage: str, ns: Namespace, scale: Scale) -> Work:
    sizes = scale.growth
    return Figure(lambda: growth_exponent(sizes, curve(ns, stage, sizes)))


def _largest(stage: str, ns: Namespace, scale: Scale) -> Work:
    return Figure(lambda: curve(ns, stage, scale.growth)[-1])


def bytes_per_equation(transform: Transform, ns: Namespace, scale: Scale) -> Work:
    """Work: Python memory that a held jaxpr keeps, per equation."""
    program = programs.scalars_operators(ns, scale.scalars)

    def jaxpr() -> Any:
        return ns.api.make_jaxpr(transform(ns, program))(*program.arguments)

    def value() -> float:
        jaxpr()
        gc.collect()
        tracemalloc.start()
        held = jaxpr()
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return float(kept / len(held.jaxpr.eqns))

    return Figure(value)


def _scalars_lax(ns: Namespace, scale: Scale) -> Program:
    return programs.scalars_lax(ns, scale.scalars)


def _scalars_operators(ns: Namespace, scale: Scale) -> Program:
    return programs.scalars_operators(ns, scale.scalars)


def _chain(ns: Namespace, scale: Scale) -> Program:
    program, x = programs.scalars_lax(ns, scale.scalars), ns.array(CHAINED)
    return replace(program, arguments=(x, x), batched=(ns.array(BATCH, CHAINED), x))


def _scalars_hessian(ns: Namespace, scale: Scale) -> Program:
    return programs.scalars_operators(ns, scale.hessian_scalars)


def _scalars_fourth(ns: Namespace, scale: Scale) -> Program:
    return programs.scalars_operators(ns, scale.fourth_scalars)


def _block(ns: Namespace, scale: Scale) -> Program:
    return programs.transformer(ns, 1)


def _transformer(ns: Namespace, scale: Scale) -> Program:
    return programs.transformer(ns, scale.layers)


def _tiny(ns: Namespace, scale: Scale) -> Program:
    return programs.scalars_operators(ns, 1)


# Elements of each array of a chain of elementwise operations.
CHAINED = 2048

SCALARS: dict[str, Build] = {
    "scalars_lax": _scalars_lax,
    "scalars_operators": _scalars_operators,
}
MODELS: dict[str, Build] = {
    "mlp": programs.mlp,
    "transformer_block": _block,
    "transformer": _transformer,
}
SNIPPETS: dict[str, Build] = {
    "numpy_mix": programs.numpy_mix,
    "indexing": programs.indexing,
}
PROGRAMS = SCALARS | MODELS | SNIPPETS
BY_NAME, BY_LAX = Goal(0.3, 0.2), Goal(0.4, 0.3)
TRACE_GOALS = {
    "scalars_lax": BY_LAX,
    "transformer_block": BY_LAX,
    "transformer": BY_LAX,
}
SCALAR_REVERSE, MODEL_REVERSE = Goal(0.2, 0.12), Goal(0.35, 0.12)
FORWARD = Goal(0.4, 0.2)
LOWER_SCALARS, LOWER_MODELS = Goal(0.4, 0.2), Goal(0.5, 0.2)
COUNT, GROWTH = Goal(1.0, 1.0), Goal(1.05, 1.05)


def _reverse_goal(name: str) -> Goal:
    return SCALAR_REVERSE if name.startswith("scalars") else MODEL_REVERSE


def trace_cases() -> list[Case]:
    """Trace alone, and trace with one transformation, over every program."""
    traces = [
        Case(f"trace/{n}", transformed(traced, b), TRACE_GOALS.get(n, BY_NAME))
        for n, b in PROGRAMS.items()
    ]
    gradients = [
        Case(f"grad/{n}", transformed(gradient, b), _reverse_goal(n))
        for n, b in PROGRAMS.items()
    ]
    forwards = [
        Case(f"jvp/{n}", transformed(forward, b), FORWARD) for n, b in PROGRAMS.items()
    ]
    maps = [Case(f"vmap/{n}", mapped(b), FORWARD) for n, b in PROGRAMS.items()]
    per_example = Case("vmap/grad_mlp", mapped(programs.mlp, gradient), MODEL_REVERSE)
    return [*traces, *gradients, *forwards, *maps, per_example]


def higher_cases() -> list[Case]:
    """Hessians and fourth derivatives."""
    models: dict[str, Build] = {"mlp": programs.mlp, "transformer_block": _block}
    second: dict[str, Build] = {"scalars": _scalars_hessian} | models
    last: dict[str, Build] = {"scalars": _scalars_fourth} | models
    return [
        *(
            Case(f"higher/hessian_{n}", transformed(hessian, b), _reverse_goal(n))
            for n, b in second.items()
        ),
        *(
            Case(f"higher/fourth_{n}", transformed(fourth, b), _reverse_goal(n))
            for n, b in last.items()
        ),
    ]


def lower_cases() -> list[Case]:
    """Lowering time and operation counts, of programs and of model gradients."""
    pairs: list[tuple[str, Build, Transform]] = [
        *((n, b, traced) for n, b in PROGRAMS.items()),
        *((f"grad_{n}", b, gradient) for n, b in MODELS.items()),
        ("grad_scalars", _scalars_operators, gradient),
    ]
    goals = {n: LOWER_SCALARS if "scalars" in n else LOWER_MODELS for n, _, _ in pairs}
    times = [Case(f"lower/{n}", lowered(b, t), goals[n]) for n, b, t in pairs]
    tiny = Case("lower/tiny", lowered(_tiny), LOWER_MODELS)
    counts = [
        Case(f"operations/{n}", operations(b, t, written), COUNT, "ops")
        for n, b, t in pairs
    ]
    expanded = [
        Case(f"inlined/{n}", operations(b, t, inlined), NO_GOAL, "ops")
        for n, b, t in pairs
    ]
    return [*times, tiny, *counts, *expanded]


def call_cases() -> list[Case]:
    """First calls in a warm process; growth with size; bytes kept."""
    firsts = [
        Case("first/tiny", first_call(_tiny), Goal(None, 0.9)),
        Case("first/mlp_grad", first_call(programs.mlp, gradient), Goal(None, 0.85)),
        Case("first/scalars", first_call(_scalars_operators), Goal(None, 0.75)),
        Case("first/chain", first_call(_chain), Goal(None, 0.45)),
    ]
    exponents = [
        Case(f"growth/{s}_exponent", partial(_exponent, s), GROWTH, "", absolute=True)
        for s in CURVES
    ]
    goals = {"trace": BY_NAME, "gradient": SCALAR_REVERSE, "vmap": FORWARD}
    largest = [
        Case(f"growth/{s}_largest", partial(_largest, s), goals[s]) for s in CURVES
    ]
    kept = [
        Case(f"memory/bytes_per_equation_{n}", partial(bytes_per_equation, t), g, "B")
        for n, t, g in (
            ("trace", traced, Goal(None, 0.7)),
            ("gradient", gradient, Goal(None, 0.7)),
        )
    ]
    return [*firsts, *exponents, *largest, *kept]


def cases() -> list[Case]:
    """Every case of this file."""
    return [*trace_cases(), *higher_cases(), *lower_cases(), *call_cases()]
