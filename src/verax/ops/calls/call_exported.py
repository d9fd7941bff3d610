"""Floor 2: calls of exported functions: a StableHLO module as one primitive.

One idea: the module is all there is, so it is copied into the program that calls it;
derivatives are modules of their own, and a batch goes through one element at a time::

    b:f32[3] = call_exported[module=f] a
"""

from collections.abc import Callable, Sequence
from typing import ClassVar, NoReturn

import numpy as np
from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import int32
from verax.ir.jaxpr import Params
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.row import Engine, MissingRule, Row

type Types = tuple[ShapedArray, ...]
type Run = Callable[..., Sequence[np.ndarray]]


class ExportedModule:
    """The text of a module, what runs it on NumPy arrays, and its function's name.

    It is for `platforms`; where it `takes_platform`, its first argument is the number
    of the one that it runs on. If it is `unchecked` it may run on others, too.
    Where sizes are symbols, the module has the `declared` types, of arguments and of
    results, and the equation says more of them. It is not a record, so that printed
    jaxprs show the name and not the text.
    """

    __slots__ = (
        "__name__",
        "declared",
        "platforms",
        "run",
        "takes_platform",
        "text",
        "unchecked",
    )
    transient: ClassVar[bool] = False

    def __init__(
        self,
        name: str,
        text: str,
        run: Run,
        platforms: tuple[str, ...],
        *,
        takes_platform: bool,
        unchecked: bool,
        declared: "tuple[Types, Types] | None" = None,
    ) -> None:
        self.__name__ = name
        self.text = text
        self.run = run
        self.platforms = platforms
        self.takes_platform = takes_platform
        self.unchecked = unchecked
        self.declared = declared

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two modules equal: all but the name and what runs it."""
        return (
            self.text,
            self.platforms,
            self.takes_platform,
            self.unchecked,
            self.declared,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExportedModule) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def number_of(self, platform: str) -> int:
        """The number of a platform among those of the module.

        Raises:
            ValueError: the module is not for it.
        """
        if platform in self.platforms:
            return self.platforms.index(platform)
        if self.unchecked:
            return 0
        raise ValueError(
            f"the function {self.__name__} was exported for "
            f"{', '.join(self.platforms)}, but it is called on {platform}; list "
            "both in export(..., platforms=), or disable the check with "
            "DisabledSafetyCheck.platform()"
        )


@frozen(eq=False, repr=False)
class ExportedParams(Params):
    """The module, and the types of its arguments and results."""

    module: ExportedModule
    ins: tuple[ShapedArray, ...]
    outs: tuple[ShapedArray, ...]


def typing_exported(
    p: ExportedParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    if [a.strong() for a in avals] != [a.strong() for a in p.ins]:
        raise TypeError(
            f"the exported function {p.module.__name__} takes {p.ins}, "
            f"not {tuple(avals)}"
        )
    return p.outs


def no_derivative(engine: Engine, p: ExportedParams, *operands: object) -> NoReturn:
    raise MissingRule(
        f"the exported function {p.module.__name__} cannot be differentiated: it was "
        "serialised without derivatives of this order. Give serialize a larger "
        "vjp_order; derivatives are in reverse mode only"
    )


def lower_exported(
    e: Emitter, p: ExportedParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    number = p.module.number_of(e.platform)
    ins, results = (p.ins, outs) if p.module.declared is None else p.module.declared
    xs = [in_type(e, x, aval) for x, aval in zip(xs, ins, strict=True)]
    if p.module.takes_platform:
        xs = [e.constant(number, ShapedArray((), int32)), *xs]
    found = e.embed(p.module.text, xs, results)
    return [in_type(e, x, aval) for x, aval in zip(found, outs, strict=True)]


def in_type(e: Emitter, x: Operand, aval: ShapedArray) -> Operand:
    """A value in a type of the same dtype that says more or less of its sizes."""
    if x.aval.shape == aval.shape:
        return x
    return e.op("stablehlo.convert", (x,), (aval,))[0]


call_exported_p: Row[ExportedParams] = Row(
    "call_exported",
    ExportedParams,
    typing=typing_exported,
    evaluate=lambda engine, p, xs: p.module.run(*xs),
    jvp=no_derivative,
    transpose=no_derivative,
    lower=lower_exported,
    compiled=True,
    multiple_results=True,
)

ROWS = (call_exported_p,)
