"""What authors of rows write, for `test_rows.py`: mypy finds the mistakes inside a row.

# E: the code of the error that mypy reports on the line.
"""

from collections.abc import Sequence

from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Params
from verax.rules.rows.row import Axis, Engine, NDArray, Row, Sample, Tangent
from verax.rules.values.array import Array


@frozen
class Shifted(Params):
    """By how much to shift."""

    amount: int


type Jvp = tuple[Sequence[Array], Sequence[Tangent]]


def typing(p: Shifted, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    return avals


def evaluate(engine: Engine, p: Shifted, xs: Sequence[NDArray]) -> list[NDArray]:
    return [xs[0] + p.amount]


def evaluate_misspelt(
    engine: Engine, p: Shifted, xs: Sequence[NDArray]
) -> list[NDArray]:
    return [xs[0] + p.amonut]  # E: attr-defined


def evaluate_without_engine(p: Shifted, xs: Sequence[NDArray]) -> list[NDArray]:
    return [xs[0]]


def jvp_of_one_result(
    engine: Engine, p: Shifted, xs: Sequence[Array], ts: Sequence[Tangent]
) -> Array:
    return xs[0]


def batch_without_size(
    engine: Engine, p: Shifted, xs: Sequence[Array], axes: Sequence[Axis]
) -> tuple[Sequence[Array], Sequence[Axis]]:
    return xs, axes


right = Row[Shifted]("right", Shifted, typing=typing, evaluate=evaluate)
arity = Row[Shifted]("a", Shifted, typing, evaluate_without_engine)  # E: arg-type
returns = Row[Shifted]("r", Shifted, typing, jvp=jvp_of_one_result)  # E: arg-type
batch = Row[Shifted]("b", Shifted, typing, batch=batch_without_size)  # E: arg-type
inline = Row[Shifted](
    "i",
    Shifted,
    typing,
    evaluate=lambda engine, p, xs: [xs[0] + p.amonut],  # E: attr-defined
)
column = Row[Shifted]("c", Shifted, typing, vjp=None)  # E: call-arg
Sample(Shifted(amonut=2), ())  # E: call-arg
Sample(Shifted("two"), ())  # E: arg-type
right.call(3, 1.0)  # E: arg-type
