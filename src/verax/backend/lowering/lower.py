"""Floor 4: lowering, a jaxpr to the text of a StableHLO module.

One idea: array constants are collected once per object and passed as leading arguments
of every function that needs them, so the text depends on the program alone and is its
own cache key::

    lowered = lower(engine, jaxpr, "f", platforms=("cpu",))
    lowered.text
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Final

from verax.backend.lowering.function_writer import EquationText, Platforms
from verax.backend.lowering.mlir_text import (
    HostCalls,
    Lowered,
    Meshes,
    Seconds,
    Spread,
    escaped,
    is_small,
)
from verax.backend.lowering.module_writer import Env, Module, Writer
from verax.backend.runtime.metrics import RECORDER, stage
from verax.ir.jaxpr import Eqn, Jaxpr, Literal
from verax.ir.meshes import MeshAxes
from verax.rules.rows.row import Engine
from verax.rules.values.state import NEUTRAL, entered, widths_of
from verax.transforms.pipeline import Body, Target, body_of, passed

# -----------------------------------------------------------------------------
# Modules that name for each operation the user's line that made it.
#
# An equation knows its source, and what its row writes is marked with it after
# the fact, so that neither rows nor the ordinary text know of locations::
#
#     lower(engine, jaxpr, "f", located=True).text
#     # ... %1 = "stablehlo.sine"(%0) : ... loc("sin"("/home/me/model.py":12:1))


type Locate = Callable[[Eqn], str]
"""The location of an equation; empty if it has that of what is around it."""
QUOTED = r'"(?:[^"\\]|\\.)*"'
MARKED: Final = re.compile(rf" loc\({QUOTED}(?:\({QUOTED}:\d+:1\))?\)\n$")


class LocatedModule(Module):
    """A module whose operations have locations, which `locate` makes of equations."""

    def __init__(
        self,
        engine: Engine,
        platforms: Platforms,
        meshes: Meshes | None = None,
        locate: Locate | None = None,
    ) -> None:
        super().__init__(engine, platforms, meshes)
        self.locate = locate or location

    def writer(self) -> Writer:
        return LocatedWriter(self, self.locate)


class LocatedWriter(Writer):
    """Writes operations, each with the location of its equation."""

    def __init__(self, module: Module, locate: Locate) -> None:
        super().__init__(module)
        self.locate = locate

    def write_filled(self, text: EquationText, names: Sequence[str]) -> None:
        """Write a text operation by operation, since each has a location."""
        for template, order in text.operations:
            self.lines.append(template % tuple([names[i] for i in order]))

    def equation(self, eqn: Eqn, env: Env) -> None:
        start = len(self.lines)
        super().equation(eqn, env)
        place = self.locate(eqn)
        if not place:  # it belongs to the equation around this one
            return
        mark = f" {place}\n"
        for i in range(start, len(self.lines)):
            line = self.lines[i]
            if not MARKED.search(line):  # by an equation inside this one
                self.lines[i] = line.removesuffix("\n") + mark


def location(eqn: Eqn) -> str:
    """The location of an equation: the primitive, what derived it, the user's line.

    >>> from verax.ir.jaxpr import UNKNOWN_SOURCE, NO_PARAMS, Eqn
    >>> from verax.ops.elementwise.trig import sin_p
    >>> location(Eqn(sin_p, NO_PARAMS, (), (), UNKNOWN_SOURCE.derived("jvp")))
    'loc("jvp/sin")'
    """
    source = eqn.source
    name = f"{source.origin}/{eqn.primitive.name}" if source.origin else eqn.primitive
    text = f'"{escaped(str(name))}"'
    if not source.line:
        return f"loc({text})"
    return f'loc({text}("{escaped(source.file)}":{source.line}:1))'


# -----------------------------------------------------------------------------
# Lowering, a jaxpr to the text of a StableHLO module.


def lower(
    engine: Engine,
    jaxpr: Jaxpr,
    name: str,
    *,
    platforms: Platforms,
    keep_unused: bool = False,
    donated: Sequence[bool] = (),
    spread: Spread | None = None,
    inline_constants: bool = False,
    located: bool | Locate = False,
    calls: str | None = "inline",
    kernels: bool = True,
) -> Lowered:
    """The module of `jaxpr` for `platforms`, without dead code; deterministic.

    It is made under the default configuration, with x64 on for 64-bit programs, so it
    depends on the program alone.

    `donated[i]` lets XLA reuse the memory of argument i. With `inline_constants` the
    module holds its array constants, and takes none; with `located` it names for each
    operation the user's line that made it, or has the location that `located` makes of
    its equation. A module for several platforms may take the
    number of the one that it runs on, as its first argument: `takes_platform` says.
    `calls` is as in `CompileOptions`; None if the program is as XLA is to get it.
    `kernels` says whether functions are written out for a CPU.

    Raises:
        MissingRule: a primitive has no lowering for a platform.
    """
    dtypes = {v.aval.dtype for eqn in jaxpr.eqns for v in eqn.outvars}
    dtypes |= {v.aval.dtype for v in jaxpr.invars}
    with stage(name, "lower"), entered(NEUTRAL), widths_of(dtypes):
        return lowered_here(
            engine,
            jaxpr,
            name,
            platforms,
            keep_unused,
            donated,
            spread,
            inline_constants,
            located,
            calls,
            kernels,
        )


def is_tunable(platforms: Platforms, spread: Spread | None, jaxpr: Jaxpr) -> bool:
    """Whether a program is for one CPU, which calls and barriers are measured on."""
    one = spread is None or len(spread.order) < 2
    symbolic = any([aval.symbolic for aval in jaxpr.in_avals])
    return platforms == ("cpu",) and one and not symbolic


def lowered_here(
    engine: Engine,
    jaxpr: Jaxpr,
    name: str,
    platforms: Platforms,
    keep_unused: bool,
    donated: Sequence[bool],
    spread: Spread | None,
    inline_constants: bool,
    located: bool | Locate,
    calls: str | None,
    kernels: bool,
) -> Lowered:
    """`lower`, under the default configuration."""
    started = perf_counter()
    one_cpu = calls is not None and is_tunable(platforms, spread, jaxpr)
    target = Target(one_cpu, calls or "inline", keep_unused, kernels)
    body = passed(engine, jaxpr, target)
    kept = body.kept
    rewritten = perf_counter()
    meshes = Meshes() if spread is None else Meshes(spread.order, spread.mesh)
    symbolic = any([aval.symbolic for aval in body.in_avals])
    module: Module
    if symbolic:
        from verax.backend.lowering.symbolic import symbolic_module

        module = symbolic_module(engine, platforms, body)
    elif located:
        locate = None if located is True else located
        module = LocatedModule(engine, platforms, meshes, locate)
    else:
        module = Module(engine, platforms, meshes)
    consts = () if inline_constants else body.consts
    given = [d for d, flag in zip(donated, kept, strict=False) if flag]
    marks, ends = attributes(module, body, consts, given, kept, spread)
    memories = None if spread is None else spread.memories.kept(kept)
    summed = () if spread is None else spread.summed
    module.function("main", body, consts, marks, ends, True, memories, summed)
    text = module_text(module, f"jit_{name}", symbolic)
    lent = tuple([i for i, d in enumerate(donated) if d and kept[i]])
    host_calls = HostCalls(tuple(module.calls), body.effects, tuple(module.partitions))
    ins, outs = body.in_avals, body.out_avals
    small = not symbolic and '"stablehlo.while"' not in text and is_small(body)
    seconds = Seconds(rewritten - started, perf_counter() - rewritten)
    RECORDER.record("lowerings")
    RECORDER.record("lower_seconds", seconds.rewrite + seconds.write)
    return Lowered(
        text,
        consts,
        kept,
        ins,
        outs,
        lent,
        host_calls,
        name,
        small,
        seconds,
        platforms,
        "main" in module.choosing,
    )


def module_text(module: Module, name: str, symbolic: bool = False) -> str:
    """The text of a module whose functions are written.

    Where sizes are symbolic, or functions take the number of the platform, it says so
    as JAX's exported modules do.
    """
    title = "".join(c if c.isalnum() or c in "_" else "_" for c in name)
    count = max(1, len(module.meshes.order))
    open_ended = symbolic or bool(module.choosing)
    header = (
        f"module @{title} attributes {{"
        f"{'jax.uses_shape_polymorphism = true, ' if open_ended else ''}"
        f"mhlo.num_partitions = {count} : i32, mhlo.num_replicas = 1 : i32}} {{\n"
    )
    return header + "".join([*module.meshes.lines(), *module.functions]) + "}\n"


def lower_part(
    engine: Engine, jaxpr: Jaxpr, name: str, platform: str, mesh: MeshAxes
) -> str:
    """The module that each device of a mesh runs, with its constants, as text.

    Raises:
        TypeError: it calls functions of the host.
    """
    dtypes = {v.aval.dtype for eqn in jaxpr.eqns for v in eqn.outvars}
    dtypes |= {v.aval.dtype for v in jaxpr.invars}
    with entered(NEUTRAL), widths_of(dtypes):
        module = Module(engine, (platform,), Meshes(own=mesh))
        module.function("main", body_of(jaxpr), (), public=True)
    if module.calls:
        raise TypeError(
            f"{name} calls functions of the host, which the program of one part "
            "cannot: take the callbacks out of it"
        )
    return module_text(module, name)


def attributes(
    module: Module,
    body: Body,
    consts: Sequence[Literal],
    donated: Sequence[bool],
    kept: Sequence[bool],
    spread: Spread | None,
) -> tuple[list[str], list[str]]:
    """The attributes of the arguments and of the results of the main function."""
    lent = donations(body, donated, fixed=spread is None)
    marks = [*[""] * len(consts), *lent]
    if spread is None:
        return marks, []
    asked = [layout for layout, flag in zip(spread.ins, kept, strict=True) if flag]
    layouts = [*map(spread.of_constant, consts), *asked]
    avals = [*[c.aval for c in consts], *body.in_avals]
    attribute = module.meshes.sharding_attribute
    spreads = [attribute(*pair) for pair in zip(layouts, avals, strict=True)]
    ends = [
        attribute(layout, aval)
        if layout is not None
        else module.meshes.result_attribute(spread.mesh, aval)
        for layout, aval in zip(spread.outs, body.out_avals, strict=True)
    ]
    memories = spread.memories.kept(kept)
    given = [*[""] * len(consts), *map(memory_attribute, memories.ins)]
    results = map(memory_attribute, memories.outs)
    inputs = zip(marks, spreads, given, strict=False)
    return list(map(joined, inputs)), list(map(joined, zip(ends, results, strict=True)))


def donations(body: Body, donated: Sequence[bool], fixed: bool) -> list[str]:
    """The attributes of arguments whose memory may be reused.

    If `fixed`, it is for the first result of that shape and dtype which no argument
    before it has; otherwise XLA chooses a result, of another shape too.
    """
    free: dict[object, deque[int]] = {}
    for place, aval in enumerate(body.out_avals if fixed else ()):
        free.setdefault((aval.shape, aval.dtype), deque()).append(place)
    marks = [""] * len(body.in_avals)
    for i, (aval, flag) in enumerate(zip(body.in_avals, donated, strict=False)):
        if flag:
            places = free.get((aval.shape, aval.dtype))
            marks[i] = (
                f"tf.aliasing_output = {places.popleft()} : i32"
                if places
                else "jax.buffer_donor = true"
            )
    return marks


def memory_attribute(kind: str | None) -> str:
    """The attribute of what lies in this kind of memory; nothing for the device's."""
    return "" if kind is None else f'mhlo.memory_kind = "{kind}"'


def joined(attributes: Iterable[str]) -> str:
    """Attributes as one text, without those that are empty."""
    return ", ".join(filter(None, attributes))
