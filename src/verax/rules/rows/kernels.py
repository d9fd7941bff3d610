"""Floor 1: how a row is computed on a CPU, in operations that a processor has.

One idea: a kernel is a function of the operands, written in rows, and says for which
dtypes and from how many elements on it is better than what XLA makes of the row::

    sin_p = elementwise("sin", np.sin, kernel=Kernel({float32: angles.sin}), ...)

`verax.transforms.passes.kernels` puts it in the place of the equation.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Self

from attrs import field, frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import DType
from verax.ir.records import ReprMixin

type Maths = Callable[..., Any]

LEAST: Final = 64
"""Elements from which a kernel is faster: it takes as long for one as for several."""
SUMMED: Final = 1 << 12
"""Elements of which XLA's library for sums and extremes makes one."""
APART: Final = 1 << 11
"""Elements from which a look at all of them, before anything is done, costs little."""


PIECE: Final = 512
"""Elements whose state, of some ten numbers each, is at home in the first cache."""


def unchanged(*xs: object) -> Any:
    """The function of a kernel that computes in pieces."""
    return xs[0]


def frozen_map(functions: Mapping[DType, Maths]) -> Mapping[DType, Maths]:
    return MappingProxyType(dict(functions))


@frozen(eq=False, repr=False)
class Kernel(ReprMixin):
    """A row in simpler operations, for programs on a CPU.

    Attributes:
        functions: for each dtype of the result, a function of the operands in its
            shape. What it calls may have kernels itself.
        valid: for each dtype whose function does not hold everywhere: which elements
            it holds for, as a function of the operands. Where one of them is not, the
            row is computed as it would be without a kernel.
        suits: for rows with params: which calls there is a kernel for, by params and
            the types of the operands. Its functions take the params first, and the
            operands as they are.
        least: how many elements a result has at least.
        simple: values of a constant last operand for which XLA knows a shorter way.
        reduced: whether XLA's library for sums and extremes in single precision has the
            function, so that it stays where its result goes into one of them alone.
        lowers: whether the functions are rules for the compiler, as `lower` of a row
            is, for a row of which the rows that they would be written in are made.
        piece: where it is not 0, so many elements are computed at a time, by the row
            itself, and the functions are not asked.

    >>> from verax.lax import sin_p
    >>> sin_p.kernel.least, *map(str, sin_p.kernel.functions)
    (64, 'float32', 'float64')
    """

    __module__ = "verax.extend"

    functions: Mapping[DType, Maths] = field(converter=frozen_map)
    valid: Mapping[DType, Maths] = field(factory=dict, converter=frozen_map)
    suits: Callable[[Any, Sequence[ShapedArray]], bool] | None = None
    least: int = LEAST
    simple: frozenset[float] = frozenset()
    reduced: bool = False
    lowers: bool = False
    piece: int = 0

    @classmethod
    def of(cls, function: Maths, *dtypes: DType) -> Self:
        """One function for these dtypes, which holds everywhere."""
        return cls(dict.fromkeys(dtypes, function))

    @classmethod
    def in_pieces(cls, *dtypes: DType) -> Self:
        """Pieces that stay in a cache, for a row that loops until all have converged.

        Each piece ends its loop by itself, and the state of the loop stays in a cache.
        """
        functions = dict.fromkeys(dtypes, unchanged)
        return cls(functions, least=2 * PIECE, piece=PIECE)
