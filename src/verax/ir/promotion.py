"""Floor 0: which dtype the operands of an operation are promoted to.

One idea: dtypes and the three weak numbers `i*`, `f*`, `c*` are the nodes of a small
lattice, written as edges; promotion is the least upper bound, computed once per pair::

    promote_types(int8, uint8, x64=False)             # dtype('int16')
    join(int8, False, float32, True, x64=False)       # (dtype('float32'), True)
    join(bfloat16, False, float32, True, x64=False)   # (dtype(bfloat16), False)

The semantics are those of "JAX Type Promotion Semantics": a Python number is weak and
takes the dtype of the array that it is combined with, unless its kind of number is
higher.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, Protocol

import numpy as np

from verax.ir.avals import check_fits
from verax.ir.dtypes import (
    COMPLEX,
    FLOATING,
    NARROWED,
    NUMERIC,
    SIGNED,
    SMALL_FLOATS,
    UNSIGNED,
    DType,
    ExtendedDType,
    default_dtype,
    float0,
    from_short_name,
    is_bool,
    is_complex,
    is_extended,
    is_float,
    is_integer,
    is_unsigned,
    numpy_dtype,
    real_dtype,
    short_name,
)
from verax.ir.memos import memoised

type Typed = tuple[DType, bool]
type PythonNumber = type[bool] | type[int] | type[float] | type[complex]
type Lattice = Mapping[str, frozenset[str]]


class HasType(Protocol):
    """An aval, or an array: what has a dtype that may be weak."""

    @property
    def dtype(self) -> DType: ...
    @property
    def weak_type(self) -> bool: ...


class TypePromotionError(TypeError, ValueError):
    """No implicit promotion leads from the operands' dtypes to a common one."""

    __module__ = "verax.errors"


def names(dtypes: tuple[DType, ...]) -> str:
    return " ".join(map(short_name, dtypes))


# Each node and its next higher ones. Small floats and integers of 2 and 4 bits are dead
# ends, so that numbers never leave them without the user saying so.
EDGES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "bool": "i*",
        "i*": "u2 u4 u8 i2 i4 i8",
        "u8": "u16 i16",
        "u16": "u32 i32",
        "u32": "u64 i64",
        "u64": "f*",
        "i8": "i16",
        "i16": "i32",
        "i32": "i64",
        "i64": "f*",
        "f*": f"{names(SMALL_FLOATS)} bf16 f16 c*",
        "bf16": "f32",
        "f16": "f32",
        "f32": "f64 c64",
        "f64": "c128",
        "c*": "c64",
        "c64": "c128",
    }
)
# Without 64 bits, u32 and i32 join to i32: the only 32-bit pair that asks for 64.
EDGES_32: Final[Mapping[str, str]] = MappingProxyType({**EDGES, "u32": "i32 u64"})
# The strict mode lets only Python numbers adapt.
EDGES_STRICT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "i*": f"f* {names(SIGNED)} {names(UNSIGNED)}",
        "f*": f"c* {names(FLOATING)}",
        "c*": names(COMPLEX),
    }
)


def upper_bounds(edges: Mapping[str, str]) -> Lattice:
    """Of each node, itself and all nodes above it.

    >>> sorted(upper_bounds({"a": "b", "b": "c"})["b"])
    ['b', 'c']
    """

    def above(node: str) -> frozenset[str]:
        higher = edges.get(node, "").split()
        return frozenset((node,)).union(*map(above, higher))

    nodes = {*edges, *(node for higher in edges.values() for node in higher.split())}
    return MappingProxyType({node: above(node) for node in nodes})


# Every dtype is a node, also where nothing is above it.
ALONE: Final[Mapping[str, str]] = MappingProxyType(
    {short_name(dtype): "" for dtype in NUMERIC}
)
STANDARD: Final = upper_bounds({**ALONE, **EDGES})
STANDARD_32: Final = upper_bounds({**ALONE, **EDGES_32})
STRICT: Final = upper_bounds({**ALONE, **EDGES_STRICT})
WEAK_NODES: Final[Mapping[type, str]] = MappingProxyType(
    {bool: "bool", int: "i*", float: "f*", complex: "c*"}
)


def node_of(dtype: DType, weak: bool) -> str:
    """The lattice's name of `dtype`; weak numbers of any width share one node."""
    if not weak or is_bool(dtype):
        return short_name(dtype)
    if is_integer(dtype):
        return "i*"
    return "c*" if is_complex(dtype) else "f*"


def least_upper_bound(nodes: frozenset[str], x64: bool, strict: bool) -> str:
    """The lowest node above all `nodes`.

    Raises:
        TypePromotionError: there is none.
    """
    lattice = STRICT if strict else STANDARD if x64 else STANDARD_32
    if not nodes <= lattice.keys():
        raise TypePromotionError(no_promotion(nodes, strict))
    common = frozenset.intersection(*(lattice[node] for node in nodes))
    lowest = [node for node in common if common <= lattice[node]]
    if not lowest:
        raise TypePromotionError(no_promotion(nodes, strict))
    return lowest[0]


SMALL_FLOAT: Final = re.compile(r"f(\d)_")


def no_promotion(nodes: frozenset[str], strict: bool) -> str:
    """Why `nodes` have no common dtype, and what to write instead."""
    shown = " and ".join(sorted(map(long_name, nodes)))
    advice = "convert one explicitly, as in x.astype('float32')"
    if any(node.startswith("key<") for node in nodes):
        advice = (
            "keys combine only with keys of the same generator; verax.random.key_data "
            "gives their words"
        )
    if "float0" in shown:
        return (
            "float0s do not support any operations by design, since they are tangents "
            f"of integers and booleans; {shown} have no common dtype"
        )
    if strict:
        return (
            f"Input dtypes {shown} have no available implicit dtype promotion path "
            f"when jax_numpy_dtype_promotion=strict; {advice}"
        )
    narrow = sorted({m[1] for node in nodes if (m := SMALL_FLOAT.match(node))})
    if narrow:
        shown += f", of which {narrow[0]}-bit floats do not support implicit promotion,"
    return f"{shown} have no common dtype by implicit promotion; {advice}"


def long_name(node: str) -> str:
    """`node` under the name that users know."""
    weak = {"i*": "Python int", "f*": "Python float", "c*": "Python complex"}
    if node in weak:
        return weak[node]
    return from_short_name(node).name if node in ALONE else node


def dtype_of_node(node: str, x64: bool) -> Typed:
    """The dtype of `node` and whether it is weak."""
    match node:
        case "i*":
            return default_dtype("integer", x64), True
        case "f*":
            return default_dtype("floating", x64), True
        case "c*":
            return default_dtype("complex", x64), True
        case _:
            return from_short_name(node), False


def bound(
    types: tuple[Typed, ...], x64: bool, strict: bool, wide: bool = False
) -> Typed:
    """The bound `lattice_join` of any number of operands, without a cache."""
    dtypes = {dtype for dtype, _ in types}
    weak = all(weak for _, weak in types)
    if len(types) == 1 or (len(dtypes) == 1 and not weak):
        first = types[0][0]
        return first, weak and not is_bool(first)
    # All operands weak: their dtypes decide, so that the weak int8 of an earlier
    # conversion is not widened by meeting another one.
    adapt = strict or not weak
    nodes = frozenset(node_of(dtype, adapt and is_weak) for dtype, is_weak in types)
    dtype, adapted = dtype_of_node(least_upper_bound(nodes, x64, strict), x64)
    dtype = dtype if x64 or wide else NARROWED.get(dtype, dtype)
    return dtype, (weak or adapted) and not is_bool(dtype)


@memoised
def join(
    a: DType,
    a_weak: bool,
    b: DType,
    b_weak: bool,
    x64: bool,
    strict: bool = False,
    wide: bool = False,
) -> Typed:
    """The dtype of two operands and whether it is weak: one cached look-up.

    `wide` leaves operands of 64 bits as they are, although x64 is off.

    Raises:
        TypePromotionError: there is no implicit promotion.

    >>> from verax.ir.dtypes import float16, int32
    >>> join(int32, False, float16, False, x64=False)
    (dtype('float16'), False)
    """
    return bound(((a, a_weak), (b, b_weak)), x64, strict, wide)


@memoised
def join_all(
    types: tuple[Typed, ...], x64: bool, strict: bool = False, wide: bool = False
) -> Typed:
    """The dtype of one or more operands and whether it is weak.

    All at once, because joining pair by pair may ask for more: i32 and u32 meet in i64,
    although with a float beside them the result is that float.

    Raises:
        ValueError: there are no operands.
        TypePromotionError: there is no implicit promotion.

    >>> from verax.ir.dtypes import float32, int8, uint8
    >>> join_all(((int8, False), (uint8, False), (float32, True)), x64=False)
    (dtype('float32'), True)
    """
    if not types:
        raise ValueError("promotion needs at least one operand")
    return bound(types, x64, strict, wide)


def lattice_join(*types: Typed, x64: bool, strict: bool = False) -> Typed:
    """The dtype of operands as (dtype, weak) pairs; see `join_all`.

    >>> from verax.ir.dtypes import float32, uint8
    >>> lattice_join((uint8, False), (float32, True), x64=False)
    (dtype('float32'), True)
    """
    return join_all(types, x64, strict)


@memoised
def widen_weak(dtype: DType, weak: bool, x64: bool) -> Typed:
    """(dtype, weak) with the default width if weak, as fresh Python numbers have.

    >>> from verax.ir.dtypes import int8
    >>> widen_weak(int8, True, x64=False)
    (dtype('int32'), True)
    """
    if not weak:
        return dtype, weak
    if is_float(dtype):
        return default_dtype("floating", x64), weak
    if is_complex(dtype):
        return default_dtype("complex", x64), weak
    if is_bool(dtype):
        return dtype, False
    return default_dtype("unsigned" if is_unsigned(dtype) else "integer", x64), weak


def result_type(*avals: HasType, x64: bool, strict: bool = False) -> Typed:
    """The dtype that operations give `avals`, and whether it is weak.

    Unlike in `lattice_join`, a weak result has the default width of its kind.

    Raises:
        ValueError: there are no avals.
        TypePromotionError: there is no implicit promotion.

    >>> from verax.ir.avals import ShapedArray
    >>> from verax.ir.dtypes import float32, int32
    >>> weak = ShapedArray((), float32, weak_type=True)
    >>> result_type(ShapedArray((2,), int32), weak, x64=False)
    (dtype('float32'), True)
    """
    types = tuple((aval.dtype, aval.weak_type) for aval in avals)
    dtype, weak = join_all(types, x64, strict)
    return widen_weak(dtype, weak, x64)


@memoised
def promote_types(
    a: DType | PythonNumber, b: DType | PythonNumber, x64: bool, strict: bool = False
) -> DType:
    """The dtype of two dtypes; `int`, `float` and `complex` stand for weak numbers.

    Raises:
        TypePromotionError: there is no implicit promotion.

    >>> from verax.ir.dtypes import bfloat16, float16, uint8
    >>> promote_types(bfloat16, float16, x64=False)
    dtype('float32')
    >>> promote_types(uint8, int, x64=False)
    dtype('uint8')
    """
    if not isinstance(a, type) and not isinstance(b, type) and a == b:
        return a
    nodes = frozenset(
        WEAK_NODES[one] if isinstance(one, type) else short_name(one) for one in (a, b)
    )
    return dtype_of_node(least_upper_bound(nodes, x64, strict), x64)[0]


# -----------------------------------------------------------------------------
# The text of one array element, and the element of a text, bit by bit.
#
# The text is the shortest decimal that reads back to the same bits, and where
# no decimal does (a NaN with a payload, a random key) it is the bits themselves::
#
#     scalar_text(np.float32(0.1).tobytes(), float32)    # '0.1'
#     scalar_bytes("0.1", float32)                       # b'\xcd\xcc\xcc='


BOOLEANS = {"False": b"\x00", "True": b"\x01"}


@memoised
def scalar_text(data: bytes, dtype: DType) -> str:
    """The text of the element of `dtype` whose bytes are `data`.

    >>> scalar_text(np.float16(-0.0).tobytes(), np.dtype("float16"))
    '-0.0'
    """
    for text in decimals(data, dtype):
        if scalar_bytes(text, dtype) == data:
            return text
    return f"0x{data[::-1].hex()}"


@memoised
def scalar_bytes(text: str, dtype: DType) -> bytes:
    """The bytes of the element of `dtype` that `text` stands for.

    Raises:
        ValueError: `text` is not an element of `dtype`.
        OverflowError: an integer dtype does not hold the number.

    >>> scalar_bytes("1.0", np.dtype("float16"))
    b'\\x00<'
    """
    if text.startswith("0x"):
        return checked_bits(text, dtype)
    if is_bool(dtype) and text in BOOLEANS:
        return BOOLEANS[text]
    with np.errstate(all="ignore"):
        if is_integer(dtype):
            check_fits(int(text), dtype)
            return np.array(int(text), numpy_dtype(dtype)).tobytes()
        if is_float(dtype):
            return np.array(float(text), numpy_dtype(dtype)).tobytes()
        if is_complex(dtype):
            return np.array(complex(text), numpy_dtype(dtype)).tobytes()
    raise ValueError(f"{text!r} is not an element of {dtype}")


def checked_bits(text: str, dtype: DType) -> bytes:
    """The bytes that a hexadecimal text spells, the highest first."""
    data = bytes.fromhex(text[2:])[::-1]
    if len(data) != dtype.itemsize:
        raise ValueError(
            f"{text!r} has {len(data)} bytes, but {dtype} has {dtype.itemsize}"
        )
    return data


def decimals(data: bytes, dtype: DType) -> Iterator[str]:
    """Readable strings that may stand for `data`, the nicest first."""
    if is_extended(dtype) or dtype == float0 or len(data) != dtype.itemsize:
        return
    if is_bool(dtype):
        yield from BOOLEANS
    elif is_integer(dtype):
        yield str(int(np.frombuffer(data, numpy_dtype(dtype))[0]))
    elif is_float(dtype):
        yield from float_decimals(data, dtype)
    elif is_complex(dtype):
        half = len(data) // 2
        real, imag = (
            next(float_decimals(part, real_dtype(dtype)))
            for part in (data[:half], data[half:])
        )
        yield f"{real}{'' if imag.startswith('-') else '+'}{imag}j"


def float_decimals(data: bytes, dtype: DType) -> Iterator[str]:
    """The short decimal that NumPy prints, then the exact one."""
    value = np.frombuffer(data, numpy_dtype(dtype))[0]
    short = str(value)
    yield f"{short}.0" if short.lstrip("-").isdigit() else short
    yield repr(float(value))


def element(data: bytes, dtype: DType) -> np.ndarray:
    r"""The read-only array that holds one element: without dimensions of its own.

    >>> element(b"\x00<", np.dtype("float16"))
    array(1., dtype=float16)
    """
    if isinstance(dtype, ExtendedDType):
        stored = np.frombuffer(data, dtype.element_dtype)
        return stored.reshape(dtype.element_shape)
    if not data:
        return np.zeros((), dtype)
    return np.frombuffer(data, dtype).reshape(())
