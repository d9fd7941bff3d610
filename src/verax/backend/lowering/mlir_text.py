"""Floor 4: types and constants as MLIR text.

One idea: StableHLO has a text form that XLA reads itself, so a type is a string, made
once per aval, and a float is printed by its bits where digits would not do::

    mlir_type(ShapedArray((2, 3), float32))      # tensor<2x3xf32>
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import (
    DType,
    device_dtype,
    device_value,
    is_bool,
    is_complex,
    is_float,
    stored_dtype,
)
from verax.ir.extended import ExtendedDType
from verax.rules.rows.emitter import TOKEN, layout_text
from verax.rules.values.memo import pure

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
    stem = "".join(c if c.isalnum() else "_" for c in name) or "f"
    stem = "main_" if stem == "main" else stem
    count = taken.get(stem, 0)
    found = f"{stem}_{count}" if count else stem
    while count and found in taken:
        count += 1
        found = f"{stem}_{count}"
    taken[stem] = count + 1
    taken.setdefault(found, 1)
    return found


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
