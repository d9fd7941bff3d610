"""Floor 3: equations in numbers of any length, by mpmath.

One idea: arrays hold mpmath's numbers as objects, on which NumPy adds and multiplies;
for functions there is a table of mpmath's own::

    wide = InMpmath(engine, bits=200)
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from attrs import define, field

from verax.ir.dtypes import is_complex, is_inexact
from verax.ir.jaxpr import Eqn
from verax.ir.records import ReprMixin
from verax.ops.contraction.dot import DotParams
from verax.ops.elementwise.convert import reduce_precision_p
from verax.rules.rows.row import Engine, NDArray
from verax.transforms.precision.arithmetic import Wide, run_narrow

BITS: Final = 200
"""The digits in base 2 of numbers, about 60 in base 10."""
ALIKE: Final = frozenset(
    (
        "broadcast_in_dim",
        "concatenate",
        "copy",
        "dynamic_slice",
        "dynamic_update_slice",
        "pad",
        "reduce_prod",
        "reduce_sum",
        "reshape",
        "rev",
        "slice",
        "split",
        "squeeze",
        "stop_gradient",
        "transpose",
    )
)
"""Rows whose rules work on arrays of objects as on others."""


@define(eq=False, repr=False)
class InMpmath(ReprMixin):
    """Numbers of mpmath, with so many `bits`.

    `refused` are the names of operations that ran in their own dtypes.
    """

    engine: Engine
    bits: int = BITS
    refused: set[str] = field(factory=set)
    context: Any = field(init=False)
    functions: Mapping[str, Callable[..., Any]] = field(init=False)
    number: Callable[[object], Any] = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Load mpmath.

        Raises:
            ImportError: it is not installed.
        """
        try:
            import mpmath
        except ImportError:
            raise ImportError(
                "precision(..., shadow='mpmath') needs mpmath, which the extra "
                "`verify` installs: pip install 'verax[verify]'"
            ) from None
        self.context = mpmath.MPContext()
        self.context.prec = self.bits
        self.functions = functions_of(self.context)
        self.number = np.frompyfunc(self.context.mpf, 1, 1)

    @property
    def name(self) -> str:
        return f"mpmath ({self.bits} bits)"

    def widen(self, value: Any) -> Wide:
        if not is_inexact(value.dtype) or is_complex(value.dtype):
            return np.asarray(value)
        return objects(self.number(np.asarray(value, np.float64)))

    def run(self, eqn: Eqn, operands: Sequence[Wide]) -> list[Wide]:
        name = eqn.primitive.name
        if eqn.primitive is reduce_precision_p:
            return list(operands)
        outs = self.tried(eqn, name, operands)
        if outs is not None:
            return outs
        if any(is_inexact(v.aval.dtype) for v in eqn.outvars):
            self.refused.add(name)
        return run_narrow(self, self.engine, eqn, self.rounded(operands))

    def rounded(self, operands: Sequence[Wide]) -> list[Wide]:
        """Operands as NumPy's own numbers."""
        return [x.astype(np.float64) if x.dtype.kind == "O" else x for x in operands]

    def tried(self, eqn: Eqn, name: str, operands: Sequence[Wide]) -> list[Wide] | None:
        """The results; None where mpmath does not know the operation."""
        if any(is_complex(a.aval.dtype) for a in (*eqn.invars, *eqn.outvars)):
            return None
        try:
            if name in COMPARISONS:
                return [np.asarray(COMPARISONS[name](*operands), bool)]
            if name in self.functions:
                return [objects(self.functions[name](*operands))]
            if name in SPECIAL:
                return SPECIAL[name](self, eqn, operands)
            evaluate = self.engine.rules[eqn.primitive].evaluate
            if name not in ALIKE or evaluate is None:
                return None
            outs = evaluate(self.engine, eqn.params, operands)
            return [objects(np.asarray(x)) for x in outs]
        except (TypeError, ValueError, AttributeError, ArithmeticError):
            return None

    def converted(self, eqn: Eqn, operands: Sequence[Wide]) -> list[Wide] | None:
        """A conversion: floats stay as they are, integers become numbers."""
        (x,) = operands
        if not is_inexact(eqn.outvars[0].aval.dtype):
            return None
        return [x if x.dtype.kind == "O" else objects(self.number(x.astype(object)))]

    def power(self, eqn: Eqn, operands: Sequence[Wide]) -> list[Wide]:
        """An integer power."""
        return [objects(operands[0] ** getattr(eqn.params, "y", 1))]

    def choice(self, eqn: Eqn, operands: Sequence[Wide]) -> list[Wide]:
        """A choice for each element."""
        which, *cases = operands
        return [np.asarray(np.choose(which.astype(int), cases))]

    def extreme(self, eqn: Eqn, operands: Sequence[Wide]) -> list[Wide]:
        """The largest or smallest element along some axes."""
        largest = eqn.primitive.name == "reduce_max"
        axes = tuple(getattr(eqn.params, "axes", ()))
        reduce = np.maximum if largest else np.minimum
        return [objects(reduce.reduce(operands[0], axis=axes))]

    def product(self, eqn: Eqn, operands: Sequence[Wide]) -> list[Wide]:
        """A product of arrays."""
        assert isinstance(eqn.params, DotParams), "the row's own"
        return [objects(summed_products(eqn.params, *operands))]


SPECIAL: Final[Mapping[str, Callable[..., list[Wide] | None]]] = {
    "convert_element_type": InMpmath.converted,
    "integer_pow": InMpmath.power,
    "select_n": InMpmath.choice,
    "reduce_max": InMpmath.extreme,
    "reduce_min": InMpmath.extreme,
    "dot_general": InMpmath.product,
}


def summed_products(p: DotParams, x: NDArray, y: NDArray) -> NDArray:
    """A product of arrays of objects, by sums of products of these."""
    (left, right), (ours, theirs) = p.dimension_numbers
    of_x = list(range(x.ndim))
    of_y = list(range(x.ndim, x.ndim + y.ndim))
    for i, j in (*zip(left, right, strict=True), *zip(ours, theirs, strict=True)):
        of_y[j] = of_x[i]
    free = [i for i in of_x if i not in (*left, *ours)]
    rest = [of_y[j] for j in range(y.ndim) if j not in (*right, *theirs)]
    out: NDArray = np.einsum(x, of_x, y, of_y, [*ours, *free, *rest])
    return out


def objects(x: object) -> Wide:
    """An array of objects, also of one object alone."""
    if isinstance(x, np.ndarray):
        return x
    out = np.empty((), object)
    out[()] = x
    return out


COMPARISONS: Final[Mapping[str, Callable[..., Any]]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def functions_of(context: Any) -> Mapping[str, Callable[..., object]]:
    """The functions of mpmath by the names of rows, on arrays of numbers."""
    own = {
        "exp": context.exp,
        "expm1": context.expm1,
        "log": lambda x: context.log(x) if x > 0 else special(context, x),
        "log1p": context.log1p,
        "sin": context.sin,
        "cos": context.cos,
        "tan": context.tan,
        "asin": context.asin,
        "acos": context.acos,
        "atan": context.atan,
        "sinh": context.sinh,
        "cosh": context.cosh,
        "tanh": context.tanh,
        "asinh": context.asinh,
        "sqrt": lambda x: context.sqrt(x) if x >= 0 else context.nan,
        "cbrt": context.cbrt,
        "rsqrt": lambda x: 1 / context.sqrt(x),
        "logistic": lambda x: 1 / (1 + context.exp(-x)),
        "erf": context.erf,
        "erfc": context.erfc,
        "floor": context.floor,
        "ceil": context.ceil,
        "sign": context.sign,
        "exp2": lambda x: context.mpf(2) ** x,
        "log2": lambda x: context.log(x, 2) if x > 0 else special(context, x),
        "lgamma": context.loggamma,
        "digamma": context.digamma,
    }
    two = {"atan2": context.atan2, "pow": context.power}
    out: dict[str, Callable[..., object]] = {
        name: np.frompyfunc(function, 1, 1) for name, function in own.items()
    }
    out |= {name: np.frompyfunc(function, 2, 1) for name, function in two.items()}
    out |= {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.frompyfunc(lambda x, y: quotient(context, x, y), 2, 1),
        "neg": np.negative,
        "abs": np.abs,
        "max": np.maximum,
        "min": np.minimum,
        "square": lambda x: x * x,
        "one_minus_square": lambda x: (1 - x) * (1 + x),
    }
    return out


def special(context: Any, x: Any) -> Any:
    """The logarithm of what has none among the reals."""
    return -context.inf if x == 0 else context.nan


def quotient(context: Any, x: Any, y: Any) -> Any:
    """A quotient, infinite or NaN where the divisor is zero."""
    if y != 0:
        return x / y
    return context.nan if x == 0 or context.isnan(x) else context.sign(x) * context.inf
