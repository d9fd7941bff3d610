"""Floor 4: the results of a program as the tree that the user's function returned.

One idea: an array of float0, the dtype of tangents of integers, has one value for each
shape; so users get NumPy zeros for it, from a trace too, and the device, which has
booleans instead, is never asked::

    result_tree(out_tree, outs)
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from verax.backend.pytrees import PyTreeDef
from verax.ir.dtypes import float0


def result_tree(tree: PyTreeDef, arrays: Iterable[Any]) -> Any:
    """The tree with these leaves, those of float0 in NumPy."""
    return tree.unflatten(
        [np.zeros(x.shape, float0) if x.dtype is float0 else x for x in arrays]
    )
