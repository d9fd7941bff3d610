"""Floor 5: from Python callables to jaxprs.

One idea: call the function once on tracers and keep what the builder wrote. What the
function closes over from an outer trace becomes a leading input::

    traced = trace(f, tree, avals, "jit")
    traced.jaxpr, traced.captured, traced.out_tree
"""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from types import MappingProxyType
from typing import Any

import numpy as np
from attrs import evolve, frozen

from verax.api.engine import ENGINE, current_builder
from verax.backend import pytrees
from verax.backend.array import ConcreteArray
from verax.backend.metrics import RECORDER
from verax.backend.pytrees import PyTreeDef
from verax.ir.avals import ShapedArray
from verax.ir.effects import DEBUG, ORDERED_DEBUG
from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Var
from verax.ops.callbacks import debug_callback_p
from verax.rules.builder import (
    AbstractValueError,
    Builder,
    Tracer,
    abandoned,
    left_behind,
)
from verax.rules.collector import paused
from verax.rules.constants import aval_of
from verax.rules.state import STATE, interpreting
from verax.transforms.engine import StandardEngine
from verax.transforms.evaluate import as_typed, evaluate_eqn, literal_value

SHOWN = frozenset((DEBUG, ORDERED_DEBUG))
SILENT = StandardEngine(
    ENGINE.rules
    | {debug_callback_p: evolve(debug_callback_p, evaluate=lambda engine, p, xs: ())},
    ENGINE.core,
)
EMPTY: Mapping[int, object] = MappingProxyType({})
type Describe = Callable[[], Sequence[str]]


@frozen(eq=False)
class Traced:
    """A traced function: its jaxpr takes the captured tracers, then the leaves."""

    jaxpr: Jaxpr
    captured: tuple[Tracer, ...]
    out_tree: PyTreeDef
    seconds: float = 0.0


class Oracle:
    """Concrete values of a trace, on demand: evaluates what was written so far."""

    def __init__(self, builder: Builder, values: Sequence[object]) -> None:
        self.builder = builder
        self.values = values
        self.env: dict[int, np.ndarray] = {}
        self.done = 0

    def __call__(self, tracer: Tracer) -> np.ndarray:
        """The value of a tracer of this trace.

        Raises:
            AbstractValueError: an argument, or what is closed over, is abstract.
        """
        self.fill_inputs()
        while self.done < len(self.builder.eqns):
            self.evaluate(self.builder.eqns[self.done])
            self.done += 1
        if isinstance(tracer.atom, Var) and tracer.atom.index not in self.env:
            raise after_effect(tracer)
        return self.read(tracer.atom)

    def evaluate(self, eqn: Eqn) -> None:
        """The results of one equation, unless they come from an effect.

        The program that is being traced will run: effects must not happen here too.
        """
        known = [a.index in self.env for a in eqn.invars if isinstance(a, Var)]
        if not all(known) or (eqn.effects and not SHOWN.issuperset(eqn.effects)):
            return
        with np.errstate(all="ignore"):
            outs = evaluate_eqn(SILENT, eqn, Operands(self, eqn.invars))
        for var, out in zip(eqn.outvars, outs, strict=True):
            self.env[var.index] = out

    def fill_inputs(self) -> None:
        """Values for the arguments, and for captured tracers that are new."""
        caught = {inner.atom: outer for outer, inner in self.builder.captured.values()}
        own = [var for var in self.builder.inputs if var not in caught]
        if not self.env:
            for var, x in zip(own, self.values, strict=True):
                self.env[var.index] = concrete(x, var.aval)
        for atom, outer in caught.items():
            if isinstance(atom, Var) and atom.index not in self.env:
                self.env[atom.index] = outer.concrete("a value that depends on it")

    def read(self, atom: Atom) -> np.ndarray:
        return self.env[atom.index] if isinstance(atom, Var) else literal_value(atom)


def after_effect(tracer: Tracer) -> AbstractValueError:
    """The error for a value that comes out of an effect."""
    return AbstractValueError(
        f"a tracer of type {tracer.aval} depends on an io_callback, which is called "
        "when the program runs and not while it is traced, so Python cannot branch on "
        "its value; use verax.lax.cond or verax.numpy.where"
    )


class Operands(Sequence[np.ndarray]):
    """The environment of an oracle, indexed as `evaluate_eqn` does."""

    def __init__(self, oracle: Oracle, atoms: Sequence[Atom]) -> None:
        self.oracle = oracle
        self.atoms = atoms

    def __getitem__(self, index: Any) -> Any:
        return self.oracle.env[index]

    def __len__(self) -> int:
        return len(self.oracle.env)


def concrete(x: object, aval: ShapedArray) -> np.ndarray:
    """The NumPy value of an argument."""
    if isinstance(x, Tracer):
        return x.concrete("a value that depends on it")
    if isinstance(x, ConcreteArray):
        return x.numpy()
    return as_typed(x, aval)


def is_abstract(x: object) -> bool:
    """Whether an argument is a tracer that can have no value."""
    return isinstance(x, Tracer) and x.builder.oracle is None


def trace(
    fun: Callable[..., Any],
    in_tree: PyTreeDef,
    avals: Sequence[ShapedArray],
    purpose: str,
    *,
    describe: Describe | None = None,
    values: Sequence[object] | None = None,
    held: Mapping[int, object] = EMPTY,
) -> Traced:
    """Trace `fun(*args, **kwargs)`, where `in_tree` is the structure of both.

    `held` are leaves, by number, that the function gets as they are. `values`, the
    arguments themselves, let Python branch on what it computes from them;
    tracers among them that are abstract make the trace abstract.

    Raises:
        TypeError: an output is no array.
        LeakedTracer: the function uses a tracer that it must not, or leaves one behind
            while `check_tracer_leaks` is on.
    """
    started = perf_counter()
    builder = Builder(purpose, current_builder())
    builder.describe = describe
    if values is not None and not any(is_abstract(x) for x in values):
        builder.oracle = Oracle(builder, values)
    try:
        with paused(), interpreting(builder):
            traced = recorded(fun, in_tree, avals, builder, held)
    finally:
        builder.alive = False
    if STATE.check_tracer_leaks and (left := left_behind(builder, fun)):
        raise abandoned(function_name(fun), left)
    seconds = perf_counter() - started
    RECORDER.record("traces")
    RECORDER.record("trace_seconds", seconds)
    RECORDER.record("equations", len(traced.jaxpr.eqns))
    return evolve(traced, seconds=seconds)


def recorded(
    fun: Callable[..., Any],
    in_tree: PyTreeDef,
    avals: Sequence[ShapedArray],
    builder: Builder,
    held: Mapping[int, object],
) -> Traced:
    """What `fun` writes into `builder`; no variable here outlives the call."""
    tracers = [builder.input(aval) for aval in avals]
    given = [held.get(i, x) for i, x in enumerate(tracers)] if held else tracers
    args, kwargs = in_tree.unflatten(given)
    del tracers, given
    out = fun(*args, **kwargs)
    leaves, out_tree = pytrees.flatten(out)
    check_outputs(fun, out, leaves)
    jaxpr, captured = builder.finish(leaves)
    return Traced(jaxpr, captured, out_tree)


def check_outputs(
    fun: Callable[..., Any], out: object, leaves: Sequence[object]
) -> None:
    """Raise TypeError with the place in the output of what is no array."""
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, Tracer | ConcreteArray):
            continue
        try:
            aval_of(leaf)
        except TypeError as error:
            path, _ = pytrees.flatten_with_path(out)[0][i]
            place = "".join(map(str, path))
            raise TypeError(
                f"{function_name(fun)} returned {leaf!r} of type "
                f"{type(leaf).__name__} at output{place}, where only arrays and "
                "scalars can be"
            ) from error


def function_name(fun: object) -> str:
    """The user's name of a callable, through partial and wrapped ones."""
    name = getattr(fun, "__name__", None)
    if isinstance(name, str):
        return name
    inner = getattr(fun, "func", None)
    return function_name(inner) if inner is not None else type(fun).__name__


def describe_arguments(
    fun: object, tree: PyTreeDef, static: Sequence[int] = ()
) -> Describe:
    """How messages call the leaves: `x['w'] of f`; worked out only when needed.

    `static` are the positions of arguments that are not in the tree.
    """

    def describe() -> Sequence[str]:
        filled = tree.unflatten(range(tree.num_leaves))
        paths, _ = pytrees.flatten_with_path(filled)
        return [argument_text(fun, path, static) for path, _ in paths]

    return describe


def describe_leaves(name: str, tree: PyTreeDef) -> Describe:
    """How messages call the leaves of the one tree that `name` takes: `leaf ['w']`."""

    def describe() -> Sequence[str]:
        paths, _ = pytrees.flatten_with_path(tree.unflatten(range(tree.num_leaves)))
        return [f"{name}, leaf {''.join(map(str, p))}" if p else name for p, _ in paths]

    return describe


def argument_text(fun: object, path: Sequence[Any], static: Sequence[int] = ()) -> str:
    """`argument 0`, `argument 1['w']` or `keyword argument y`, and of what."""
    kind, which, *rest = path
    inner = "".join(map(str, rest))
    if getattr(kind, "idx", 0) == 0:
        number = getattr(which, "idx", which)
        for position in static:  # in ascending order
            number += position <= number
        return f"argument {number}{inner} of {function_name(fun)}"
    key = getattr(which, "key", which)
    return f"keyword argument {key}{inner} of {function_name(fun)}"


def leaf_avals(leaves: Sequence[object], describe: Describe) -> list[ShapedArray]:
    """The types of argument leaves.

    Raises:
        TypeError: a leaf is no array; the message says which.
    """
    avals = []
    for i, leaf in enumerate(leaves):
        try:
            avals.append(aval_of(leaf))
        except TypeError as error:
            raise TypeError(f"{describe()[i]}: {error}") from None
    return avals
