"""Floor 1: custom calls that treat leading dimensions as batches, on several devices.

XLA knows nothing of a custom call, and gathers its operands on every device. Two
attributes tell it that the call on a part of a batch gives that part of the results::

    e.op("stablehlo.custom_call", xs, outs, (), **batch_attributes(avals, outs, 1))

The target must be registered as batch-partitionable, too.
"""

from collections.abc import Sequence
from typing import Final

from verax.ir.avals import Shape, ShapedArray, SymbolicSize

LETTERS: Final = 18
"""The letters from i to z."""


def batch_attributes(
    operands: Sequence[ShapedArray], results: Sequence[ShapedArray], count: int
) -> dict[str, str]:
    """What a call says if all its arrays share their first `count` dimensions.

    Nothing without such dimensions, and where sizes are symbolic.
    """
    sizes = [n for x in (*operands, *results) for n in x.shape]
    if not count or any([isinstance(n, SymbolicSize) for n in sizes]):
        return {}
    rule = batch_rule([x.shape for x in operands], [x.shape for x in results], count)
    return {
        "mhlo.frontend_attributes": f'{{num_batch_dims = "{count}"}}',
        "sdy.sharding_rule": rule,
    }


def batch_rule(operands: Sequence[Shape], results: Sequence[Shape], count: int) -> str:
    """Shardy's rule for arrays that share their first dimensions, and no others.

    >>> batch_rule([(4, 2)], [(4,)], 1)
    '#sdy.op_sharding_rule<([i, j])->([i]) {i=4, j=2}>'
    """
    sizes = list((*operands, *results)[0][:count])
    found = []
    for shape in (*operands, *results):
        own = range(len(sizes), len(sizes) + len(shape) - count)
        found.append(f"[{', '.join(map(factor, (*range(count), *own)))}]")
        sizes += shape[count:]
    left, right = found[: len(operands)], found[len(operands) :]
    factors = ", ".join([f"{factor(i)}={n}" for i, n in enumerate(sizes)])
    moved = f"({', '.join(left)})->({', '.join(right)})"
    return f"#sdy.op_sharding_rule<{moved} {{{factors}}}>"


def factor(i: int) -> str:
    """The symbol of a factor: i, j, ..., z, z_1, z_2, ..."""
    return chr(ord("i") + i) if i < LETTERS else f"z_{i - LETTERS + 1}"
