"""Floor 6: arrays as text.

One idea: text is NumPy's, and so are its options, which are NumPy's own::

    with printoptions(precision=2):
        print(x)
"""

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from verax.numpy.arguments.arguments import ArrayLike, as_array


def chosen(
    max_line_width: int | None, precision: int | None, suppress_small: bool | None
) -> AbstractContextManager[Any]:
    """NumPy's options with those that are given."""
    given = {
        "linewidth": max_line_width,
        "precision": precision,
        "suppress": suppress_small,
    }
    return printoptions(**{k: v for k, v in given.items() if v is not None})


def array_repr(
    arr: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The text of an array with its dtype, as `repr` has it."""
    with chosen(max_line_width, precision, suppress_small):
        return repr(as_array("array_repr", arr))


def array_str(
    a: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The text of an array's elements, as `str` has it."""
    with chosen(max_line_width, precision, suppress_small):
        return str(as_array("array_str", a))


def get_printoptions() -> dict[str, Any]:
    """The options by which NumPy, and so verax, prints arrays."""
    return dict(np.get_printoptions())


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Set NumPy's options of printing, which are those of verax too."""
    np.set_printoptions(*args, **kwargs)


def printoptions(*args: Any, **kwargs: Any) -> AbstractContextManager[Any]:
    """NumPy's options of printing, set within a block."""
    return np.printoptions(*args, **kwargs)
