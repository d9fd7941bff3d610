"""Dtypes and promotion: names, categories, relatives, and the whole promotion table."""

import pickle
from itertools import product
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from verax.ir import dtypes as d
from verax.ir.avals import ShapedArray, bit_width, check_fits, finfo, iinfo
from verax.ir.dtypes import ExtendedDType, KeyDType, key_from_name
from verax.ir.promotion import (
    Typed,
    TypePromotionError,
    join,
    join_all,
    lattice_join,
    promote_types,
    result_type,
    widen_weak,
)

GOLDEN = Path(__file__).parent / "goldens" / "promotion.txt"
KEY = KeyDType("fry", (2,))
WEAK = (d.int32, d.int64, d.float32, d.float64, d.complex64, d.complex128)
OPERANDS: tuple[Typed, ...] = (
    *((dtype, False) for dtype in d.NUMERIC),
    *((dtype, True) for dtype in WEAK),
)
MODES = tuple(product((False, True), (False, True)))


def typed_name(typed: Typed) -> str:
    return ("~" if typed[1] else "") + d.short_name(typed[0])


def cell(a: Typed, b: Typed, x64: bool, strict: bool) -> str:
    try:
        return typed_name(join(*a, *b, x64, strict))
    except TypePromotionError:
        return "-"


def promotion_table() -> str:
    """For each mode and dtype, `result: partners` for each result; the rest raises."""
    lines = []
    for strict, x64 in MODES:
        lines.append(f"# {'strict' if strict else 'standard'}, x64 {x64}")
        for a in OPERANDS:
            partners: dict[str, list[str]] = {}
            for b in OPERANDS:
                partners.setdefault(cell(a, b, x64, strict), []).append(typed_name(b))
            partners.pop("-", None)
            groups = (f"{result}: {' '.join(bs)}" for result, bs in partners.items())
            lines.append(f"{typed_name(a)} | {'; '.join(groups)}")
    return "\n".join(lines) + "\n"


def test_promotion_table_is_the_one_that_was_compared_with_jax() -> None:
    assert promotion_table() == GOLDEN.read_text()


@pytest.mark.parametrize(("strict", "x64"), MODES)
def test_join_is_symmetric_and_idempotent(strict: bool, x64: bool) -> None:
    for a, b in product(OPERANDS, OPERANDS):
        assert cell(a, b, x64, strict) == cell(b, a, x64, strict)
    for dtype in d.NUMERIC:
        assert join(dtype, False, dtype, False, x64, strict) == (dtype, False)


@pytest.mark.parametrize("dtype", [*d.NUMERIC, d.float0, KEY, KeyDType("mine", (2, 3))])
def test_short_names_and_full_names_lead_back(dtype: d.DType) -> None:
    assert d.from_short_name(d.short_name(dtype)) == dtype
    if dtype != d.float0:
        assert d.as_dtype(dtype.name) == dtype


def test_short_names() -> None:
    names = "f32 bf16 i32 u8 bool c64 f8_e4m3fn f8_e4m3b11fnuz i4 f4_e2m1fn float0"
    assert [d.short_name(d.from_short_name(name)) for name in names.split()] == (
        names.split()
    )
    with pytest.raises(ValueError, match="short name 'f31'"):
        d.from_short_name("f31")


@pytest.mark.parametrize(
    ("given", "narrow", "wide"),
    [
        (bool, d.bool_, d.bool_),
        (int, d.int32, d.int64),
        (float, d.float32, d.float64),
        (complex, d.complex64, d.complex128),
        ("float64", d.float32, d.float64),
        (np.uint64, d.uint32, d.uint64),
        (np.longlong, d.int32, d.int64),
        (ml_dtypes.bfloat16, d.bfloat16, d.bfloat16),
        (np.zeros(2, np.int16), d.int16, d.int16),
        ("key<fry>", KEY, KEY),
        (KEY, KEY, KEY),
        (d.float0, d.float0, d.float0),
    ],
)
def test_canonical(given: d.DTypeLike, narrow: d.DType, wide: d.DType) -> None:
    assert d.canonical(given, x64=False) == narrow
    assert d.canonical(given, x64=True) == wide


def test_canonical_gives_one_object_per_dtype() -> None:
    assert d.canonical(np.dtype(np.longlong), x64=True) is d.int64


@pytest.mark.parametrize(
    "given",
    [None, object(), [("a", "f4")], "S3", ">f4", "nonsense", np.longdouble, str],
)
def test_canonical_refuses_what_is_no_dtype_of_arrays(given: d.DTypeLike) -> None:
    with pytest.raises(TypeError, match="is not a dtype of arrays"):
        d.canonical(given, x64=False)


def test_a_class_with_a_dtype_stands_for_it() -> None:
    class Scalar:
        dtype = d.bfloat16

    assert d.as_dtype(Scalar) is d.bfloat16


def test_categories_know_the_dtypes_that_numpy_does_not() -> None:
    for dtype in d.SMALL_FLOATS:
        assert d.is_subdtype(dtype, "floating")
        assert d.is_float(dtype)
        assert d.is_inexact(dtype)
        assert not d.is_complex(dtype)
    assert d.is_subdtype(d.int4, "signed")
    assert d.is_signed(d.int4)
    assert d.is_subdtype(d.uint2, "unsigned")
    assert d.is_unsigned(d.uint2)
    assert d.is_integer(d.uint2)
    assert d.is_bool(d.bool_)
    assert not d.is_integer(d.bool_)
    assert d.is_subdtype(KEY, "extended")
    assert not d.is_subdtype(d.float0, "number")
    with pytest.raises(ValueError, match="no dtype category 'real'"):
        d.is_subdtype(d.float32, "real")  # type: ignore[arg-type]  # the error is meant


def test_relatives() -> None:
    assert d.tangent_dtype(d.bool_) == d.float0
    assert d.tangent_dtype(KEY) == d.float0
    assert d.tangent_dtype(d.float8_e5m2) == d.float8_e5m2
    assert d.real_dtype(d.complex128) == d.float64
    assert d.real_dtype(d.bfloat16) == d.bfloat16
    assert d.complex_dtype(d.float32) == d.complex64
    assert d.complex_dtype(d.complex128) == d.complex128
    assert d.inexact_dtype(d.bool_) == d.float32
    with pytest.raises(TypeError, match="holds no numbers"):
        d.inexact_dtype(KEY)


def test_scalars() -> None:
    assert d.dtype_of_scalar(True, x64=True) == (d.bool_, False)
    assert d.dtype_of_scalar(1, x64=True) == (d.int64, True)
    assert d.dtype_of_scalar(1j, x64=False) == (d.complex64, True)
    assert d.dtype_of_scalar(np.float64(1), x64=False) == (d.float32, False)
    with pytest.raises(TypeError, match="is not a scalar"):
        d.dtype_of_scalar("1", x64=False)  # type: ignore[arg-type]  # the error is meant


def test_limits() -> None:
    assert float(finfo(d.complex64).eps) == float(finfo(d.float32).eps)
    assert finfo(d.float8_e4m3fn).max == 448
    assert (iinfo(d.uint4).min, iinfo(d.uint4).max) == (0, 15)
    assert [bit_width(t) for t in (d.int2, d.bfloat16, d.complex128)] == [2, 16, 128]
    with pytest.raises(ValueError, match="finfo needs"):
        finfo(d.int32)
    with pytest.raises(ValueError, match="iinfo needs"):
        iinfo(d.float32)
    check_fits(2**31 - 1, d.int32)
    check_fits(2**99, d.float32)
    with pytest.raises(OverflowError, match="too large to convert to int32"):
        check_fits(2**31, d.int32)


def test_keys_are_values_that_numpy_dtypes_differ_from() -> None:
    assert pickle.loads(pickle.dumps(KEY)) == KEY
    assert hash(KeyDType("fry", (2,))) == hash(KEY)
    assert KEY not in d.INEXACT_SET
    assert np.dtype("float32") != KEY
    assert KEY.itemsize == 8
    assert KEY.kind == "V"
    assert isinstance(KEY, ExtendedDType)
    assert key_from_name("float32") is None
    assert key_from_name("key<unheard-of>") is None
    with pytest.raises(TypeError, match="key<fry> is an extended dtype"):
        d.numpy_dtype(KEY)


def test_extended_dtypes_and_float0_join_only_with_themselves() -> None:
    assert lattice_join((KEY, False), (KEY, False), x64=False) == (KEY, False)
    assert lattice_join((d.float0, False), x64=False) == (d.float0, False)
    assert promote_types(KEY, KEY, x64=False) == KEY
    with pytest.raises(TypePromotionError, match="Python int and key<fry>"):
        lattice_join((KEY, False), (d.int32, True), x64=False)
    with pytest.raises(TypePromotionError, match="float0 and float32"):
        promote_types(d.float0, d.float32, x64=False)


def test_many_operands_are_joined_at_once() -> None:
    operands = ((d.int32, False), (d.uint64, False), (d.float16, False))
    assert join_all(operands, True) == (d.float16, False)
    wide = ((d.int32, False), (d.uint32, False), (d.int16, True))
    assert join_all(wide, True) == (d.int64, False)
    with pytest.raises(ValueError, match="at least one operand"):
        lattice_join(x64=False)


def test_errors_say_what_to_do() -> None:
    with pytest.raises(TypePromotionError, match=r"float32 and float8_e5m2.*astype"):
        join(d.float8_e5m2, False, d.float32, False, False)
    with pytest.raises(TypePromotionError, match=r"Input dtypes bool and"):
        join(d.bool_, False, d.int8, False, False, True)
    assert issubclass(TypePromotionError, TypeError)
    assert issubclass(TypePromotionError, ValueError)


def test_result_type_widens_weak_results() -> None:
    weak = ShapedArray((), d.float16, weak_type=True)
    assert result_type(weak, weak, x64=False) == (d.float32, True)
    assert result_type(weak, weak, x64=True) == (d.float64, True)
    assert lattice_join((d.float16, True), (d.float16, True), x64=True) == (
        (d.float16, True)
    )
    assert widen_weak(d.uint8, True, True) == (d.uint64, True)
    assert widen_weak(d.complex128, True, False) == (d.complex64, True)


def test_promote_types_with_python_numbers() -> None:
    assert promote_types(d.float16, float, x64=True) == d.float16
    assert promote_types(d.int32, float, x64=False) == d.float32
    assert promote_types(d.int64, int, x64=True) == d.int64
    assert promote_types(int, complex, x64=True) == d.complex128
