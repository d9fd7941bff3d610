"""Floor 5: finding the equation that makes the first NaN or infinity.

One idea: trace the function, rewrite the program so that it says where, and run that
instead::

    print(verax.debug.find_nans(verax.grad(loss))(params, batch))
"""

from collections.abc import Callable

from attrs import evolve

from verax.api.arguments.call_keys import Names, Numbers
from verax.api.inspect.on_values import OnValues
from verax.api.jit import own_statics
from verax.api.tracing.apply import ENGINE, check_has_values
from verax.api.tracing.wrapping import function_name, wraps
from verax.backend.eager.nan_checks import Search, search
from verax.rules.values.conversions import shown
from verax.transforms.nans import Finding, Kind


def find_nans[**P](
    fun: Callable[P, object],
    *,
    infs: bool = False,
    compiled: bool = True,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
) -> Callable[P, Finding | None]:
    """A function that runs `fun` and says where the first NaN arises.

    The program of `fun` is rewritten: each equation with inexact results gets a flag,
    "operands clean, result not", through functions behind `jit`, loops, branches and
    custom rules. So `fun` may be a derivative, a `vmap`, or any composition of them,
    and equations say which transformation made them. A NaN that is replaced later, as
    by `where`, counts too. All traced code is searched: a jitted function with its own
    static arguments.

    Args:
        fun: the function; it is traced, and may branch in Python on its arguments.
        infs: look for infinities too. Those that come from an infinite scalar
            constant, such as a mask of -inf, are intended and do not count.
        compiled: run the program as `jit` does, not equation by equation in NumPy.
        static_argnums: positions of arguments that are not traced, as in `jit`.
        static_argnames: names of arguments that are not traced, as in `jit`.

    Returns:
        A function of the arguments of `fun` that returns a `Finding`, or None if there
        is neither a NaN in the arguments nor in any value of the program.

    Raises:
        ConcretizationTypeError: it is called inside a function that is being traced.

    >>> import verax, verax.numpy as vnp
    >>> finding = verax.debug.find_nans(lambda x: vnp.log(x) + 1)(vnp.array([-1.0]))
    >>> finding.primitive, finding.operands
    ('log', (array([-1.], dtype=float32),))
    """
    kind = Kind.EITHER if infs else Kind.NAN
    return searching(fun, kind, compiled, static_argnums, static_argnames)


def find_infs[**P](
    fun: Callable[P, object],
    *,
    compiled: bool = True,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
) -> Callable[P, Finding | None]:
    """`find_nans` for infinities alone: where the first one arises.

    >>> import verax
    >>> print(repr(verax.debug.find_infs(lambda x: 1 / x)(0.0)))
    <Finding: infinity from div>
    """
    return searching(fun, Kind.INFINITY, compiled, static_argnums, static_argnames)


def searching[**P](
    fun: Callable[P, object],
    kind: Kind,
    compiled: bool,
    static_argnums: Numbers,
    static_argnames: Names,
) -> Callable[P, Finding | None]:
    if not callable(fun):
        raise TypeError(
            f"find_nans takes a function, not {shown(fun)}; write find_nans(f)(*args)"
        )
    statics = own_statics(fun, static_argnums, static_argnames)

    @wraps(fun)
    def find(*args: P.args, **kwargs: P.kwargs) -> Finding | None:
        outside = "find_nans(jit(f)), find_nans(vmap(f)), find_nans(grad(f))"
        check_has_values("find_nans", function_name(fun), outside)
        call = OnValues.of(fun, statics.bind(args, kwargs), "find_nans")
        how = Search(function_name(fun), call.describe, compiled)
        out = search(ENGINE, call.closed().jaxpr, call.leaves, kind, how)[1]
        return None if out is None else evolve(out, again=call.trace)

    return find
