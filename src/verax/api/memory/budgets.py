"""Floor 5: budgets of memory, as users write them.

    check_budget("2GB"), check_budget(0.5), check_budget(Offload("2GB"))

A budget is for arguments, results and what is in between, of one run on one device.
"""

import re
from math import inf, isfinite
from types import MappingProxyType
from typing import Final

from attrs import frozen

from verax.ir.records import ReprMixin

type Size = str | int | float
type Budget = Size | Offload
"""Bytes, text such as "2GB", or a share (0 to 1) of what the program takes anyway.

As an `Offload`, values may also wait in memory of the host.
"""

UNITS: Final = MappingProxyType(
    {
        "b": 1,
        **{f"{p}b": 1000 ** (i + 1) for i, p in enumerate("kmgt")},
        **{f"{p}ib": 1024 ** (i + 1) for i, p in enumerate("kmgt")},
    }
)


# On the way to the host and back, a GPU with 60 GB/s between both and 60 Tflop/s could
# do 2,000 operations for each byte; half of the way is hidden behind other work.
PRICE: Final = 1000.0


@frozen(repr=False)
class Offload(ReprMixin):
    """A budget of memory within which values may also wait in memory of the host.

    What would cost more than `price` operations for each of its bytes to compute again
    waits in a memory of the kind `to`, across the moment at which most is in use; the
    rest is computed again, as without. On devices that have no memory beside that of
    the host, such as CPUs, nothing is moved, and only `verax.debug.memory` plans it.

    Attributes:
        limit: the budget: bytes, text such as "2GB", or a share between 0 and 1.
        to: the kind of memory.
        price: operations, from 0 (all that is kept may wait on the host) to infinity.

    Raises:
        TypeError: `limit` is no number and no text.
        ValueError: `limit` says no number of bytes, or a price is negative.

    >>> import verax, verax.numpy as vnp
    >>> from verax.memory import Offload
    >>> def loss(ws, x):
    ...     for w in ws:
    ...         x = vnp.tanh(x @ w)
    ...     return vnp.sum(x)
    >>> ws, x = [vnp.ones((8, 8))] * 8, vnp.ones((256, 8))
    >>> report = verax.debug.memory(verax.grad(loss), budget=Offload(0.5, price=1))
    >>> [line.code for line in report(ws, x).plan.away]
    ['x = vnp.tanh(x @ w)']
    """

    __module__ = "verax.memory"

    limit: Size
    to: str = "pinned_host"
    price: float = PRICE

    def __attrs_post_init__(self) -> None:
        if isinstance(self.limit, Offload) or check_budget(self.limit) is None:
            raise TypeError(
                "Offload takes bytes, text such as '2GB', or a share, not "
                f"{self.limit!r}"
            )
        if not 0 <= self.price <= inf:
            raise ValueError(
                f"price={self.price!r} is no number of operations for a byte: pass 0 "
                "or more"
            )


def check_budget(budget: object) -> Budget | None:
    """The budget, if it is one.

    Raises:
        TypeError: it is no number and no text.
        ValueError: it is a number that makes no sense, or text that says none.
    """
    if budget is None or isinstance(budget, Offload):
        return budget
    if isinstance(budget, bool) or not isinstance(budget, str | int | float):
        raise TypeError(
            f"memory is {budget!r}: pass bytes, text such as '2GB', or a share of the "
            "memory that is needed without a budget, such as 0.5"
        )
    if isinstance(budget, str):
        bytes_in(budget)
    elif isinstance(budget, float) and not 0 < budget <= 1:
        hint = "" if not isfinite(budget) else f"; for bytes pass {int(budget)}"
        raise ValueError(f"memory={budget!r} is no share between 0 and 1{hint}")
    elif budget <= 0:
        raise ValueError(f"memory={budget!r} leaves no memory")
    return budget


def bytes_in(text: str) -> int:
    """The bytes that text says.

    Raises:
        ValueError: it says none.

    >>> bytes_in("1.5GB"), bytes_in("512 MiB"), bytes_in("100kb")
    (1500000000, 536870912, 100000)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]?i?b)\s*", text.lower())
    if match is None or float(match[1]) == 0:
        raise ValueError(
            f"memory={text!r} says no number of bytes: write '2GB', '512MiB' or '750kB'"
        )
    return int(float(match[1]) * UNITS[match[2]])


def written(count: float) -> str:
    """Bytes with three digits.

    >>> written(1_532_000), written(12)
    ('1.53MB', '12B')
    """
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= size:
            return f"{count / size:.3g}{prefix}B"
    return f"{count:.0f}B"


class MemoryBudgetExceeded(ValueError):
    """No plan for a program stays within its budget of memory.

    >>> import verax, verax.numpy as vnp
    >>> square = verax.jit(lambda x: x @ x, memory="10kB")
    >>> try:
    ...     square(vnp.ones((64, 64)))
    ... except verax.errors.MemoryBudgetExceeded as error:
    ...     print(str(error).partition(", of")[0])
    <lambda> does not run in 10kB: the least found is 32.8kB
    """

    __module__ = "verax.errors"


def limit_of(budget: Budget, whole: int) -> int:
    """The bytes of a budget, for a program that takes `whole` without one."""
    if isinstance(budget, Offload):
        return limit_of(budget.limit, whole)
    if isinstance(budget, str):
        return bytes_in(budget)
    return int(budget * whole) if isinstance(budget, float) else budget
