"""Floor 1: shapes for the calls that tests draw.

One idea: sizes are seldom equal, for else a wrong dimension is not seen, and seldom
zero, for of nothing little is seen; but either comes up::

    draw_shape(Random(0), 1, 3)     # (2, 4)
"""

from collections.abc import Sequence
from random import Random

from verax.ir.avals import Shape

SIZES = (1, 2, 3, 4)


def draw_size(random: Random, likely: Sequence[int] = SIZES) -> int:
    """One of the sizes, or now and then zero; zero, if there is none."""
    return 0 if not likely or random.random() < 0.04 else random.choice(likely)


def draw_sizes(random: Random, count: int, likely: Sequence[int] = SIZES) -> list[int]:
    """So many sizes, mostly different ones."""
    if count > len(likely) or random.random() < 0.25:
        return [draw_size(random, likely) for _ in range(count)]
    sizes = random.sample(likely, count)
    if sizes and random.random() < 0.06:
        sizes[random.randrange(count)] = 0
    return sizes


def draw_shape(
    random: Random, least: int, most: int, likely: Sequence[int] = SIZES
) -> Shape:
    """Between `least` and `most` dimensions."""
    return tuple(draw_sizes(random, random.randint(least, most), likely))
