"""Floor 5: which donated arguments a program can use.

One idea: memory goes to an output of the same shape and dtype, each piece once; what
finds none is not donated at all, and the user is told::

    usable((True, True), (f32_3, f32_4), (f32_3,))    # (True, False)
"""

import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from verax.ir.avals import ShapedArray

PACKAGE: Final = str(Path(__file__).parents[2])


def usable(
    donated: Sequence[bool], ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> tuple[bool, ...]:
    """The donations that have an output of the same shape and dtype."""
    free = Counter((aval.shape, aval.dtype) for aval in outs)
    found = []
    for flag, aval in zip(donated, ins, strict=False):
        kind = (aval.shape, aval.dtype)
        found.append(flag and free[kind] > 0)
        free[kind] -= found[-1]
    return tuple(found)


def warn_unusable(
    given: Sequence[bool], taken: Sequence[bool], avals: Sequence[ShapedArray]
) -> None:
    """Tell the user of donations that no output can take."""
    wasted = [
        str(aval)
        for aval, flag, used in zip(avals, given, taken, strict=False)
        if flag and not used
    ]
    if wasted:
        warnings.warn(
            f"some donated arguments could not be used: {', '.join(wasted)}; no output "
            "has that shape and dtype, or there are fewer such outputs than donations",
            UserWarning,
            skip_file_prefixes=(PACKAGE,),
        )
