"""Floor 0: the text of one array element, and the element of a text, bit by bit.

One idea: the text is the shortest decimal that reads back to the same bits, and where
no decimal does (a NaN with a payload, a random key) it is the bits themselves::

    scalar_text(np.float32(0.1).tobytes(), float32)    # '0.1'
    scalar_bytes("0.1", float32)                       # b'\\xcd\\xcc\\xcc='
"""

from collections.abc import Iterator

import numpy as np

from verax.ir.dtypes import (
    DType,
    float0,
    is_bool,
    is_complex,
    is_extended,
    is_float,
    is_integer,
    numpy_dtype,
    real_dtype,
)
from verax.ir.extended import ExtendedDType
from verax.ir.limits import check_fits
from verax.ir.memos.memo import memoised

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
