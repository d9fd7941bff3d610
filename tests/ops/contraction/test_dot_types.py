"""Contractions: which dtype they have, in what they are summed up, how exactly.

What XLA is told of precisions and algorithms is held to the text, for a CPU multiplies
alike whatever it is told.
"""

import re
from itertools import combinations
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import verax
from tests.ops.agreement import both
from verax import lax
from verax.ir.dtypes import as_dtype, numpy_dtype
from verax.lax import DotAlgorithm, DotAlgorithmPreset, Precision
from verax.ops.contraction import dot
from verax.ops.contraction.dot import DotParams, dot_dtype
from verax.ops.contraction.precision import (
    algorithm_attribute,
    precision_attribute,
    precision_of,
    storage,
)
from verax.rules.values.constants import ANYTHING
from verax.rules.values.state import STATE
from verax.verify.cases.case import double_precision

MATRICES = (((1,), (0,)), ((), ()))
RISING = (
    "bool",
    "uint4",
    "int4",
    "uint8",
    "int8",
    "uint16",
    "int16",
    "uint32",
    "int32",
    "uint64",
    "int64",
    "float8_e4m3fn",
    "float8_e5m2",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)
"""Of two dtypes, the later one is that of the product."""
F32 = np.dtype(np.float32)


def test_the_dtype_of_a_product_is_the_more_precise_one() -> None:
    p = DotParams(MATRICES)
    for x, y in combinations(map(as_dtype, RISING), 2):
        assert dot_dtype(p, x, y) == dot_dtype(p, y, x) == y
    for preferred in ("float16", "float64"):
        wide = DotParams(MATRICES, None, as_dtype(preferred))
        assert dot_dtype(wide, F32, F32) == as_dtype(preferred)


SAMPLES = list(dict.fromkeys(ANYTHING.samples()))


@pytest.mark.slow
@pytest.mark.parametrize("third", range(3))
def test_products_of_matrices_of_each_dtype(third: int) -> None:
    """Sums of small floats have the digits of float32, and integers wrap around."""
    for dtype in map(numpy_dtype, SAMPLES[third::3]):
        row = np.array([[4, 1, 1, 1, 1, 1], [1, 0, 3, 0, 0, 2]]).astype(dtype)
        (z,) = both(dot.dot, row, row.T)
        due = row.astype(np.complex64) @ row.T.astype(np.complex64)
        if dtype.kind == "b":
            due = due != 0
        np.testing.assert_array_equal(z, due.real.astype(np.int64).astype(dtype))
        for dims in (((0,), (0,)), ((0,), (1,)), ((1,), (1,))):
            numbers = dims, ((), ())
            both(
                lambda x, y, n=numbers: dot.dot_general(x, y, n), row[:, :2], row[:, :2]
            )


def test_sums_of_small_floats_and_of_wider_operands() -> None:
    steps = np.array([[2048, 1, 1, 1, 1]], np.float16)
    (z,) = both(dot.dot, steps, np.ones((5, 1), np.float16))
    assert z.tolist() == [[2052]]
    (z,) = both(
        lambda x: dot.dot_general(x, x, (((1,), (1,)), ((), ()))),
        np.array([[16, 1, 1, 1, 1]], ml_dtypes.bfloat16),
    )
    assert z.astype(float).tolist() == [[260]]
    with double_precision():
        (z,) = both(
            lambda x, y: dot.dot_general(x, y, MATRICES, None, np.float32),
            np.array([[1e8 + 1, -1e8]]),
            np.ones((2, 1)),
        )
    assert z.tolist() == [[1]]
    flags = np.ones((2, 300), bool)
    (z,) = both(dot.dot, flags, flags.T)
    assert z.all()
    (z,) = both(dot.dot, flags.astype(np.int8), flags.T)
    assert z.tolist() == [[44, 44], [44, 44]]


FINE = np.array([[1 + 2.0**-12, 3], [1 / 3, 1]], np.float32)


@pytest.mark.parametrize(
    ("algorithm", "rounded"),
    [
        ("F16_F16_F32", np.float16),
        (DotAlgorithm("bfloat16", "bfloat16", "float32"), ml_dtypes.bfloat16),
        ("F32_F32_F32", np.float32),
        ("TF32_TF32_F32", np.float32),
        ("BF16_BF16_F32", np.float32),
        ("BF16_BF16_F32_X6", np.float32),
        ("BF16_BF16_BF16", ml_dtypes.bfloat16),
        ("F16_F16_F16", np.float16),
        ("F64_F64_F64", np.float64),
    ],
)
def test_operands_enter_as_the_algorithm_says(algorithm: Any, rounded: type) -> None:
    """One product of the first matrix of FINE with ones: its sums of rows."""
    (z,) = both(
        lambda x, y: dot.dot_general(x, y, MATRICES, precision=algorithm),
        FINE,
        np.eye(2, dtype=np.float32),
    )
    np.testing.assert_array_equal(z, FINE.astype(rounded).astype(np.float32))


PRESETS = [
    # (operands, sums) for float32 operands; what XLA is told; how many products
    ("ANY_F8_ANY_F8_F32", ("f32", "f32"), "f8E5M2 f8E4M3FN f32", 1),
    ("ANY_F8_ANY_F8_F32_FAST_ACCUM", ("f32", "f32"), "f8E5M2 f8E4M3FN f32", 1),
    ("ANY_F8_ANY_F8_ANY", ("f32", "f32"), "f8E5M2 f8E4M3FN f32", 1),
    ("ANY_F8_ANY_F8_ANY_FAST_ACCUM", ("f32", "f32"), "f8E5M2 f8E4M3FN f32", 1),
    ("F16_F16_F16", ("f16", "f16"), "f16 f16 f16", 1),
    ("F16_F16_F32", ("f16", "f32"), "f16 f16 f32", 1),
    ("BF16_BF16_BF16", ("bf16", "bf16"), "bf16 bf16 bf16", 1),
    ("BF16_BF16_F32", ("f32", "f32"), "bf16 bf16 f32", 1),
    ("BF16_BF16_F32_X3", ("f32", "f32"), "bf16 bf16 f32", 3),
    ("BF16_BF16_F32_X6", ("f32", "f32"), "bf16 bf16 f32", 6),
    ("BF16_BF16_F32_X9", ("f32", "f32"), "bf16 bf16 f32", 9),
    ("TF32_TF32_F32", ("f32", "f32"), "tf32 tf32 f32", 1),
    ("TF32_TF32_F32_X3", ("f32", "f32"), "tf32 tf32 f32", 3),
    ("F32_F32_F32", ("f32", "f32"), "f32 f32 f32", 1),
    ("F64_F64_F64", ("f64", "f64"), "f64 f64 f64", 1),
]
NAMES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}


def told(types: str, counts: tuple[int, int, int], fast: str) -> str:
    lhs, rhs, sums = types.split()
    return (
        f"#stablehlo.dot_algorithm<lhs_precision_type = {lhs}, "
        f"rhs_precision_type = {rhs}, accumulation_type = {sums}, "
        f"lhs_component_count = {counts[0]}, rhs_component_count = {counts[1]}, "
        f"num_primitive_operations = {counts[2]}, "
        f"allow_imprecise_accumulation = {fast}>"
    )


def test_each_algorithm_has_its_types_and_its_text() -> None:
    names = [name for name, *_ in PRESETS]
    assert ["DEFAULT", *names] == [preset.name for preset in DotAlgorithmPreset]
    for name, types, text, products in PRESETS:
        preset = DotAlgorithmPreset[name]
        assert storage(preset, F32) == tuple(as_dtype(NAMES[t]) for t in types)
        fast = str(name.endswith("ACCUM")).lower()
        actual = algorithm_attribute(preset, "f8E5M2", "f8E4M3FN")
        assert actual == told(text, (1, 1, products), fast)
    half = as_dtype("float16")
    assert storage(DotAlgorithmPreset.BF16_BF16_F32, half) == (
        as_dtype("bfloat16"),
        F32,
    )
    assert storage(DotAlgorithmPreset.ANY_F8_ANY_F8_F32, half) == (half, F32)


def test_an_algorithm_in_numbers_has_its_text() -> None:
    own = DotAlgorithm("float8_e5m2", "bfloat16", "float64")
    assert storage(own, F32) == (as_dtype("float8_e5m2"), as_dtype("float64"))
    due = told("f8E5M2 bf16 f64", (1, 1, 1), "false")
    assert algorithm_attribute(own, "", "") == due
    own = DotAlgorithm("float16", "float32", "float16", 2, 3, 4, True)
    due = told("f16 f32 f16", (2, 3, 4), "true")
    assert algorithm_attribute(own, "", "") == due


def test_names_of_precisions() -> None:
    names = ("default", "bfloat16", "fastest"), ("high", "bfloat16_3x", "tensorfloat32")
    of = Precision.DEFAULT, Precision.HIGH, Precision.HIGHEST
    for precision, known in zip(of, (*names, ("highest", "float32")), strict=True):
        for name in known:
            assert precision_of(name) == precision_of(precision) == (precision,) * 2
        words = f"#stablehlo<precision {precision.name}>"
        assert precision_attribute((precision,) * 2) == f"[{words}, {words}]"
    assert len(set(of)) == 3
    assert precision_of(["highest", None]) == (of[2], of[0])
    assert precision_of((None, "high")) == (of[0], of[1])
    assert precision_of(DotAlgorithmPreset.DEFAULT) is None
    assert precision_of("DEFAULT") is None
    assert precision_of("TF32_TF32_F32") is DotAlgorithmPreset.TF32_TF32_F32
    own = DotAlgorithm(F32, F32, F32)
    assert precision_of(own) is own
    default = "#stablehlo<precision DEFAULT>"
    for neither in (None, own):
        assert precision_attribute(neither) == f"[{default}, {default}]"


def test_the_configuration_names_a_precision() -> None:
    assert STATE.default_matmul_precision is None
    assert precision_of(None) is None
    with verax.default_matmul_precision("highest"):
        assert precision_of(None) == (Precision.HIGHEST,) * 2
        assert precision_of("high") == (Precision.HIGH,) * 2


def precisions(f: Any, *xs: Any) -> list[object]:
    """The precisions of the contractions of a program."""
    eqns = verax.make_jaxpr(f)(*xs).eqns
    actual = [getattr(eqn.params, "precision", None) for eqn in eqns]
    return [p for p in actual if p is not None]


def test_operands_keep_their_precision_in_derivatives() -> None:
    """Of x y, the cotangents are ct y', with the precision of x for ct, and x' ct."""
    x, y = np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)
    ct, own = np.ones((2, 2), np.float32), (Precision.HIGH, Precision.DEFAULT)

    def product(x: Any, y: Any) -> Any:
        return lax.dot(x, y, precision=("high", "default"))

    assert precisions(product, x, y) == [own]
    to_x = verax.linear_transpose(lambda v: product(v, y), x)
    to_y = verax.linear_transpose(lambda v: product(x, v), y)
    assert precisions(to_x, ct) == [own]
    assert precisions(to_y, ct) == [own[::-1]]
    text = verax.jit(product).lower(x, y).as_text()
    assert re.search("HIGH[^E].*DEFAULT", text)
