"""Floor 5: `jit` itself: its options, checked where they are passed.

One idea: options are checked once, where they are written, and become the settings of a
`PjitFunction`, which does all the rest::

    jit(f, static_argnames="n"), jit(donate_argnums=0)(f)
"""

from collections.abc import Callable
from typing import Any, Literal, overload

from attrs import frozen

from verax.api.arguments.cache_entries import Settings
from verax.api.arguments.jit_options import (
    Inline,
    as_inline,
    check_flags,
    check_function,
    checked_options,
)
from verax.api.arguments.static_argnums import Names, Numbers, resolve_statics
from verax.api.jit.function import PjitFunction
from verax.api.sharding_args import Shardings, resolve_shardings
from verax.backend.runtime.client import Device
from verax.backend.xla.executable import CompileOptions
from verax.ir.records import ReprMixin

type Calls = Literal["auto", "inline", "keep"]


@overload
def jit[**P, R](
    fun: Callable[P, R],
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
    donate_argnums: Numbers = None,
    donate_argnames: Names = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool | Inline = False,
    compiler_options: dict[str, str | bool | int | float] | None = None,
    calls: Calls | None = None,
) -> PjitFunction[P, R]: ...
@overload
def jit(
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
    donate_argnums: Numbers = None,
    donate_argnames: Names = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool | Inline = False,
    compiler_options: dict[str, str | bool | int | float] | None = None,
    calls: Calls | None = None,
) -> "JitDecorator": ...
def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
    donate_argnums: Numbers = None,
    donate_argnames: Names = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool | Inline = False,
    compiler_options: dict[str, str | bool | int | float] | None = None,
    calls: Calls | None = None,
) -> Any:
    """Compile a function, once for each signature of its arguments.

    Arguments are arrays, scalars and pytrees of them. Python runs the function once per
    structure, shapes and dtypes; later calls run the program, and do not wait for it.

    Static arguments (by position or name) are values while tracing; they must be
    hashable, and each new value or type compiles again. Donated arguments give their
    memory to the outputs and must not be used again. `keep_unused` passes arguments
    that the function ignores to the program; `inline`, a boolean or an `Inline`, writes
    the function into an outer trace instead of a call. `compiler_options` are XLA's, by
    name. `calls` says whether parts of the program that repeat are functions for XLA:
    "auto" (where that pays), "keep" or "inline"; None is what the configuration says.

    `in_shardings` and `out_shardings` say how arguments and results are placed:
    shardings, or prefix trees of them for the tuple of arguments and for the result;
    None leaves an argument as it is and a result to the compiler. With `device` or
    `backend` all goes to one device. Otherwise computation follows data: where the
    arguments are committed, or else on the default device.

    Raises:
        TypeError: an argument is neither an array nor static.
        ValueError: a static argument is not hashable; arguments are committed to
            different devices, or not as `in_shardings` says.

    >>> import verax, verax.numpy as vnp
    >>> double = verax.jit(lambda x: x * 2)
    >>> double(vnp.arange(3)).tolist()
    [0, 2, 4]
    """
    check_flags(keep_unused=keep_unused)
    options = CompileOptions(overrides=checked_options(compiler_options), calls=calls)
    shardings = resolve_shardings(in_shardings, out_shardings, device, backend)
    decorator = JitDecorator(
        static_argnums,
        static_argnames,
        donate_argnums,
        donate_argnames,
        keep_unused,
        as_inline(inline),
        options,
        shardings,
    )
    return decorator if fun is None else decorator(fun)


@frozen(eq=False, repr=False)
class JitDecorator(ReprMixin):
    """`jit` with its options, waiting for the function."""

    static_argnums: Numbers
    static_argnames: Names
    donate_argnums: Numbers
    donate_argnames: Names
    keep_unused: bool
    inline: bool
    options: CompileOptions
    shardings: Shardings

    def __call__[**P, R](self, fun: Callable[P, R]) -> PjitFunction[P, R]:
        check_function(fun)
        statics = resolve_statics(
            fun,
            self.static_argnums,
            self.static_argnames,
            self.donate_argnums,
            self.donate_argnames,
        )
        settings = Settings(
            statics, self.keep_unused, self.inline, self.options, self.shardings
        )
        return PjitFunction(fun, settings)
