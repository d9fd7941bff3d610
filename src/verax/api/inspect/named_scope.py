"""Floor 5: names for parts of a program, and blocks that leave the trace.

Names change no values, so what they wrap runs as it is; leaving a trace means making an
interpreter current that computes::

    with ensure_compile_time_eval():
        table = numpy.cumsum(numpy.arange(8))   # computed now, a constant of the trace
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from verax.api.tracing.wrapping import CompileTime, wraps
from verax.rules.values.conversions import check_callable, shown
from verax.rules.values.state import STATE, interpreting


def named_call[**P, R](
    fun: Callable[P, R], *, name: str | None = None
) -> Callable[P, R]:
    """`fun` under another name, which messages and jitted programs show.

    Raises:
        TypeError: `fun` is not callable.

    >>> named_call(abs, name="magnitude").__name__
    'magnitude'
    """
    check_callable("named_call", fun)

    @wraps(fun)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        return fun(*args, **kwargs)

    if name is not None:
        called.__name__ = called.__qualname__ = name
    return called


@contextmanager
def named_scope(name: str) -> Iterator[None]:
    """A name for what is computed within the block, for readers of the source.

    It changes no values, and nothing in compiled programs: they name source lines.

    Raises:
        TypeError: `name` is not a string.
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope takes a string, not {shown(name)}")
    yield


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """A block in which operations on known values are computed, also inside a trace.

    An operation on a tracer is an equation of the trace, as outside the block.

    >>> import verax, verax.numpy as vnp
    >>> def f(x):
    ...     with verax.ensure_compile_time_eval():
    ...         scale = 2.0 if vnp.sum(vnp.arange(3)) > 2 else 1.0
    ...     return x * scale
    >>> float(verax.jit(f)(1.0))
    2.0
    """
    outer = STATE.interpreter
    if outer.immediate:
        yield
        return
    with interpreting(CompileTime(STATE.eager, outer)):
        yield
