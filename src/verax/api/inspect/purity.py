"""Floor 5: does a function give the same program each time it is traced?

One idea: jit runs Python once and keeps the program, so a function must give the same
program every time; trace it twice, without caches, and compare::

    verax.check_purity(f)(x)     # silent, or ImpureFunction with what differs
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pyrsistent import pvector

from verax.api.tracing.structs import ShapeDtypeStruct, struct_avals
from verax.api.tracing.trace import Traced, trace
from verax.api.tracing.wrapping import describe_arguments, function_name, wraps
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.forms.saving import array_bytes
from verax.ir.jaxpr import Atom, Eqn, Identity, Jaxpr, Literal
from verax.ir.reports.differences import diff
from verax.ir.text.printer import print_jaxpr
from verax.ir.walk import map_jaxprs
from verax.rules.rows.leaks import leaked
from verax.rules.values.state import STATE, fresh_context, widths_of

CHILD = (
    "import sys; from verax.api.inspect.purity import child; "
    "child(sys.stdin.buffer.read())"
)
SEEDS = ("1", "2")


class ImpureFunction(RuntimeError):
    """A function gives different programs when it is traced twice."""

    __module__ = "verax.errors"


def check_purity[**P](
    fun: Callable[P, object], *, hash_seeds: bool = False
) -> Callable[P, None]:
    """A function that raises unless `fun` always gives the same program.

    `fun` is traced twice, functions behind `jit` inside it too, on the types of the
    arguments, which may be `ShapeDtypeStruct`s. What differs on the second trace
    (a random number of Python's, a counter, the time, a cache that fills) would be
    frozen by `jit` at its first value. With `hash_seeds`, it is also traced in two
    processes with different hash seeds, which order sets of strings differently; `fun`
    must then be importable, as `pickle` demands, and its arguments picklable.

    Arrays that `fun` makes each time are equal if they hold the same bits.

    Raises:
        ImpureFunction: the programs differ; the message shows where, with the lines.

    >>> import itertools, verax
    >>> counter = itertools.count(1)
    >>> verax.check_purity(lambda x: x * 2)(1.0)
    >>> verax.check_purity(lambda x: x * next(counter))(1.0)
    Traceback (most recent call last):
    ...
    verax.errors.ImpureFunction: <lambda> gives a different program ...
    """

    @wraps(fun)
    def check(*args: P.args, **kwargs: P.kwargs) -> None:
        plain = getattr(fun, "fun", fun) if hasattr(fun, "lower") else fun
        leaves, tree = pytrees.flatten((args, kwargs))
        first, second = traced(plain, tree, leaves), traced(plain, tree, leaves)
        compare(plain, first, second)
        if hash_seeds:
            compare_seeds(plain, leaves, tree)

    return check


def traced(
    fun: Callable[..., object], tree: PyTreeDef, leaves: Sequence[object]
) -> Traced:
    """The function traced on the types of the leaves, inner functions too."""
    describe = describe_arguments(fun, tree)
    with fresh_context():
        out = trace(fun, tree, struct_avals(leaves), "check_purity", describe=describe)
    if out.captured:
        raise leaked(out.captured[0])
    return out


def compare(fun: Callable[..., object], first: Traced, second: Traced) -> None:
    """Raise ImpureFunction where the programs or the structures of outputs differ."""
    if first.out_tree != second.out_tree:
        changes = f"it returns {first.out_tree}, then {second.out_tree}"
    else:
        changes = diff(first.jaxpr, same_arrays(first.jaxpr, second.jaxpr))
    if changes:
        raise ImpureFunction(
            f"{function_name(fun)} gives a different program when traced again, so it "
            "depends on more than its arguments: Python state, time, random numbers, "
            f"or a cache. Pass what changes as an argument. {changes}"
        )


def same_arrays(left: Jaxpr, right: Jaxpr) -> Jaxpr:
    """`right` with the arrays of `left` instead of those that hold the same bits."""
    table: dict[Literal, Literal] = {}
    for ours, theirs in zip(left.used_consts, right.used_consts, strict=False):
        a, b = ours.literal, theirs.literal
        if a.aval is b.aval and a != b and array_bytes(a) == array_bytes(b):
            table[b] = a
    return map_jaxprs(right, lambda jaxpr: replaced(jaxpr, table)) if table else right


def replaced(jaxpr: Jaxpr, table: dict[Literal, Literal]) -> Jaxpr:
    """A jaxpr with other literals in its own equations and outputs."""

    def atoms(result: tuple[Atom, ...]) -> tuple[Atom, ...]:
        return tuple(
            [
                table.get(a, a)
                if isinstance(a, Literal) and isinstance(a.key, Identity)
                else a
                for a in result
            ]
        )

    eqns = [
        Eqn(e.primitive, e.params, atoms(e.invars), e.outvars, e.source)
        for e in jaxpr.eqns
    ]
    return Jaxpr(jaxpr.constvars, jaxpr.invars, pvector(eqns), atoms(jaxpr.outvars))


def compare_seeds(
    fun: Callable[..., object], leaves: Sequence[object], tree: PyTreeDef
) -> None:
    """Raise ImpureFunction if the printed programs of two hash seeds differ."""
    structs = [
        ShapeDtypeStruct(a.shape, a.dtype, a.weak_type) for a in struct_avals(leaves)
    ]
    try:
        job = pickle.dumps((fun, tree.unflatten(structs), STATE.enable_x64))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(
            f"check_purity(hash_seeds=True) sends {function_name(fun)} to another "
            f"process, but it cannot be pickled: {error}. Define it at the top level "
            "of a module, or check without hash_seeds"
        ) from error
    first, second = [printed_elsewhere(fun, job, seed) for seed in SEEDS]
    if first != second:
        pairs = zip(first.splitlines(), second.splitlines(), strict=False)
        ours, theirs = next((a, b) for a, b in pairs if a != b)
        raise ImpureFunction(
            f"{function_name(fun)} gives a different program under another hash seed, "
            f"so it depends on the order of a set; sort it.\n- {ours.strip()}\n+ "
            f"{theirs.strip()}"
        )


def printed_elsewhere(fun: Callable[..., object], job: bytes, seed: str) -> str:
    """The program as a process with this hash seed prints it, with sources."""
    paths = [str(Path(__file__).parents[3]), *[p for p in sys.path if p]]
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=job,
        env={
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": os.pathsep.join(paths),
        },
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(
            f"check_purity(hash_seeds=True) could not trace {function_name(fun)} in "
            f"another process:\n{done.stderr.decode(errors='replace')[-2000:]}"
        )
    return done.stdout.decode()


def child(job: bytes) -> None:
    """Print the program of a pickled function and argument types."""
    fun, (args, kwargs), wide = pickle.loads(job)
    leaves, tree = pytrees.flatten((args, kwargs))
    with widths_of((), wide):
        jaxpr = traced(fun, tree, leaves).jaxpr
    arrays = [array_bytes(use.literal).hex() for use in jaxpr.used_consts]
    print(print_jaxpr(jaxpr, sources=True), *arrays)
