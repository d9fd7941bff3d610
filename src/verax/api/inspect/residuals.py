"""Floor 5: what reverse mode keeps of a function, with where each value comes from.

The pullback of `vjp`, traced, has the residuals as its outputs::

    print_saved_residuals(f, x)       # f32[3] from the argument x
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from verax.api.autodiff.jvp_vjp import vjp
from verax.api.inspect.make_jaxpr import make_jaxpr
from verax.api.tracing.argument_names import ParameterNames, function_name
from verax.backend import pytrees
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Eqn, Jaxpr
from verax.ops.calls.checkpoint import checkpoint_p


def saved_residuals(
    f: Callable[..., Any], *args: Any, **kwargs: Any
) -> list[tuple[ShapedArray, str]]:
    """The type of each value that reverse mode keeps of `f`, and where it comes from.

    >>> import verax
    >>> saved_residuals(lambda x: x * x, 2.0)
    [(~f32[], 'from the argument x')]
    """
    leaves, tree = pytrees.flatten((args, kwargs))

    def pullback(*xs: Any) -> Any:
        own, named = tree.unflatten(xs)
        return vjp(lambda ys, zs: f(*ys, **zs), own, named)[1]

    jaxpr = make_jaxpr(pullback)(*leaves).jaxpr
    origins = origins_of(jaxpr, argument_names(f, args, kwargs))
    kept = dict.fromkeys(jaxpr.outvars)
    order = {atom: i for i, atom in enumerate(origins)}
    found = sorted(kept, key=lambda atom: order.get(atom, -1))
    return [(atom.aval, origins.get(atom, "from a literal")) for atom in found]


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print `saved_residuals`, one a line.

    >>> print_saved_residuals(lambda x: x * x, 2.0)
    ~f32[] from the argument x
    """
    for aval, origin in saved_residuals(f, *args, **kwargs):
        print(aval, origin)


def origins_of(jaxpr: Jaxpr, names: Sequence[str]) -> dict[Any, str]:
    """Where each value of a program comes from, in order."""
    origins: dict[Any, str] = {v: "from a constant" for v in jaxpr.constvars}
    for var, name in zip(jaxpr.invars, names, strict=True):
        origins[var] = f"from the argument {name}"
    for eqn in jaxpr.eqns:
        inner = getattr(eqn.params, "jaxpr", None)
        if eqn.primitive is checkpoint_p and isinstance(inner, Jaxpr):
            within = origins_of(inner, [origins.get(a, "") for a in eqn.invars])
            texts = [within.get(a, origin_of(eqn)) for a in inner.outvars]
        else:
            texts = [origin_of(eqn)] * len(eqn.outvars)
        origins |= dict(zip(eqn.outvars, texts, strict=True))
    return origins


def origin_of(eqn: Eqn) -> str:
    """What made the results of an equation, and on which line."""
    kind, name = eqn.primitive.name, getattr(eqn.params, "name", None)
    if kind == "name":
        return f"named {name!r} from {eqn.source}"
    if kind == "jit":
        return f"output of jitted function {name!r} from {eqn.source}"
    return f"output of {kind} from {eqn.source}"


def argument_names(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[str]:
    """The names of the leaves of the arguments, as the signature has them."""
    names = ParameterNames(f)
    positional = [
        names.name(i) or f"{i} of {function_name(f)}" for i in range(len(args))
    ]
    found = []
    for name, value in [*zip(positional, args, strict=True), *sorted(kwargs.items())]:
        paths, _ = pytrees.flatten_with_path(value)
        found += [name + "".join(map(str, path)) for path, _ in paths]
    return found
