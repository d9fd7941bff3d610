"""What equations cost: floating-point operations and bytes (floor 6).

One estimate for each primitive, from types alone, before any compiler joins loops: a
multiplication in a product of matrices or a convolution counts two operations, what
works element by element one for each element, a loop what its body does times its
trips. What moves data costs bytes alone::

    Costs().of(eqn)        # Cost(flops=2048.0, bytes=512.0)
"""

from collections.abc import Callable, Mapping, Sequence
from math import log2, prod
from types import MappingProxyType
from typing import Any, Final

from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import NO_PARAMS, Eqn, Jaxpr
from verax.ir.records import ReprMixin

type Types = Sequence[ShapedArray]
type Count = Callable[[Any, Types, Types], float]


@frozen(repr=False)
class Cost(ReprMixin):
    """Operations and bytes; None where they are not known."""

    flops: float | None
    bytes: float | None


UNKNOWN: Final = Cost(None, None)


def nothing(p: object, ins: Types, outs: Types) -> float:
    """No operation: data is moved, or only seen in another way."""
    return 0.0


def each_result(p: object, ins: Types, outs: Types) -> float:
    """One operation for each element of the result."""
    return float(outs[0].size)


def each_operand(p: object, ins: Types, outs: Types) -> float:
    """One operation for each element of the first operand."""
    return float(ins[0].size)


def each_update(p: object, ins: Types, outs: Types) -> float:
    """One operation for each element that is scattered."""
    return float(ins[-1].size)


def product(p: Any, ins: Types, outs: Types) -> float:
    """Two operations for each multiplication of a product of matrices."""
    (contracted, _), _ = p.dimension_numbers
    return float(2 * outs[0].size * prod([ins[0].shape[i] for i in contracted]))


def convolution(p: Any, ins: Types, outs: Types) -> float:
    """Two operations for each multiplication, those with padding included."""
    kernel = ins[1]
    count: int = kernel.shape[p.dimension_numbers[1][0]]
    return 2.0 * outs[0].size * kernel.size / count


def windows(p: Any, ins: Types, outs: Types) -> float:
    """One operation for each element of each window."""
    return float(outs[0].size * prod(p.window_dimensions))


def spread_windows(p: Any, ins: Types, outs: Types) -> float:
    """One operation for each element of the window of each cotangent."""
    return float(ins[0].size * prod(p.window_dimensions))


def sorting(p: Any, ins: Types, outs: Types) -> float:
    """The comparisons of a sort, `n log2 n` for each row."""
    axis = getattr(p, "dimension", -1)
    return float(ins[0].size * log2(max(2, ins[0].shape[axis])))


def fourier(p: Any, ins: Types, outs: Types) -> float:
    """`5 n log2 n` operations for each transform of size n."""
    size = max(ins[0].size, outs[0].size)
    return 5.0 * size * log2(max(2, prod(p.fft_lengths)))


def cubic(factor: float) -> Count:
    """A factorisation of m x n matrices: `factor m n min(m, n)` operations."""

    def count(p: object, ins: Types, outs: Types) -> float:
        *_, m, n = ins[0].shape
        return factor * ins[0].size * min(m, n)

    return count


def substitution(p: Any, ins: Types, outs: Types) -> float:
    """A multiplication and a sum for each element of the triangle and each column."""
    return float(ins[0].shape[-1] * ins[1].size)


def named[T](count: T, names: str) -> dict[str, T]:
    """One rule for several primitives or operations."""
    return dict.fromkeys(names.split(), count)


ELEMENTWISE: Final = (
    "neg add sub mul div rem max min abs sign nextafter integer_pow exp exp2 expm1 log "
    "log2 log1p sqrt rsqrt cbrt square one_minus_square logistic logaddexp pow sin cos "
    "tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh floor ceil round "
    "is_finite eq ne lt le gt ge eq_to lt_to le_to not and or xor shift_left "
    "shift_right_arithmetic shift_right_logical population_count clz mulhi complex "
    "conj erf erfc erf_inv lgamma digamma polygamma zeta igamma igammac igamma_grad_a "
    "random_gamma_grad regularized_incomplete_beta bessel_i0e bessel_i1e xlogy xlog1py "
    "select_n clamp convert_element_type reduce_precision any_lane"
)
MOVES: Final = (
    "stop_gradient copy bitcast_convert_type iota dim_as_value transpose "
    "broadcast_in_dim reshape squeeze expand_dims slice pad concatenate rev device_put "
    "reshard dynamic_slice dynamic_update_slice gather scatter real imag "
    "sharding_constraint optimization_barrier name xla_metadata_value dce_sink "
    "all_gather all_to_all ppermute axis_index platform_index lu_pivots_to_permutation "
    "get_ref set_ref new_ref freeze random_wrap random_unwrap"
)
RULES: Final[Mapping[str, Count]] = MappingProxyType(
    {
        **named(each_result, ELEMENTWISE),
        **named(nothing, MOVES),
        **named(
            each_operand,
            "reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or "
            "reduce_xor reduce argmax argmin cumsum cumprod cummax cummin "
            "cumlogsumexp psum reduce_scatter",
        ),
        **named(
            each_update, "scatter-add scatter-sub scatter-mul scatter-min scatter-max"
        ),
        **named(
            windows,
            "reduce_window_sum reduce_window_max reduce_window_min reduce_window",
        ),
        "select_and_scatter_add": spread_windows,
        **named(sorting, "sort top_k"),
        "dot_general": product,
        "conv_general_dilated": convolution,
        "fft": fourier,
        "cholesky": cubic(1 / 3),
        "lu": cubic(2 / 3),
        "geqrf": cubic(4 / 3),
        "triangular_solve": substitution,
    }
)
VIEWS: Final = frozenset(
    [
        "reshape",
        "squeeze",
        "expand_dims",
        "stop_gradient",
        "optimization_barrier",
        "name",
        "sharding_constraint",
        "xla_metadata_value",
        "dce_sink",
        "random_wrap",
        "random_unwrap",
    ]
)
"""What moves no byte."""
PICKED: Final = frozenset(["slice", "dynamic_slice", "gather"])
"""What reads of its first operand only as much as it returns."""
PLACED: Final[Mapping[str, int]] = MappingProxyType(
    {
        "dynamic_update_slice": 1,
        "scatter": -1,
        "scatter-add": -1,
        "scatter-sub": -1,
        "scatter-mul": -1,
        "scatter-min": -1,
        "scatter-max": -1,
    }
)
"""What changes a part of its first operand, which is not copied: where that part is."""


FOREIGN: Final = frozenset(
    ["pure_callback", "io_callback", "debug_callback", "ffi_call"]
)
"""What runs outside the program, so that types say nothing of its operations."""


def trips(eqn: Eqn) -> float | None:
    """How often the programs in an equation run; None if only the values say."""
    if eqn.primitive.name in ("while", "bounded_while"):
        return None
    return float(getattr(eqn.params, "length", 1))


def is_choice(eqn: Eqn) -> bool:
    """Whether one of the programs in an equation runs."""
    return hasattr(eqn.params, "branches")


def holds_programs(eqn: Eqn) -> bool:
    """Whether programs run with the equation."""
    if eqn.params is NO_PARAMS or eqn.primitive.name in RULES:
        return False
    return any([True for _ in eqn.params.subjaxprs(aside=False)])


class Costs:
    """The costs of equations; those of programs inside are summed up once."""

    def __init__(self) -> None:
        self.known: dict[int, Cost] = {}

    def of(self, eqn: Eqn) -> Cost:
        """The cost of one run of an equation."""
        ins = [a.aval for a in eqn.invars]
        outs = [v.aval for v in eqn.outvars]
        if any([aval.symbolic for aval in (*ins, *outs)]):
            return UNKNOWN
        if holds_programs(eqn):
            return self.of_programs(eqn)
        return Cost(flops_of(eqn, ins, outs), bytes_moved(eqn.primitive.name, eqn))

    def of_programs(self, eqn: Eqn) -> Cost:
        """The sum over the programs inside, or the largest one; loops for each trip.

        A loop of unknown length counts once.
        """
        found = [self.of_program(p) for p in eqn.params.subjaxprs(aside=False)]
        known, together = trips(eqn), max if is_choice(eqn) else sum
        times = 1.0 if known is None else known
        flops = [cost.flops or 0.0 for cost in found]
        moved = [cost.bytes or 0.0 for cost in found]
        return Cost(times * together(flops), times * together(moved))

    def of_program(self, jaxpr: Jaxpr) -> Cost:
        """The sum over the equations of a program."""
        found = self.known.get(id(jaxpr))
        if found is None:
            costs = [self.of(eqn) for eqn in jaxpr.eqns]
            found = self.known[id(jaxpr)] = Cost(
                sum([cost.flops or 0.0 for cost in costs]),
                sum([cost.bytes or 0.0 for cost in costs]),
            )
        return found


def flops_of(eqn: Eqn, ins: Types, outs: Types) -> float | None:
    """The operations of an equation without programs inside.

    A primitive without a rule counts as elementwise if its types say that it may be.
    """
    rule = RULES.get(eqn.primitive.name)
    if rule is not None:
        return rule(eqn.params, ins, outs) if outs and ins else 0.0
    if eqn.primitive.name in FOREIGN:
        return None
    shapes = {aval.shape for aval in (*ins, *outs) if aval.shape}
    if outs and ins and len(shapes) <= 1 and len({out.shape for out in outs}) == 1:
        return float(outs[0].size)
    return None


def bytes_moved(name: str, eqn: Eqn) -> float:
    """The bytes that an equation reads and writes, each operand once."""
    if name in VIEWS:
        return 0.0
    operands = list({id(a): a.aval for a in eqn.invars}.values())
    ins = [bytes_of(aval) for aval in operands]
    outs = sum([bytes_of(v.aval) for v in eqn.outvars])
    if name in PICKED and ins:
        return float(2 * outs + sum(ins[1:]))
    if name in PLACED and ins:
        return float(sum(ins[1:]) + bytes_of(eqn.invars[PLACED[name]].aval))
    return float(sum(ins) + outs)


def bytes_of(aval: ShapedArray) -> int:
    """The bytes of an array of this type; 0 where a size is not known."""
    if aval.symbolic:
        return 0
    return int(aval.size * aval.dtype.itemsize)
