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
from verax.ir.meshes import Layout
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.row import Engine, MissingRule, Row, Traits, as_typed, same_kind

type Types = tuple[ShapedArray, ...]
type Layouts = tuple[Layout | None, ...]
type Run = Callable[..., Sequence[np.ndarray]]


class ExportedModule:
    """The text of a module, what runs it on NumPy arrays, and its function's name.

    It is for `platforms`; where it `takes_platform`, its first argument is the number
    of the one that it runs on. If it is `unchecked` it may run on others, too.
    Where sizes are symbols, the module has the `declared` types, of arguments and of
    results, and the equation says more of them. A module for several devices says how
    arguments and results lie over them, by their position: `lie`. It is not a record,
    so that printed jaxprs show the name and not the text.
    """

    __slots__ = (
        "__name__",
        "declared",
        "lie",
        "num_devices",
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
        num_devices: int = 1,
        lie: "tuple[Layouts, Layouts]" = ((), ()),
    ) -> None:
        self.__name__ = name
        self.text = text
        self.run = run
        self.platforms = platforms
        self.takes_platform = takes_platform
        self.unchecked = unchecked
        self.declared = declared
        self.num_devices = num_devices
        self.lie = lie

    @property
    def key(self) -> tuple[object, ...]:
        """The key of a module: all but the name and what runs it."""
        return (
            self.text,
            self.platforms,
            self.takes_platform,
            self.unchecked,
            self.declared,
            self.num_devices,
            self.lie,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExportedModule) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def check_devices(self, count: int) -> None:
        """Raise ValueError unless a program over `count` devices may call the module.

        One for a single device may be called by any.
        """
        if self.num_devices not in (1, count):
            raise ValueError(
                f"Function {self.__name__} was exported for {self.num_devices} devices "
                f"and is called in a context with {count} devices, which is not "
                "allowed: put its arguments on a mesh of as many devices with "
                "verax.device_put, where in_shardings_jax(mesh) says"
            )

    def number_of(self, platform: str) -> int:
        """The number of a platform among those of the module.

        Raises:
            ValueError: the module is not for it.
        """
        if platform in self.platforms:
            return self.platforms.index(platform)
        if self.unchecked:
            return 0
        noun = "platform" if len(self.platforms) == 1 else "platforms"
        raise ValueError(
            f"Function {self.__name__} was exported for {noun} "
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
    if list(map(same_kind, avals)) != list(map(same_kind, p.ins)):
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
    p.module.check_devices(e.num_devices)
    number = p.module.number_of(e.platform)
    ins, results = (p.ins, outs) if p.module.declared is None else p.module.declared
    xs = [in_type(e, x, aval) for x, aval in zip(xs, ins, strict=True)]
    from_layouts, to_layouts = p.module.lie
    if p.module.takes_platform:
        xs = [e.constant(number, ShapedArray((), int32)), *xs]
        from_layouts = (None, *from_layouts) if from_layouts else ()
    out = e.embed(p.module.text, xs, results, from_layouts, to_layouts)
    return [in_type(e, x, aval) for x, aval in zip(out, outs, strict=True)]


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
    sharding=as_typed,
    compiled=True,
    multiple_results=True,
    traits=Traits(makes_nans=False),
)

ROWS = (call_exported_p,)
