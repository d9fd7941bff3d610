"""Floor 4: types and constants as MLIR text.

One idea: StableHLO has a text form that XLA reads itself, so a type is a string, made
once per aval, and a float is printed by its bits where digits would not do::

    mlir_type(ShapedArray((2, 3), float32))      # tensor<2x3xf32>
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any, Final, Protocol

import numpy as np
from attrs import evolve, field, frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import (
    DType,
    ExtendedDType,
    device_dtype,
    device_value,
    is_bool,
    is_complex,
    is_float,
    stored_dtype,
)
from verax.ir.effects import NO_EFFECTS, Effect
from verax.ir.jaxpr import NO_PARAMS, Eqn, Jaxpr, Literal, Params
from verax.ir.meshes import (
    FIRST_DEVICE,
    NO_TERMS,
    Axes,
    AxisType,
    BaseMesh,
    Layout,
    MeshAxes,
    MeshType,
    explicit_layout_text,
    first_device_text,
    layout_text as mesh_layout_text,
    mesh_known,
    mesh_text,
    terms_of,
)
from verax.ir.records import ReprMixin
from verax.rules.rows.emitter import (
    HOSTING,
    TOKEN,
    ArrayAttribute,
    Attribute,
    Composite,
    HostCall,
    Operand,
    Partitioner,
    Region,
    flag,
    layout_text,
)
from verax.rules.rows.row import Engine
from verax.rules.values.memo import pure
from verax.transforms.engine.engine import literal_value
from verax.transforms.pipeline import Body

FLOATS = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e3m4": "f8E3M4",
    "float8_e4m3": "f8E4M3",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3fnuz": "f8E4M3FNUZ",
    "float8_e5m2": "f8E5M2",
    "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU",
    "float4_e2m1fn": "f4E2M1FN",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    "bool": "i1",
}

WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")
FRONTEND: Final = "mhlo.frontend_attributes"

# From more elements than this a constant is written by its bytes.
MANY = 32
PACKED = frozenset(("int2", "uint2", "int4", "uint4", "float4_e2m1fn"))


@pure(256)
def element_type(dtype: DType) -> str:
    """The MLIR type of an element.

    >>> element_type(np.dtype("uint8")), element_type(np.dtype("bool"))
    ('ui8', 'i1')
    """
    dtype = device_dtype(dtype)
    known = FLOATS.get(dtype.name)
    if known is not None:
        return known
    digits = dtype.name.lstrip("uint")
    return f"ui{digits}" if dtype.name.startswith("u") else f"i{digits}"


def stored_shape(aval: ShapedArray) -> Shape:
    """The shape on the device: that of keys has the dimensions of a key at its end."""
    if isinstance(aval.dtype, ExtendedDType):
        return (*aval.shape, *aval.dtype.element_shape)
    return aval.shape


@pure(1 << 14)
def mlir_type(aval: ShapedArray) -> str:
    """The MLIR type of an array.

    >>> mlir_type(ShapedArray((2, 3), np.dtype("float32")))
    'tensor<2x3xf32>'
    """
    if aval is TOKEN:
        return "!stablehlo.token"
    sizes = [n if type(n) is int else "?" for n in stored_shape(aval)]
    dims = "".join([f"{size}x" for size in sizes])
    return f"tensor<{dims}{element_type(aval.dtype)}>"


def row_major(avals: Sequence[ShapedArray]) -> str:
    """The layouts attribute of a custom call on arrays as NumPy has them.

    >>> row_major([ShapedArray((2, 3), np.dtype("float32"))])
    '[dense<[1, 0]> : tensor<2xindex>]'
    """
    return f"[{', '.join(map(layout, avals))}]"


def layout(aval: ShapedArray) -> str:
    return layout_text(tuple(reversed(range(len(stored_shape(aval))))))


def float_text(value: float | np.floating, dtype: DType) -> str:
    """A float exactly: by digits where they are exact, else by its bits."""
    number = float(value)
    text = repr(number)
    if np.isfinite(number) and "e" not in text:
        return text
    bits = np.asarray(value, stored_dtype(dtype)).reshape(1)
    word = int(bits.view(f"u{bits.itemsize}")[0])
    return f"0x{word:0{2 * bits.itemsize}X}"


def scalar_text(value: Any, dtype: DType) -> str:
    """One element as it stands inside `dense<...>`."""
    if is_bool(dtype):
        return "true" if value else "false"
    if is_complex(dtype):
        part = np.dtype("float32" if dtype.itemsize == 8 else "float64")
        number = complex(value)
        return f"({float_text(number.real, part)}, {float_text(number.imag, part)})"
    if is_float(dtype):
        return float_text(value, dtype)
    return str(int(value))


def dense(value: object, aval: ShapedArray) -> str:
    """The attribute of a constant: one element for all, or nested lists of them."""
    array, dtype = device_value(value, aval.dtype), device_dtype(aval.dtype)
    if array.ndim == 0:
        return f"dense<{scalar_text(array[()], dtype)}> : {mlir_type(aval)}"
    if array.size == 0:
        return f"dense<> : {mlir_type(aval)}"
    if array.size > MANY and not is_bool(dtype) and dtype.name not in PACKED:
        words = np.ascontiguousarray(array, dtype.newbyteorder("<"))
        return f'dense<"0x{words.tobytes().hex().upper()}"> : {mlir_type(aval)}'
    return f"dense<{nested(array, dtype)}> : {mlir_type(aval)}"


def nested(array: np.ndarray, dtype: DType) -> str:
    if array.ndim == 0:
        return scalar_text(array[()], dtype)
    return f"[{', '.join(nested(row, dtype) for row in array)}]"


def symbol(name: str, taken: dict[str, int]) -> str:
    """A symbol like `name` that is not taken yet; `taken` counts those that are.

    >>> taken: dict[str, int] = {}
    >>> [symbol(name, taken) for name in ("f_1", "f", "f", "main")]
    ['f_1', 'f', 'f_2', 'main_']
    """
    stem = "".join(c if c.isalnum() or c == "." else "_" for c in name) or "f"
    stem = stem if stem[0] != "." else f"_{stem}"
    stem = "main_" if stem == "main" else stem
    count = taken.get(stem, 0)
    out = f"{stem}_{count}" if count else stem
    while count and out in taken:
        count += 1
        out = f"{stem}_{count}"
    taken[stem] = count + 1
    taken.setdefault(out, 1)
    return out


# An algorithm of a product in types that CPUs compute in; XLA puts such a product into
# loops of its own where it is small, and these refuse every algorithm.
PLAIN_ALGORITHM: Final = re.compile(
    r", algorithm = #stablehlo\.dot_algorithm<lhs_precision_type = "
    r"(?:(?:f16|bf16)[^>]*accumulation_type = (?:f16|bf16|f32)"
    r"|t?f32[^>]*accumulation_type = f32|f64[^>]*accumulation_type = f64)"
    r"[^>]*allow_imprecise_accumulation = false>"
)


def without_algorithms(text: str) -> str:
    """The module for a CPU: its products have the types of their algorithms anyway.

    >>> without_algorithms('"stablehlo.dot_general"(%1, %2) {}')
    '"stablehlo.dot_general"(%1, %2) {}'
    """
    return PLAIN_ALGORITHM.sub("", text) if "dot_algorithm<" in text else text


def escaped(text: str) -> str:
    """A string in quotes in MLIR."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return plain.replace("\n", "\\0A")


def attribute_text(value: Attribute) -> str:
    """What a compiler is told of an operation, as MLIR has it.

    >>> attribute_text((2, True, 0.5, "sum", np.dtype("float32")))
    '[2 : i64, true, 0.5 : f64, "sum", f32]'
    >>> attribute_text(np.float32(1)), attribute_text(ArrayAttribute.of(np.arange(2)))
    ('1.0 : f32', 'dense<[0, 1]> : tensor<2xi64>')
    """
    if isinstance(value, str):
        return f'"{escaped(value)}"'
    if isinstance(value, np.dtype | ExtendedDType):
        return element_type(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(attribute_text, value))}]"
    if isinstance(value, bool | np.bool):
        return "true" if value else "false"
    if isinstance(value, ArrayAttribute):
        return dense(value.array, ShapedArray(value.shape, value.dtype))
    dtype = np.asarray(value).dtype
    return f"{scalar_text(value, dtype)} : {element_type(dtype)}"


def composite_attributes(composite: Composite, symbol: str) -> Mapping[str, str]:
    """The attributes of an operation whose meaning the function `symbol` says."""
    told = [f"{key} = {attribute_text(x)}" for key, x in composite.attributes]
    attributes = {
        "name": attribute_text(composite.name),
        "decomposition": f"@{symbol}",
    }
    if told:
        attributes["composite_attributes"] = f"{{{', '.join(told)}}}"
    if composite.version:
        attributes["version"] = f"{composite.version} : i32"
    return attributes


def frontend(attributes: Iterable[tuple[str, str]]) -> str:
    """The attribute that tells the compiler these keys and values.

    >>> frontend([("a", "1"), ("a b", 'say "hi"')])
    '{a = "1", "a b" = "say \\\\"hi\\\\""}'
    """
    return "{" + ", ".join([frontend_entry(k, v) for k, v in attributes]) + "}"


def frontend_entry(key: str, value: str) -> str:
    """One key with its value; a key that is not a word is in quotes."""
    name = key if WORD.fullmatch(key) else f'"{escaped(key)}"'
    return f'{name} = "{escaped(value)}"'


def with_frontend(operation: str, attributes: Iterable[tuple[str, str]]) -> str:
    """The text of an operation that tells the compiler more; it keeps what it tells.

    >>> line = '%1 = "stablehlo.sine"(%0) : (tensor<f32>) -> tensor<f32>'
    >>> with_frontend(line, [("a", "1")])
    '%1 = "stablehlo.sine"(%0) {mhlo.frontend_attributes = {a = "1"}} : \
(tensor<f32>) -> tensor<f32>'
    """
    head, colon, types = operation.rpartition(" : (")
    if not colon:
        return operation  # a constant
    start = f"{FRONTEND} = {{"
    place = head.rfind(start)
    told = head[place:] if place >= 0 and "})" not in head[place:] else ""
    new = [(k, v) for k, v in attributes if frontend_entry(k, "")[:-1] not in told]
    if not new:
        return operation
    if told:
        head = f"{head[:place]}{start}{frontend(new)[1:-1]}, {told[len(start) :]}"
    elif head.endswith("}"):
        head = f"{head[:-1]}, {FRONTEND} = {frontend(new)}}}"
    else:
        head = f"{head} {{{FRONTEND} = {frontend(new)}}}"
    return f"{head}{colon}{types}"


# -----------------------------------------------------------------------------
# How the text of a module calls functions of the host, and in which order.
#
# A function has a number in the module; what is ordered takes a token and gives
# another one, and the token goes through functions, loops and branches like any value::
#
#     %3:2 = "stablehlo.custom_call"(%token, %x) {index = 0 : ui64, ...}


TARGETS: Final[Mapping[str, str]] = MappingProxyType(
    {
        name: f'"xla_ffi_python_{"cpu" if name == "cpu" else "gpu"}_callback"'
        for name in HOSTING
    }
)
"""The name of a call of the host on each platform."""
PARTITIONED_TARGETS: Final[Mapping[str, str]] = MappingProxyType(
    {
        name: target.replace("ffi_", "ffi_partitioned_")
        for name, target in TARGETS.items()
    }
)
"""The name of a call by each device, which XLA does not bring together for it."""
type Regions = Sequence[tuple[Sequence[ShapedArray], Region]]


@frozen(cache_hash=True, repr=False)
class PartitionCall(ReprMixin):
    """The question of XLA while it compiles a module: a rule for calls over a mesh.

    What the rule gives is lowered for `platform`, under the rows of `engine`. A view of
    a value is asked for each value, and has its `place` among the calls; without a mesh
    the program is for one device, and nothing is asked.
    """

    rule: Partitioner
    mesh: BaseMesh | None
    engine: Engine
    platform: str
    place: int | None = None


@frozen(repr=False)
class HostCalls(ReprMixin):
    """The functions of a module, each with whether it is ordered, and its effects.

    `partitions` are the rules of the user's that XLA asks while it compiles it.
    """

    functions: tuple[tuple[HostCall, bool], ...]
    effects: frozenset[Effect]
    partitions: tuple[PartitionCall, ...] = ()

    @property
    def local(self) -> bool:
        """Whether the module says something to this process alone."""
        return bool(self.functions or self.partitions)


NO_CALLS: Final = HostCalls((), NO_EFFECTS)


def call_attributes(
    index: int,
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    effect: bool,
    platform: str,
) -> dict[str, str]:
    """The attributes of a call of function `index`; both sides are row-major."""
    return {
        "call_target_name": TARGETS[platform],
        "api_version": "4 : i32",
        "backend_config": f"{{index = {index} : ui64}}",
        "has_side_effect": flag(effect),
        "operand_layouts": row_major(operands),
        "result_layouts": row_major(results),
    }


PARTITIONED: Final = "verax_custom_partitioning"
"""The name under which XLA finds who answers for a call that a rule partitions."""
RULES: Final = "rule of this process: "
"""The text before the number of a rule in a module."""


def partition_attributes(
    index: int, factors: str | None, *, effect: bool
) -> dict[str, str]:
    """The attributes of a call that XLA asks rule `index` about."""
    out = {
        "call_target_name": f'"{PARTITIONED}"',
        "api_version": "2 : i32",
        "backend_config": f'"{RULES}{index}"',
        "has_side_effect": flag(effect),
    }
    return out if factors is None else out | {"sdy.sharding_rule": factors}


class Ordering(Protocol):
    """A writer of operations that holds the token after the last ordered effect."""

    token: Operand

    def op(
        self,
        name: str,
        /,
        operands: Sequence[Operand],
        results: Sequence[ShapedArray],
        regions: Regions = (),
        **attributes: str,
    ) -> tuple[Operand, ...]: ...


def ordered_regions(
    writer: Ordering,
    name: str,
    operands: Sequence[Operand],
    results: Sequence[ShapedArray],
    regions: Regions,
) -> tuple[Operand, ...]:
    """A while or case whose regions have ordered effects: the token goes through.

    A loop carries the token, and its predicate has no ordered effects; each branch of a
    case begins with the token from outside.
    """
    start = writer.token

    def branch(body: Region) -> Region:
        def inside(xs: Sequence[Operand]) -> Sequence[Operand]:
            writer.token = start
            return [*body(xs), writer.token]

        return inside

    def step(body: Region) -> Region:
        def inside(xs: Sequence[Operand]) -> Sequence[Operand]:
            *state, writer.token = xs
            return [*body(state), writer.token]

        return inside

    def predicate(body: Region) -> Region:
        return lambda xs: body(xs[:-1])

    if name == "stablehlo.while":
        (types, more), (_, body) = regions
        carried = (*types, TOKEN)
        ins: Sequence[Operand] = (*operands, start)
        threaded: Regions = [(carried, predicate(more)), (carried, step(body))]
    else:
        ins = operands
        threaded = [(avals, branch(body)) for avals, body in regions]
    *outs, token = writer.op(name, ins, (*results, TOKEN), threaded)
    writer.token = token
    return tuple(outs)


# -----------------------------------------------------------------------------
# The meshes that a module over several devices declares and names.
#
# A mesh gets a symbol when something is first placed on it, and programs for one device
# declare none::
#
#     Meshes((0, 1)).layout(layout, aval)     # '#sdy.sharding<@mesh, [{"x"}]>'


class Meshes:
    """Symbols of meshes; `order` are the devices of the program, by number.

    `mesh` is the one over which the program is spread. In the program of each device
    of a mesh, `own` has its axes, and `order` is empty.
    """

    def __init__(
        self,
        order: tuple[int, ...] = (),
        mesh: BaseMesh | None = None,
        own: MeshAxes | None = None,
    ) -> None:
        self.order = order
        self.mesh = mesh
        self.own = own
        self.symbols: dict[MeshAxes, str] = {}
        self.typed: dict[tuple[MeshType, ShapedArray], str] = {}
        self.first_device = False

    def lines(self) -> list[str]:
        """The declarations of the meshes named so far."""
        out = [
            f"  sdy.mesh {symbol} = {mesh_text(mesh, self.order)}\n"
            for mesh, symbol in self.symbols.items()
        ]
        return [*out, FIRST_DEVICE] if self.first_device else out

    def layout(self, layout: Layout, aval: ShapedArray) -> str | None:
        """See `Emitter.layout`."""
        if len(self.order) < 2:
            return None
        symbol = self.symbol(self.located(layout.mesh))
        ndim = len(stored_shape(aval))
        terms = layout.terms if aval.size else NO_TERMS  # XLA drops constraints of none
        return mesh_layout_text(symbol, layout.splits, ndim, terms)

    def numbered(self, layout: Layout | None) -> Layout | None:
        """The layout, whose devices are positions in this program, over its devices."""
        if layout is None:
            return None
        devices = tuple([self.order[place] for place in layout.mesh.devices])
        return evolve(layout, mesh=evolve(layout.mesh, devices=devices))

    def typed_layout(self, mesh: MeshType, aval: ShapedArray) -> str | None:
        """See `Emitter.typed_layout`."""
        if len(self.order) < 2:
            return None
        key = (mesh, aval)
        entry = self.typed.get(key)
        if entry is None:
            entry = self.typed[key] = self.written_layout(mesh, aval)
        return entry

    def written_layout(self, mesh: MeshType, aval: ShapedArray) -> str:
        """The text of `typed_layout`: the compiler may use its own axes, no others."""
        explicit = aval.explicit
        splits = ((),) * aval.ndim if explicit is None else explicit.splits
        free, ndim = AxisType.Auto in mesh.types, len(stored_shape(aval))
        symbol = self.symbol(self.along(mesh.names, mesh.sizes))
        terms = terms_of(explicit) if aval.size else NO_TERMS
        named = () if explicit is None else explicit.axes
        own = mesh.of_type(AxisType.Explicit) if free else ()
        whole = tuple([axis for axis in own if axis not in named])
        return explicit_layout_text(symbol, splits, ndim, free, terms, whole)

    def located(self, mesh: MeshAxes) -> MeshAxes:
        """The mesh, over the devices of the program if it names none."""
        return mesh if mesh.devices else self.along(mesh.names, mesh.sizes)

    def along(self, names: Axes, sizes: tuple[int, ...]) -> MeshAxes:
        """The devices along axes without devices: those of the program's own mesh."""
        own = self.mesh
        if own is not None and (own.axis_names, own.axis_sizes) == (names, sizes):
            axes: MeshAxes | None = getattr(own, "axes", None)
            if axes is not None:
                return axes
        return MeshAxes(names, sizes, self.order or tuple(range(prod(sizes))))

    def symbol(self, mesh: MeshAxes) -> str:
        """The name of a mesh in the module."""
        number = len(self.symbols)
        return self.symbols.setdefault(mesh, f"@mesh_{number}" if number else "@mesh")

    def result_attribute(self, mesh: BaseMesh | None, aval: ShapedArray) -> str:
        """The attribute of a result whose place XLA chooses along some axes of a mesh.

        It does not along the explicit ones, of which the type speaks.
        """
        if mesh is None or not (mesh.auto_axes and mesh.explicit_axes):
            return ""
        return f"sdy.sharding = {self.written_layout(mesh_known(mesh), aval)}"

    def sharding_attribute(self, layout: Layout | None, aval: ShapedArray) -> str:
        """The attribute of an argument or result with this layout."""
        text = None if layout is None else self.layout(layout, aval)
        return "" if text is None else f"sdy.sharding = {text}"

    def meeting(
        self, axes: tuple[str, ...], mesh: MeshAxes | None = None
    ) -> tuple[tuple[int, ...], ...] | None:
        """See `Emitter.meeting`: programs have devices in the order of their numbers.

        >>> own = MeshAxes(("x", "y"), (2, 2), (0, 1, 3, 2))
        >>> Meshes(own=own).meeting(("y",)), Meshes(own=own).meeting(("x",))
        (((0, 1), (3, 2)), ((0, 3), (1, 2)))
        """
        order = self.order if mesh else ()
        mesh = mesh or self.own
        if mesh is None or not set(axes) <= set(mesh.names):
            return None
        mesh = self.located(mesh)
        order = order or tuple(sorted(mesh.devices))
        places = np.array([order.index(i) for i in mesh.devices]).reshape(mesh.sizes)
        values = np.moveaxis(
            places, [mesh.names.index(name) for name in axes], range(-len(axes), 0)
        )
        count = prod([mesh.size(name) for name in axes])
        return tuple([tuple(row) for row in values.reshape(-1, count).tolist()])

    def on_first_device(self, results: int) -> dict[str, str]:
        """The attribute of a call that one device of several makes for all."""
        if len(self.order) < 2:
            return {}
        self.first_device = True
        return {"sdy.sharding": first_device_text(results)}


# -----------------------------------------------------------------------------
# The result of lowering, and what it needs to know about devices.
#
# Both are values, so that a module can be looked at, kept and compared::
#
#     Lowered(text, constants, kept, in_avals, out_avals)


# Elements up to which the code of an array operation is as fast unrolled as not: it is
# dwarfed by the call of the operation.
SMALL: Final = 2048
OPERATION: Final = re.compile(r"(?<![#!\w])(?:stablehlo|chlo)\.")


@frozen(repr=False)
class Seconds(ReprMixin):
    """The time a module took to make: rewriting the program, and writing the text."""

    rewrite: float = 0.0
    write: float = 0.0


@frozen(repr=False)
class Lowered(ReprMixin):
    """A module as text, the constants it takes first, and the arguments it keeps.

    `kept[i]` says whether argument i of the jaxpr is an argument of the module;
    `donated` are the positions of arguments of the jaxpr that a run uses up; `calls`
    are the functions of the host that the module calls by their number; `name` is that
    of the function, for messages. `small` says that its arrays are: see `is_small`.
    It is for `platforms`; where it `takes_platform`, its first argument is the number
    of the one that it runs on.
    """

    text: str
    constants: tuple[Literal, ...]
    kept: tuple[bool, ...]
    in_avals: tuple[ShapedArray, ...]
    out_avals: tuple[ShapedArray, ...]
    donated: tuple[int, ...] = ()
    calls: HostCalls = NO_CALLS
    name: str = "a compiled function"
    small: bool = False
    seconds: Seconds = field(default=Seconds(), eq=False)
    platforms: tuple[str, ...] = ()
    takes_platform: bool = False

    @property
    def operations(self) -> int:
        """The number of operations in the text, each function counted once."""
        return len(OPERATION.findall(self.text))


type Kinds = tuple[str | None, ...]


@frozen(repr=False)
class Memories(ReprMixin):
    """The kinds of memory in which arguments and results lie, None for the device's."""

    ins: Kinds
    outs: Kinds

    def kept(self, kept: Sequence[bool]) -> "Memories":
        """The same without the arguments that a module drops."""
        return Memories(
            tuple([kind for kind, flag in zip(self.ins, kept, strict=True) if flag]),
            self.outs,
        )


@frozen(repr=False)
class Spread(ReprMixin):
    """The spread of a program's arguments and results over several devices.

    `order` are the numbers of the devices, `mesh` names the axes along which they lie.
    An output is None where XLA chooses. On one device it says `memories` alone.
    """

    order: tuple[int, ...]
    mesh: BaseMesh | None
    ins: tuple[Layout | None, ...]
    outs: tuple[Layout | None, ...]
    of_constant: Callable[[Literal], Layout | None]
    memories: Memories

    @property
    def summed(self) -> tuple[Layout | None, ...]:
        """The places where terms are summed: none if no device holds terms of a value.

        XLA brings them elsewhere by itself, but makes no sums.
        """
        layouts = (*self.ins, *self.outs)
        if any([layout is not None and bool(layout.terms) for layout in layouts]):
            return self.outs
        return ()


def array_constants(jaxpr: Jaxpr) -> tuple[Literal, ...]:
    """The array constants of a jaxpr and of those inside, one per object."""
    return tuple([const.literal for const in jaxpr.used_consts])


def inner_constants(params: Params) -> tuple[Literal, ...]:
    """The array constants of the jaxprs that an equation holds, one per object."""
    if params is NO_PARAMS:
        return ()
    out = [c for inner in params.subjaxprs() for c in array_constants(inner)]
    return tuple(dict.fromkeys(out))


def written_constant(literal: Literal) -> Operand:
    """An array constant that the module holds, written where it is first used."""
    return Operand("", literal.aval, np.asarray(literal_value(literal)))


def is_small(body: Body) -> bool:
    """Whether no array of the program is large, those of jaxprs inside included.

    Loops do not count: an array that is computed often may still be small.
    """
    avals = {v.aval for v in body.invars} | {c.aval for c in body.consts}
    seen: set[Jaxpr] = set()
    waiting: list[Iterable[Eqn]] = [body.live_eqns]
    while waiting:
        for eqn in waiting.pop():
            avals.update([v.aval for v in eqn.outvars])
            if eqn.params is not NO_PARAMS:
                inner = [j for j in eqn.params.subjaxprs() if j not in seen]
                seen.update(inner)
                waiting += [j.eqns for j in inner]
    return max([aval.size for aval in avals], default=0) <= SMALL
