"""Counts the public names and parameters of the installed jax that verax has.

One idea: a program ports if every name that it uses is there and takes the same
arguments; so the names of each module are compared, and the parameters of what is in
both. It needs jax beside verax::

    python -m tests.names            # the counts
    python -m tests.names --missing  # and what is missing, by module
"""

import importlib
import inspect
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from attrs import frozen

CORE = (
    "",
    "ad_checkpoint api_util checkpoint_policies core custom_batching",
    "custom_derivatives debug dlpack dtypes errors export flatten_util image lax",
    "lax.linalg monitoring nn nn.initializers numpy numpy.fft numpy.linalg ops",
    "profiler random ref scipy scipy.cluster.vq scipy.fft scipy.integrate",
    "scipy.interpolate scipy.linalg scipy.ndimage scipy.optimize scipy.signal",
    "scipy.sparse.linalg scipy.spatial.transform scipy.special scipy.stats sharding",
    "stages test_util tree tree_util typing",
)
EXTRA = (
    "example_libraries.optimizers example_libraries.stax experimental",
    "experimental.compilation_cache.compilation_cache experimental.layout",
    "experimental.mesh_utils experimental.ode experimental.pjit experimental.random",
    "experimental.serialize_executable experimental.shard_map",
    "experimental.topologies experimental.xla_metadata extend.backend extend.core",
    "extend.linear_util extend.mlir extend.random extend.sharding",
    "extend.source_info_util extend.xla",
)
# What other issues bring, or what verax leaves out for a reason of its own.
OUT = {
    "example_libraries.optimizers": "Step map safe_map safe_zip unzip2 zip",
    "experimental.ode": (
        "abs2 fit_4th_order_polynomial initial_step_size interp_fit_dopri map "
        "mean_error_ratio optimal_step_size promote_dtypes_inexact ravel_first_arg "
        "runge_kutta_step safe_map safe_zip zip"
    ),
    # Tokens and halves of asynchronous collectives are XLA's to make here; rng_uniform
    # would give what depends on calls before it: verax.random has samples.
    "lax": "after_all create_token psum_scatter_start rng_uniform",
    "": "lib",
    "api_util": "argnums_partial debug_info",  # of linear_util, which is internal
    "debug": "DebugEffect OrderedDebugEffect",  # effects are values here, not classes
    "sharding": "ManualAxisType UnreducedKind no_collectives",
    "core": "ParamDict Trace",  # parameters are of classes; traces are Builders
    "errors": "InconclusiveDimensionOperation",  # of symbolic dimensions
    "export": (
        "SymbolicScope is_symbolic_dim symbolic_args_specs symbolic_dim_bounds "
        "symbolic_shape"
    ),
}
VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@frozen
class Count:
    """What of one module is there."""

    module: str
    names: tuple[str, ...]
    missing: tuple[str, ...]
    functions: int
    narrower: tuple[str, ...]


def modules(table: tuple[str, ...]) -> Iterator[str]:
    """The modules of a table; the first of the core is the package itself."""
    for line in table:
        yield from line.split() or [""]


def imported(name: str) -> ModuleType | None:
    """A module, or None where there is none."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def names_of(module: ModuleType) -> list[str]:
    """The public names of a module of jax that are neither modules nor of others."""
    actual = []
    for name in getattr(module, "__all__", None) or vars(module):
        value = getattr(module, name, None)
        foreign = (getattr(value, "__module__", None) or "jax").split(".")[0]
        own = foreign in ("jax", "jaxlib", "numpy", "ml_dtypes", "builtins")
        if name.endswith("_p"):
            continue  # a primitive: those of verax have their own forms
        if not name.startswith("_") and not isinstance(value, ModuleType) and own:
            actual.append(name)
    return sorted(actual)


def parameters(value: Any) -> dict[str, inspect.Parameter] | None:
    """The parameters of what can be called, or None where Python does not know."""
    if not callable(value):
        return None
    try:
        return dict(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return None


def accepts(ours: Any, theirs: Any) -> bool:
    """Whether every named parameter of theirs is one of ours."""
    expected, actual = parameters(theirs), parameters(ours)
    if expected is None or actual is None:
        return True
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in actual.values()):
        return True
    named = [
        n
        for n, p in expected.items()
        if p.kind not in VARIADIC and not n.startswith("_")  # those are private
    ]
    by_place = [
        n
        for n in named
        if expected[n].kind is inspect.Parameter.POSITIONAL_ONLY and n not in actual
    ]
    return all(n in actual or n in by_place for n in named)


def counted(name: str) -> Count | None:
    """One module of jax against ours."""
    theirs = imported(f"jax.{name}".rstrip("."))
    if theirs is None:
        return None
    ours = imported(f"verax.{name}".rstrip("."))
    names = [n for n in names_of(theirs) if n not in OUT.get(name, "").split()]
    missing = [n for n in names if not hasattr(ours, n)]
    shared = [n for n in names if n not in missing and callable(getattr(theirs, n))]
    narrower = [n for n in shared if not accepts(getattr(ours, n), getattr(theirs, n))]
    return Count(name, tuple(names), tuple(missing), len(shared), tuple(narrower))


def report(title: str, table: tuple[str, ...], missing: bool) -> str:
    """The counts of a table as text."""
    counts = [c for c in map(counted, modules(table)) if c is not None]
    names = sum([len(c.names) for c in counts])
    there = names - sum([len(c.missing) for c in counts])
    functions = sum([c.functions for c in counts])
    same = functions - sum([len(c.narrower) for c in counts])
    lines = [
        f"{title}: {there} of {names} names ({there / names:.1%}); "
        f"{same} of {functions} take all parameters ({same / functions:.1%})"
    ]
    for c in counts if missing else []:
        if c.missing:
            lines.append(f"  {c.module or '.'} lacks {', '.join(c.missing)}")
        if c.narrower:
            lines.append(f"  {c.module or '.'} narrower: {', '.join(c.narrower)}")
    return "\n".join(lines)


if __name__ == "__main__":
    shown = "--missing" in sys.argv
    print(report("core", CORE, shown))
    print(report("experimental and extend", EXTRA, shown))
