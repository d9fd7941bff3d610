"""Floor 2: calls of exported functions: a StableHLO module as one primitive.

One idea: the module is all there is, so it is copied into the program that calls it;
derivatives are modules of their own, and a batch goes through one lane at a time::

    b:f32[3] = call_exported[module=f] a
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np
from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Params
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.row import Engine, MissingRule, Row

type Run = Callable[..., Sequence[np.ndarray]]


class ExportedModule:
    """The text of a module, what runs it on NumPy arrays, and its function's name.

    Equal texts are equal modules. It is no record, so that printed jaxprs show the name
    and not the text.
    """

    __slots__ = ("__name__", "run", "text")
    transient: ClassVar[bool] = False

    def __init__(self, name: str, text: str, run: Run) -> None:
        self.__name__ = name
        self.text = text
        self.run = run

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExportedModule) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


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


def no_derivative(engine: Engine, p: ExportedParams, *operands: Any) -> NoReturn:
    raise MissingRule(
        f"the exported function {p.module.__name__} cannot be differentiated: it was "
        "serialised without derivatives of this order. Give serialize a larger "
        "vjp_order; derivatives are in reverse mode only"
    )


def lower_exported(
    e: Emitter, p: ExportedParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    return e.embed(p.module.text, xs, outs)


call_exported_p: Row[ExportedParams] = Row(
    "call_exported",
    ExportedParams,
    typing=typing_exported,
    evaluate=lambda engine, p, xs: p.module.run(*xs),
    jvp=no_derivative,
    transpose=no_derivative,
    lower=lower_exported,
    compiled=True,
)

ROWS = (call_exported_p,)
