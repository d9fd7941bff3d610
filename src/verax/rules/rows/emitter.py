"""Floor 1: how a row writes StableHLO without seeing jaxlib.

One idea: operands are opaque names, attributes are MLIR text, and the backend turns
the sequence of calls into a module::

    def lower(e, params, operands, outs):
        return e.op("stablehlo.transpose", operands, outs, permutation=i64s((1, 0)))
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Final, Protocol, Self, runtime_checkable

import numpy as np
from attrs import field, frozen

from verax.ir.avals import Shape, ShapedArray, SymbolicSize
from verax.ir.dtypes import DType, NumpyDType, bool_, float0, numpy_dtype
from verax.ir.jaxpr import Jaxpr
from verax.ir.meshes import BaseMesh, Layout, MeshAxes, MeshType, TypeSharding
from verax.ir.records import ReprMixin
from verax.rules.values.sizes import without

PLATFORMS: Final = ("cpu", "cuda", "rocm", "tpu")
GPUS: Final = ("cuda", "rocm")
HOSTING: Final = ("cpu", *GPUS)
"""The platforms whose programs can call functions of the host."""

TOKEN: Final = ShapedArray((), float0, weak_type=True)
"""The type of what puts effects in order: it has no elements, only a place."""


type Constant = float | int | bool | complex | np.ndarray | SymbolicSize


@frozen(repr=False)
class Operand(ReprMixin):
    """A value of the module under construction: its MLIR name and its type.

    A scalar constant is written when it is first used: until then it has no name, and
    `value` holds it, so that it can still become a constant of another shape.
    """

    name: str
    aval: ShapedArray
    value: Constant | None = field(default=None, eq=False)


type Region = Callable[[Sequence[Operand]], Sequence[Operand]]


@frozen(repr=False)
class ArrayAttribute(ReprMixin):
    """An array that a compiler is told: it is part of what an operation is."""

    dtype: NumpyDType
    shape: Shape
    data: bytes

    @classmethod
    def of(cls, array: np.ndarray) -> Self:
        """The array as it is now."""
        return cls(array.dtype, array.shape, array.tobytes())

    @property
    def array(self) -> np.ndarray:
        """The array, which cannot be written to."""
        return np.frombuffer(self.data, self.dtype).reshape(self.shape)


type Attribute = (
    bool
    | int
    | float
    | str
    | DType
    | np.generic
    | ArrayAttribute
    | tuple["Attribute", ...]
)
"""What a compiler may be told of an operation: a number, a text, a type, an array."""


@frozen(eq=False, repr=False)
class Composite(ReprMixin):
    """What a call of a function stands for, to a compiler that knows the name."""

    name: str
    version: int
    attributes: tuple[tuple[str, Attribute], ...]


class HostCall(Protocol):
    """A function of the host for a program: arrays to results of exact types."""

    def __hash__(self) -> int: ...
    def __call__(self, *arrays: np.ndarray) -> Sequence[np.ndarray]: ...
    def blanks(self) -> Sequence[np.ndarray]:
        """Zeros of the types of the results, for where a failure must not stop."""
        ...


@frozen(eq=False, repr=False)
class Part(ReprMixin):
    """A device's part of a call: a program of parts, and how they lie.

    `ins` and `outs` are the shardings on `mesh` of which `jaxpr` takes and gives parts;
    its collectives are between the devices of `mesh`.
    """

    jaxpr: Jaxpr
    mesh: BaseMesh
    ins: tuple[TypeSharding, ...]
    outs: tuple[TypeSharding, ...]


class Partitioner(Protocol):
    """A user's rule for a call in a program over the devices of a mesh."""

    def __hash__(self) -> int: ...
    def factors(self, mesh: BaseMesh) -> str | None:
        """The dimensions of operands and results that go together, for Shardy."""
        ...

    def part(
        self,
        mesh: BaseMesh,
        ins: Sequence[TypeSharding],
        outs: Sequence[TypeSharding],
    ) -> Part:
        """The program for each device, where the compiler would spread the call so."""
        ...


@runtime_checkable
class View(Partitioner, Protocol):
    """A listener to the layout of one value of a program, once that is compiled.

    Over several devices its `part` is asked, and gives the value back as it is.
    """

    def alone(self, device: object) -> None:
        """The program is for this one device; None stands for that of new arrays."""
        ...


class Viewer(Protocol):
    """A viewer of how a value of a program lies."""

    def __hash__(self) -> int: ...
    def alone(self, device: object) -> None:
        """See `View.alone`."""
        ...

    def of(self, aval: ShapedArray, parts: int) -> View:
        """The view of a value of this type, whose first dimensions are parts."""
        ...


class Emitter(Protocol):
    """Writes operations in order; every method returns the operands it made."""

    @property
    def num_devices(self) -> int:
        """The number of devices the program is for."""
        ...

    @property
    def platform(self) -> str:
        """The platform that the operations are for: "cpu", "cuda", "rocm" or "tpu".

        In a module for several, a rule that asks is run once for each of them.
        """
        ...

    def op(
        self,
        name: str,
        /,
        operands: Sequence[Operand],
        results: Sequence[ShapedArray],
        regions: Sequence[tuple[Sequence[ShapedArray], Region]] = (),
        **attributes: str,
    ) -> tuple[Operand, ...]:
        """One operation by its full name; attributes are MLIR attribute text.

        A region is (types of its block arguments, function from the arguments to
        the operands that it returns with `stablehlo.return`).
        """
        ...

    def threaded(
        self,
        name: str,
        operands: Sequence[Operand],
        results: Sequence[ShapedArray],
        regions: Sequence[tuple[Sequence[ShapedArray], Region]],
    ) -> tuple[Operand, ...]:
        """`op` for a while or case with ordered effects inside: their order goes on."""
        ...

    def callback(
        self,
        function: "HostCall",
        operands: Sequence[Operand],
        results: Sequence[ShapedArray],
        *,
        effect: bool,
        ordered: bool,
        everywhere: bool = False,
        partitioned: bool = False,
    ) -> tuple[Operand, ...]:
        """A call of a function of the host; XLA keeps it as it is if it has effects.

        In a program over several devices the first one calls it for all, unless it is
        called `everywhere`, by each for itself, or, `partitioned`, by each with what it
        has of the operands. The latter gives no results.
        """
        ...

    def partitioned(
        self,
        rule: Partitioner,
        operands: Sequence[Operand],
        results: Sequence[ShapedArray],
    ) -> tuple[Operand, ...] | None:
        """A call that XLA asks the rule about; None in a program for one device.

        A view is told of its operand there, too; the result of its call is not used.
        """
        ...

    def meeting(
        self, axes: tuple[str, ...], mesh: MeshAxes | None = None
    ) -> tuple[tuple[int, ...], ...] | None:
        """The devices that differ along the axes alone, by position, in their order.

        Without a mesh those of the mesh of which this is the program of each device;
        None if it is not, or there are no such axes.
        """
        ...

    def constant(
        self,
        value: Constant,
        aval: ShapedArray,
    ) -> Operand:
        """A constant of `aval`'s dtype; a scalar value fills the shape of `aval`."""
        ...

    def broadcast(self, x: Operand, shape: Shape, dimensions: Shape) -> Operand:
        """`x` with its dimension i at `dimensions[i]` of `shape`; nothing if equal."""
        ...

    def call(
        self,
        jaxpr: Jaxpr,
        operands: Sequence[Operand],
        name: str,
        composite: Composite | None = None,
    ) -> tuple[Operand, ...]:
        """A call of a private function for `jaxpr`, lowered once per module.

        With `composite` the function is what an operation is by definition, unless it
        has effects in order: an operation has none.
        """
        ...

    def embed(
        self,
        text: str,
        operands: Sequence[Operand],
        results: Sequence[ShapedArray],
        ins: Sequence[Layout | None] = (),
        outs: Sequence[Layout | None] = (),
    ) -> tuple[Operand, ...]:
        """A call of `main` of another module, whose functions are copied once.

        The module may be for as many devices as this one: `ins` and `outs` then say how
        operands and results lie, over devices by their position in the program.
        """
        ...

    def inline(self, jaxpr: Jaxpr, operands: Sequence[Operand]) -> tuple[Operand, ...]:
        """The equations of `jaxpr`, written here."""
        ...

    def attributed(
        self, attributes: Sequence[tuple[str, str]]
    ) -> AbstractContextManager[None]:
        """A block whose operations tell the compiler these keys and values."""
        ...

    def mark(self, x: Operand, attributes: Sequence[tuple[str, str]]) -> None:
        """Tell the compiler these keys and values with the operation that made `x`."""
        ...

    def layout(self, layout: Layout, aval: ShapedArray) -> str | None:
        """The attribute for values that lie so; None in a program for one device."""
        ...

    def typed_layout(self, mesh: MeshType, aval: ShapedArray) -> str | None:
        """The attribute for values that lie on a mesh as their type says; see `layout`.

        Axes along which the compiler decides may split them further.
        """
        ...

    def batch(
        self, jaxpr: Jaxpr, size: int, axes: tuple[int | None, ...]
    ) -> tuple[Jaxpr, tuple[int | None, ...]]:
        """`jaxpr` over a stack of inputs, under the rules of this module's engine."""
        ...


def constrained(
    e: Emitter, xs: Sequence[Operand], outs: Sequence[ShapedArray], mesh: MeshType
) -> Sequence[Operand]:
    """The values, which lie on a mesh as these types say."""
    out = []
    for x, aval in zip(xs, outs, strict=True):
        text = e.typed_layout(mesh, aval)
        if text is None:
            out.append(x)
        else:
            out += e.op("sdy.sharding_constraint", (x,), (aval,), sharding=text)
    return out


def by_platform[R](rules: Mapping[str, R]) -> Mapping[str, R]:
    """The rules under the names of `PLATFORMS`, read-only.

    A rule for "gpu" is for each kind of GPU that has no rule of its own.

    Raises:
        ValueError: the platform is unknown.

    >>> dict(by_platform({"gpu": 1, "cuda": 2}))
    {'cuda': 2, 'rocm': 1}
    """
    unknown = [name for name in rules if name not in (*PLATFORMS, "gpu")]
    if unknown:
        raise ValueError(
            f"lower_on takes rules for {', '.join(PLATFORMS)} and gpu (cuda and rocm), "
            f"not {unknown[0]!r}"
        )
    out = dict.fromkeys(GPUS, rules["gpu"]) if "gpu" in rules else {}
    out |= {name: rule for name, rule in rules.items() if name != "gpu"}
    return MappingProxyType(out)


def converted(e: Emitter, x: Operand, dtype: DType) -> Operand:
    """`x` in another dtype; itself where it has that."""
    if x.aval.dtype == dtype:
        return x
    return e.op("stablehlo.convert", (x,), (x.aval.with_dtype(dtype),))[0]


def constants(e: Emitter, sizes: Sequence[int], aval: ShapedArray) -> Operand:
    """Sizes, which may be symbolic, as a constant with one dimension."""
    if not any([isinstance(size, SymbolicSize) for size in sizes]):
        return e.constant(np.array(sizes, numpy_dtype(aval.dtype)), aval)
    one, scalar = aval.with_shape((1,)), aval.with_shape(())
    parts = [e.broadcast(e.constant(size, scalar), one.shape, ()) for size in sizes]
    return e.op("stablehlo.concatenate", parts, (aval,), dimension=i64(0))[0]


def direction(way: str) -> str:
    """The attribute of a comparison: EQ, NE, LT, LE, GT or GE."""
    return f"#stablehlo<comparison_direction {way}>"


def compared(e: Emitter, x: Operand, way: str, y: Operand, kind: str = "") -> Operand:
    """Compares `x` with `y`, which has its type: `compared(e, x, "LT", y)`.

    `kind` names the order if it is not the usual one.
    """
    text = {"comparison_direction": direction(way)}
    if kind:
        text["compare_type"] = f"#stablehlo<comparison_type {kind}>"
    out = ShapedArray(x.aval.shape, bool_)
    return e.op("stablehlo.compare", (x, y), (out,), (), **text)[0]


def folded(
    e: Emitter, x: Operand, start: Operand, axes: Sequence[int], combine: Region
) -> Operand:
    """`x` folded over `axes` from a scalar on: `combine` writes it for two scalars."""
    out = x.aval.with_shape(without(x.aval.shape, axes))
    region = (start.aval, start.aval), combine
    return e.op(
        "stablehlo.reduce", (x, start), (out,), (region,), dimensions=i64s(axes)
    )[0]


def apart(e: Emitter, xs: Sequence[Operand]) -> tuple[Operand, ...]:
    """The same values, of which XLA knows nothing and across which it fuses nothing."""
    if not xs:
        return ()
    return e.op("stablehlo.optimization_barrier", xs, [x.aval for x in xs])


def i64(value: int) -> str:
    return f"{value} : i64"


def i64s(values: Sequence[int]) -> str:
    """A dense array attribute of 64-bit integers.

    >>> i64s((1, 0))
    'array<i64: 1, 0>'
    """
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


def layout_text(order: Sequence[int]) -> str:
    """The attribute of a layout: the dimensions from minor to major.

    >>> layout_text((1, 0)), layout_text(())
    ('dense<[1, 0]> : tensor<2xindex>', 'dense<> : tensor<0xindex>')
    """
    axes = f"[{', '.join(map(str, order))}]" if order else ""
    return f"dense<{axes}> : tensor<{len(order)}xindex>"


def aliases_text(pairs: Iterable[tuple[int, int]], results: int) -> str:
    """The attribute of a custom call: which operand becomes which of its results."""
    result = [
        "#stablehlo.output_operand_alias<output_tuple_indices = "
        f"[{out if results > 1 else ''}], operand_index = {operand}, "
        "operand_tuple_indices = []>"
        for operand, out in pairs
    ]
    return f"[{', '.join(result)}]"


def typed_call(config: str) -> dict[str, str]:
    """The attributes of a custom call whose own attributes are typed: `config`.

    They stand in `mhlo.backend_config`, where programs for JAX look for them.
    """
    return {"backend_config": '""', "mhlo.backend_config": f"{{{config}}}"}


def flags(values: Sequence[bool]) -> str:
    """A dense array attribute of booleans."""
    text = ", ".join("true" if v else "false" for v in values)
    return f"array<i1: {text}>" if values else "array<i1>"


def flag(value: bool) -> str:
    return "true" if value else "false"


def ints(values: Sequence[int]) -> str:
    """The bracketed list that dimension-number attributes hold.

    >>> ints((0, 2))
    '[0, 2]'
    """
    return f"[{', '.join(map(str, values))}]"


def transposed(e: Emitter, x: Operand, order: Shape) -> Operand:
    """The operand with its dimensions in another order; itself if that is the same."""
    if order == tuple(range(len(order))):
        return x
    aval = x.aval.with_shape(x.aval.shape[i] for i in order)
    return e.op("stablehlo.transpose", (x,), (aval,), permutation=i64s(order))[0]


FACTOR_LETTERS: Final = 18
"""The letters from i to z."""


def batch_attributes(
    operands: Sequence[ShapedArray], results: Sequence[ShapedArray], count: int
) -> dict[str, str]:
    """The attributes of a custom call whose arrays share `count` dimensions.

    XLA knows nothing of a custom call, and gathers its operands on every device; these
    attributes tell it that the call on a part of a batch gives that part of the
    results. The target has to be registered as batch-partitionable, too. There are none
    without such dimensions, and where sizes are symbolic.
    """
    sizes = [n for x in (*operands, *results) for n in x.shape]
    if not count or any([isinstance(n, SymbolicSize) for n in sizes]):
        return {}
    rule = batch_rule([x.shape for x in operands], [x.shape for x in results], count)
    return {
        "mhlo.frontend_attributes": f'{{num_batch_dims = "{count}"}}',
        "sdy.sharding_rule": rule,
    }


def batch_rule(operands: Sequence[Shape], results: Sequence[Shape], count: int) -> str:
    """Shardy's rule for arrays that share their first dimensions, and no others.

    >>> batch_rule([(4, 2)], [(4,)], 1)
    '#sdy.op_sharding_rule<([i, j])->([i]) {i=4, j=2}>'
    """
    sizes = list((*operands, *results)[0][:count])
    result = []
    for shape in (*operands, *results):
        own = range(len(sizes), len(sizes) + len(shape) - count)
        result.append(f"[{', '.join(map(factor, (*range(count), *own)))}]")
        sizes += shape[count:]
    left, right = result[: len(operands)], result[len(operands) :]
    factors = ", ".join([f"{factor(i)}={n}" for i, n in enumerate(sizes)])
    moved = f"({', '.join(left)})->({', '.join(right)})"
    return f"#sdy.op_sharding_rule<{moved} {{{factors}}}>"


def factor(i: int) -> str:
    """The symbol of a factor: i, j, ..., z, z_1, z_2, ..."""
    return chr(ord("i") + i) if i < FACTOR_LETTERS else f"z_{i - FACTOR_LETTERS + 1}"
