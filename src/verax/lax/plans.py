"""Floor 6: memory plans: into which blocks a loop of some length is divided.

One idea: blocks b1, ..., bd with room for all steps store b1 + ... + bd carries in
reverse mode and cost d + 1 evaluations of each step, so a budget of carries asks for
the fewest blocks that keep to it::

    blocks_of("scan", 1000, "sqrt")     # (32, 32)
    blocks_of("scan", 1000, "log")      # (4, 4, 4, 4, 4)
    blocks_of("scan", 1000, 40)         # (10, 10, 10)
"""

from typing import Final

NAMED: Final = ("sqrt", "log")
BASE: Final = 4
"""Blocks of 4 store as many carries as blocks of 2, for half of the evaluations."""

type Checkpoints = int | str


def root(steps: int, degree: int) -> int:
    """The least b with b ** degree >= steps.

    >>> root(1000, 3), root(1001, 3), root(1, 2)
    (10, 11, 1)
    """
    low, high = 0, steps
    while low < high:
        middle = (low + high) // 2
        if middle**degree >= steps:
            high = middle
        else:
            low = middle + 1
    return low


def even_blocks(steps: int, depth: int) -> tuple[int, ...]:
    """`depth` blocks of about one size with room for all steps, and little more.

    >>> even_blocks(100, 2), even_blocks(7, 2), even_blocks(100, 3)
    ((10, 10), (3, 3), (5, 5, 4))
    """
    if not steps:
        return (0,)
    blocks = []
    for level in range(depth, 0, -1):
        block = root(steps, level)
        blocks.append(block)
        steps = -(-steps // block)
    return tuple(blocks)


def depth_of(steps: int, base: int) -> int:
    """How many blocks of `base` have room for all steps."""
    depth = 1
    while base**depth < steps:
        depth += 1
    return depth


def blocks_of(name: str, steps: int, checkpoints: Checkpoints) -> tuple[int, ...]:
    """The blocks of a loop of `steps` that keeps to a budget of carries.

    `checkpoints` is the budget, "sqrt" for about twice the square root of the steps,
    or "log" for about twice their binary logarithm.

    Raises:
        TypeError: `checkpoints` is something else.
        ValueError: the budget is too small for so many steps.
    """
    if checkpoints in NAMED:
        if steps <= BASE:
            return (steps,)
        depth = 2 if checkpoints == "sqrt" else depth_of(steps, BASE)
        return even_blocks(steps, depth)
    if isinstance(checkpoints, bool) or not isinstance(checkpoints, int):
        raise TypeError(
            f"{name}: checkpoints must be a number of carries, 'sqrt' or 'log', not "
            f"{checkpoints!r}"
        )
    plans = [even_blocks(steps, d) for d in range(1, depth_of(steps, 2) + 1)]
    for blocks in plans:
        if sum(blocks) <= checkpoints:
            return blocks
    raise ValueError(
        f"{name}: {checkpoints} checkpoints are too few for {steps} steps; at least "
        f"{min(map(sum, plans))} are needed, and 'log' takes "
        f"{sum(blocks_of(name, steps, 'log'))}"
    )
