"""Floor 2: how exactly contractions and convolutions multiply.

One idea: every way to say it (an enum, a name, a pair, an algorithm, the configuration)
becomes one hashable value of params: nothing, a pair of `Precision`, or an algorithm::

    precision_of("highest")    # (Precision.HIGHEST, Precision.HIGHEST)
"""

from enum import Enum, unique
from types import MappingProxyType
from typing import Final

from attrs import field, frozen

from verax.ir.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    float16,
    float32,
    float64,
    numpy_dtype,
)
from verax.ir.records import ReprMixin
from verax.rules.values.conversions import shown
from verax.rules.values.state import STATE


@unique
class Precision(Enum):
    """The number of passes of a float32 product on accelerators; CPUs are exact."""

    __module__ = "verax.lax"

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    def __str__(self) -> str:
        return self.name


@frozen(cache_hash=True, repr=False)
class DotAlgorithm(ReprMixin):
    """The algorithm of a product: in which types, in how many parts.

    `accumulation_type` is the type of sums. `*_component_count` is into how many parts
    an operand is split, `num_primitive_operations` how many products these make.
    """

    __module__ = "verax.lax"

    lhs_precision_type: DType = field(converter=as_dtype)
    rhs_precision_type: DType = field(converter=as_dtype)
    accumulation_type: DType = field(converter=as_dtype)
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(Enum):
    """Algorithms by name: types of operands and sums, and how many products."""

    __module__ = "verax.lax"

    DEFAULT = "DEFAULT"
    ANY_F8_ANY_F8_F32 = "ANY_F8_ANY_F8_F32"
    ANY_F8_ANY_F8_F32_FAST_ACCUM = "ANY_F8_ANY_F8_F32_FAST_ACCUM"
    ANY_F8_ANY_F8_ANY = "ANY_F8_ANY_F8_ANY"
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = "ANY_F8_ANY_F8_ANY_FAST_ACCUM"
    F16_F16_F16 = "F16_F16_F16"
    F16_F16_F32 = "F16_F16_F32"
    BF16_BF16_BF16 = "BF16_BF16_BF16"
    BF16_BF16_F32 = "BF16_BF16_F32"
    BF16_BF16_F32_X3 = "BF16_BF16_F32_X3"
    BF16_BF16_F32_X6 = "BF16_BF16_F32_X6"
    BF16_BF16_F32_X9 = "BF16_BF16_F32_X9"
    TF32_TF32_F32 = "TF32_TF32_F32"
    TF32_TF32_F32_X3 = "TF32_TF32_F32_X3"
    F32_F32_F32 = "F32_F32_F32"
    F64_F64_F64 = "F64_F64_F64"


type PrecisionLike = (
    str | Precision | tuple[str, str] | tuple[Precision, Precision] | Algorithm | None
)
type Algorithm = DotAlgorithm | DotAlgorithmPreset
type DotPrecision = tuple[Precision, Precision] | Algorithm | None

NAMES = {
    "default": Precision.DEFAULT,
    "bfloat16": Precision.DEFAULT,
    "fastest": Precision.DEFAULT,
    "high": Precision.HIGH,
    "bfloat16_3x": Precision.HIGH,
    "tensorfloat32": Precision.HIGH,
    "highest": Precision.HIGHEST,
    "float32": Precision.HIGHEST,
}

CONFIGURED: Final = MappingProxyType({**NAMES, **DotAlgorithmPreset.__members__})
"""The values of `default_matmul_precision`, by name."""


def precision_of(precision: object) -> DotPrecision:
    """The meaning of `precision`; None means the configuration's, if it says something.

    Raises:
        ValueError: it is not a precision, name, pair of these, or algorithm.
    """
    if precision is None:
        chosen = STATE.default_matmul_precision
        return None if chosen is None else precision_of(chosen)
    if isinstance(precision, DotAlgorithm):
        return precision
    if precision is DotAlgorithmPreset.DEFAULT:
        return None
    if isinstance(precision, DotAlgorithmPreset):
        return precision
    if isinstance(precision, str) and precision in DotAlgorithmPreset.__members__:
        return precision_of(DotAlgorithmPreset[precision])
    if isinstance(precision, tuple | list) and len(precision) == 2:
        first, second = precision
        return one_precision(first), one_precision(second)
    one = one_precision(precision)
    return one, one


def one_precision(precision: object) -> Precision:
    """The precision of one operand; None is the default."""
    if isinstance(precision, Precision):
        return precision
    if precision is None:
        return Precision.DEFAULT
    out = NAMES.get(precision) if isinstance(precision, str) else None
    if out is None:
        raise ValueError(
            "precision must be None, a verax.lax.Precision, one of "
            f"{', '.join(NAMES)}, a pair of these, a verax.lax.DotAlgorithmPreset or "
            f"its name, or a verax.lax.DotAlgorithm, not {shown(precision)}"
        )
    return out


def precision_attribute(precision: DotPrecision) -> str:
    """The text of `precision_config` for two operands."""
    pair = precision if isinstance(precision, tuple) else (Precision.DEFAULT,) * 2
    return f"[{', '.join(f'#stablehlo<precision {p.name}>' for p in pair)}]"


WORDS = {"F16": float16, "BF16": bfloat16, "F32": float32, "F64": float64}
MLIR = {float16: "f16", bfloat16: "bf16", float32: "f32", float64: "f64"}
SPLIT = ("_X3", "_X6", "_X9")


def storage(algorithm: Algorithm, dtype: DType) -> tuple[DType, DType]:
    """In which dtypes an operand of `dtype` enters, and the product leaves."""
    if isinstance(algorithm, DotAlgorithm):
        entering = algorithm.lhs_precision_type
        return entering, algorithm.accumulation_type
    parts = algorithm.value.split("_")
    if parts[0] == "ANY":
        return dtype, WORDS.get(parts[4], float32)
    if algorithm.value.endswith(SPLIT) or parts[0] == "TF32":
        return float32, float32
    if algorithm is DotAlgorithmPreset.BF16_BF16_F32 and dtype == float32:
        return float32, float32
    return WORDS[parts[0]], WORDS[parts[2]]


def algorithm_attribute(algorithm: Algorithm, lhs: str, rhs: str) -> str:
    """The text of `algorithm`; `lhs` and `rhs` are the MLIR types of the operands."""
    if isinstance(algorithm, DotAlgorithm):
        a = algorithm
        return algorithm_text(
            mlir_name(a.lhs_precision_type),
            mlir_name(a.rhs_precision_type),
            mlir_name(a.accumulation_type),
            (a.lhs_component_count, a.rhs_component_count, a.num_primitive_operations),
            a.allow_imprecise_accumulation,
        )
    words = algorithm.value.split("_")
    if words[0] == "ANY":
        sums = MLIR[WORDS.get(words[4], float32)]
        return algorithm_text(lhs, rhs, sums, (1, 1, 1), words[-1] == "ACCUM")
    products = int(words[3][1:]) if len(words) == 4 else 1
    first, second, sums = (word.lower() for word in words[:3])
    return algorithm_text(first, second, sums, (1, 1, products), False)


def mlir_name(dtype: DType) -> str:
    """The MLIR type of a float: `f32`, or `f8E4M3FN` of `float8_e4m3fn`."""
    entry = MLIR.get(numpy_dtype(dtype))
    return entry or "f8" + dtype.name.partition("_")[2].upper()


def algorithm_text(
    lhs: str, rhs: str, sums: str, counts: tuple[int, int, int], imprecise: bool
) -> str:
    """The attribute; `counts` are parts of each operand, and products of parts."""
    return (
        f"#stablehlo.dot_algorithm<lhs_precision_type = {lhs}, "
        f"rhs_precision_type = {rhs}, accumulation_type = {sums}, "
        f"lhs_component_count = {counts[0]}, "
        f"rhs_component_count = {counts[1]}, "
        f"num_primitive_operations = {counts[2]}, "
        f"allow_imprecise_accumulation = {str(imprecise).lower()}>"
    )


def is_default(precision: DotPrecision) -> bool:
    """Whether nobody has asked for more than the default, or for an algorithm."""
    if precision is None:
        return True
    return isinstance(precision, tuple) and set(precision) == {Precision.DEFAULT}
