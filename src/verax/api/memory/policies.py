"""Floor 5: policies of `checkpoint` that know of memory."""

from functools import partial

from verax.api.memory.budgets import Offload, Size, check_budget, limit_of
from verax.ops.calls.checkpoint import Policy


def budget(memory: Size) -> Policy:
    """A policy of `checkpoint` that keeps what fits in so many bytes.

    It counts what a call keeps from the first computation to the second, arguments not
    among it, and chooses the values whose loss would cost the most operations.

    Args:
        memory: bytes, text such as "2GB", or a share (0 to 1) of the bytes that are
            kept without a policy.

    Raises:
        TypeError: `memory` is no number and no text.
        ValueError: it says no number of bytes.

    >>> import verax, verax.numpy as vnp
    >>> def f(x):
    ...     return vnp.sum(vnp.sin(vnp.exp(x @ x)))
    >>> kept = verax.checkpoint_policies.budget(0.5)
    >>> x = vnp.ones((2, 2))
    >>> slope = verax.grad(verax.checkpoint(f, policy=kept))(x)
    >>> bool(vnp.allclose(slope, verax.grad(f)(x)))
    True
    """
    from verax.transforms.memory.policy import BudgetPolicy

    checked = check_budget(memory)
    if checked is None or isinstance(checked, Offload):
        raise TypeError(
            f"budget takes bytes, text such as '2GB', or a share, not {memory!r}"
        )
    return BudgetPolicy(partial(limit_of, checked))
