"""Tables in which libraries say that a class of theirs is to be taken as an array.

verax takes what says that it is one of NumPy's arrays as it is, so an entry that says
the same changes nothing; any other entry is refused, since it would change nothing.
"""

from typing import Any

import numpy as np


class Handlers(dict[type, Any]):
    """Entries that say: as NumPy's arrays."""

    def __init__(self) -> None:
        super().__init__({np.ndarray: np.asarray})

    def __setitem__(self, kind: type, handler: object) -> None:
        if handler is not self[np.ndarray]:
            raise NotImplementedError(
                f"verax cannot be told how to take {kind!r} as an array; give the "
                "class a method __jax_array__"
            )
        super().__setitem__(kind, handler)
