"""Floor 2: the operations that JAX lets hardware approximate, computed exactly.

One idea: an exact answer has a recall of 1, which every `recall_target` allows::

    approx_max_k(scores, 10)      # top_k(scores, 10)
"""

from verax.ir.dtypes import int32
from verax.ops.sorting.sort import sort_key_val, top_k
from verax.ops.structure.create import broadcasted_iota
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.sizes import as_axis


def check_recall(name: str, recall_target: float) -> None:
    """Raise ValueError unless the part of right answers is one that can be asked."""
    if not 0 < recall_target <= 1:
        raise ValueError(
            f"{name}: recall_target must be above 0 and at most 1, not {recall_target}"
        )


def approx_max_k(
    operand: object,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """The `k` largest elements along a dimension, and their places; exactly.

    The last two arguments concern partitioned and approximate results only.

    Raises:
        ValueError: there are fewer than `k` elements, or no such dimension.
        TypeError: `operand` is complex.

    >>> import verax, numpy as np
    >>> approx_max_k(np.array([1.0, 3.0, 2.0]), 2)[0]
    Array([3., 2.], dtype=float32)
    """
    check_recall("approx_max_k", recall_target)
    return top_k(operand, k, axis=reduction_dimension)


def approx_min_k(
    operand: object,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """The `k` smallest elements along a dimension, and their places; exactly.

    NaN does not count as small. Arguments and errors are those of `approx_max_k`.

    >>> import verax, numpy as np
    >>> approx_min_k(np.array([1.0, 3.0, 2.0]), 2)[1]
    Array([0, 2], dtype=int32)
    """
    check_recall("approx_min_k", recall_target)
    aval = aval_of(operand)
    axis = as_axis("approx_min_k", reduction_dimension, aval.ndim)
    if not 0 <= k <= aval.shape[axis]:
        raise ValueError(
            f"approx_min_k: k must be between 0 and the {aval.shape[axis]} elements "
            f"of {aval}, not {k}"
        )
    places = broadcasted_iota(int32, aval.shape, axis)
    values, order = sort_key_val(operand, places, axis)
    return [slice_in_dim(x, 0, k, 1, axis) for x in (values, order)]
