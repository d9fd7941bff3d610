"""Floor 3: the transformations as users call them, on what `make_jaxpr` returns.

One idea: a closed jaxpr in, a closed jaxpr out, under the standard table unless told
otherwise, so that a pipeline is a composition of functions::

    program = verax.make_jaxpr(f)(x)
    smaller = dce(cse(fold(inline(program))))

Array constants are literals while a transformation works, and constvars of what it
returns. A plain `Jaxpr` is taken too.
"""

from collections.abc import Sequence
from typing import cast

import numpy as np

from verax.ir.jaxpr import ClosedJaxpr, Jaxpr
from verax.ir.reports.check import check_jaxpr
from verax.ir.walk import close, hoist as hoisted
from verax.ops.calls.call import inline as inline_rewrite
from verax.ops.hoisting import as_operands
from verax.rules.rows.infer import Mask, inferred
from verax.rules.rows.row import Axis, Engine, NDArray
from verax.rules.values.array import Array
from verax.transforms.engine.engine import STANDARD, as_typed
from verax.transforms.engine.partial_eval import dce as dce_rewrite
from verax.transforms.passes import outline as passes
from verax.transforms.passes.cse import (
    FOLD_LIMIT,
    cse as cse_rewrite,
    fold as fold_rewrite,
)

type AnyJaxpr = Jaxpr | ClosedJaxpr


def rank_of(x: object) -> int:
    """The number of dimensions of an array, or of what becomes one."""
    return x.ndim if isinstance(x, Array) else np.asarray(x).ndim


def opened(program: AnyJaxpr) -> Jaxpr:
    """The program without constvars.

    Raises:
        ValueError: a plain jaxpr has constvars, whose values are not known.
    """
    if isinstance(program, ClosedJaxpr):
        store = cast(dict[object, Jaxpr], program.kept)
        return store.setdefault(close, close(program))
    if not isinstance(program, Jaxpr):
        raise TypeError(
            f"pass a Jaxpr or a ClosedJaxpr, not {type(program).__name__}; "
            "verax.make_jaxpr(f)(*args) makes one from a function"
        )
    if program.constvars:
        raise ValueError(
            "this jaxpr has constvars without values; pass the ClosedJaxpr"
        )
    return program


def hoist(program: AnyJaxpr) -> ClosedJaxpr:
    """The program with its array constants as constvars, those of inner jaxprs too."""
    return hoisted(opened(program), as_operands)


def dce(
    program: AnyJaxpr,
    used: Sequence[bool] | None = None,
    *,
    keep_inputs: bool = True,
    engine: Engine = STANDARD,
) -> ClosedJaxpr:
    """The program without what no output and no effect needs.

    Args:
        used: which outputs are wanted; all of them unless given.
        keep_inputs: whether inputs that nothing reads stay.

    Raises:
        ValueError: `used` has another length than the outputs.

    >>> import verax
    >>> print(dce(verax.make_jaxpr(lambda x: (x + 1, x * 2))(1), [False, True]))
    { lambda ; a:~i32[]. let b:~i32[] = mul a 2:~i32[] in (b,) }
    """
    jaxpr = opened(program)
    mask = mask_of("used", used, len(jaxpr.outvars))
    keep = len(jaxpr.invars) if keep_inputs else None
    return hoist(dce_rewrite(engine, jaxpr, mask, keep=keep)[0])


def mask_of(name: str, mask: Sequence[bool] | None, length: int) -> Mask:
    """The mask as a tuple; all True where there is none.

    Raises:
        ValueError: it has another length.
    """
    if mask is None:
        return (True,) * length
    if len(mask) != length:
        raise ValueError(f"{name} must have {length} entries, not {len(mask)}")
    return tuple([bool(flag) for flag in mask])


def cse(program: AnyJaxpr) -> ClosedJaxpr:
    """The program with equal equations written once; effects are never joined.

    >>> import verax
    >>> print(cse(verax.make_jaxpr(lambda x: (x + 1) * (x + 1))(1)))
    { lambda ; a:~i32[]. let b:~i32[] = add a 1:~i32[]; c:~i32[] = mul b b in (c,) }
    """
    return hoist(cse_rewrite(opened(program)))


def fold(
    program: AnyJaxpr, limit: int = FOLD_LIMIT, *, engine: Engine = STANDARD
) -> ClosedJaxpr:
    """The program with equations on constants computed, up to `limit` elements.

    Values are those of the NumPy interpreter, bit for bit.

    >>> import verax, verax.lax
    >>> print(fold(verax.make_jaxpr(lambda x: x * (verax.lax.exp(0.0) + 1.0))(3.0)))
    { lambda ; a:~f32[]. let b:~f32[] = mul a 2.0:~f32[] in (b,) }
    """
    return hoist(fold_rewrite(engine, opened(program), limit))


def inline(program: AnyJaxpr) -> ClosedJaxpr:
    """The program with the equations of inner `jit`s instead of the calls.

    >>> import verax
    >>> double = verax.jit(lambda x: x * 2)
    >>> print(inline(verax.make_jaxpr(lambda x: double(x))(3)))
    { lambda ; a:~i32[]. let b:~i32[] = mul a 2:~i32[] in (b,) }
    """
    return hoist(inline_rewrite(opened(program)))


def outline(program: AnyJaxpr, *, least: int = 24, saved: int = 96) -> ClosedJaxpr:
    """The program with runs of equations that occur again as calls of one function.

    Values and effects are kept. The blocks of a network become a function, whether they
    were written as a loop or by hand, those of its derivatives too.

    Args:
        least: how many equations a function has.
        saved: how many equations less the program has to have.

    Raises:
        ValueError: `least` or `saved` is less than 1.

    >>> import verax, verax.numpy as vnp
    >>> def f(x):
    ...     for _ in range(3):
    ...         x = vnp.sin(vnp.exp(x))
    ...     return x
    >>> program = outline(verax.make_jaxpr(f)(1.0), least=2, saved=2)
    >>> [eqn.primitive.name for eqn in program.eqns]
    ['jit', 'jit', 'jit']
    >>> print(program.eqns[0].params.jaxpr)
    { lambda ; a:~f32[]. let b:~f32[] = exp a; c:~f32[] = sin b in (c,) }
    """
    if least < 1 or saved < 1:
        raise ValueError(f"least and saved must be at least 1, not {least}, {saved}")
    return hoist(passes.outline(opened(program), passes.Limits(least, saved)))


def evaluate(
    program: AnyJaxpr, *args: object, engine: Engine = STANDARD
) -> list[NDArray]:
    """The outputs of the program on `args`, by the NumPy interpreter.

    Arguments are arrays or scalars of the input types, keys as their words.

    Raises:
        TypeError: the number of arguments or one of their types is wrong.

    >>> import verax
    >>> evaluate(verax.make_jaxpr(lambda x: x * 2)(1), 21)
    [array(42, dtype=int32)]
    """
    jaxpr = opened(program)
    pairs = zip(args, jaxpr.in_avals, strict=False)
    typed = [
        as_typed(x, aval) if rank_of(x) == 0 else np.asarray(x) for x, aval in pairs
    ]
    rest = [np.asarray(x) for x in args[len(typed) :]]
    return engine.evaluate(jaxpr, [*typed, *rest])


def check(program: AnyJaxpr) -> None:
    """Raise unless the program is well formed: scope, numbers, and every type.

    Raises:
        IllTyped: it is not; the message names the equation and the user's line.

    >>> import verax
    >>> check(verax.make_jaxpr(lambda x: x * 2)(1))
    """
    jaxpr = program.jaxpr if isinstance(program, ClosedJaxpr) else program
    check_jaxpr(jaxpr, inferred)


def jvp(
    program: AnyJaxpr,
    nonzero: Sequence[bool] | None = None,
    *,
    engine: Engine = STANDARD,
) -> tuple[ClosedJaxpr, Mask]:
    """The program that pushes tangents forward, and which outputs have one.

    Inputs are those of `program`, then a tangent for each that `nonzero` marks (all of
    them unless given); outputs are those of `program`, then their tangents.
    """
    jaxpr = opened(program)
    mask = mask_of("nonzero", nonzero, len(jaxpr.invars))
    pushed, moved = engine.jvp(jaxpr, mask)
    return hoist(pushed), moved


def transpose(
    program: AnyJaxpr,
    linear: Sequence[bool] | None = None,
    *,
    engine: Engine = STANDARD,
) -> tuple[ClosedJaxpr, Mask]:
    """The transpose of a program that is linear in some inputs (all unless given).

    Inputs are the other inputs, then the cotangents of the outputs; outputs are the
    cotangents of those linear inputs that the mask marks, the others' are zero.
    """
    jaxpr = opened(program)
    mask = mask_of("linear", linear, len(jaxpr.invars))
    pulled, flags = engine.transpose(jaxpr, mask, (True,) * len(jaxpr.outvars))
    return hoist(pulled), flags


def vmap(
    program: AnyJaxpr,
    size: int,
    axes: Sequence[Axis] | None = None,
    *,
    engine: Engine = STANDARD,
) -> tuple[ClosedJaxpr, tuple[Axis, ...]]:
    """The program over `size` elements at once, and where the outputs are batched.

    Args:
        axes: the place of the new dimension in each input, None where there is none;
            in front of every input unless given.

    >>> import verax
    >>> batched, axes = vmap(verax.make_jaxpr(lambda x: x * 2)(1), 8)
    >>> batched.in_avals, axes
    ((~i32[8],), (0,))
    """
    jaxpr = opened(program)
    places = (0,) * len(jaxpr.invars) if axes is None else tuple(axes)
    if len(places) != len(jaxpr.invars):
        raise ValueError(
            f"axes must have {len(jaxpr.invars)} entries, not {len(places)}"
        )
    batched, out_places = engine.batch(jaxpr, size, places)
    return hoist(batched), out_places
