"""Floor 2: `check`: raise an error if a check has failed.

One idea: an error is a value (the number of the check that failed, and what its message
shows), and this is where the value becomes an exception. A transformation can take the
value instead and return it; see `verax.transforms.checks`::

    check[sites=(Site(category=FailedCheckError ...),) debug=False] code x
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np
from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import int32
from verax.ir.effects import CHECKS, Effect
from verax.ir.jaxpr import Jaxpr, Params
from verax.ir.records import ReprMixin
from verax.ops.calls.call import dropping
from verax.ops.elementwise.compare import ne
from verax.ops.indexing.dynamic_slice import dynamic_index_in_dim
from verax.ops.reductions.reduce import argmax
from verax.ops.structure.shape import at_front, reshape
from verax.rules.programs.host import (
    INDEX,
    PASSED,
    Bounds,
    CallbackError,
    JaxException,
    OOBError,
    Site,
    failure_of,
    kinds_of,
)
from verax.rules.rows.emitter import HOSTING, Emitter, Operand
from verax.rules.rows.row import Axis, Engine, NDArray, Row, Rows, Tangent
from verax.rules.rows.type_shardings import whole_results
from verax.rules.values.array import Array

CODE: Final = ShapedArray((), int32)


class JaxRuntimeError(ValueError):
    """A check failed where nothing takes its error as a value.

    The cause is the failure: an exception whose class is the category of the check.
    """

    __module__ = "verax.experimental.checkify"


@frozen(eq=False, repr=False)
class CheckParams(Params):
    """The checks of which one may have failed.

    Operands are its number, then values for each kind of values that the checks show.
    What is for `debug` does nothing unless its error is taken as a value. What is
    `hosted` has the host raise the exception where a compiled program runs.
    """

    sites: tuple[Site, ...]
    debug: bool = False
    hosted: bool = False

    @property
    def effects(self) -> frozenset[Effect]:
        return CHECKS


def raised(failure: JaxException) -> JaxRuntimeError:
    """The error for a failure: its message, and the user's line."""
    source = failure.source
    place = "" if source.code is None else f" (check failed at {source})"
    error = JaxRuntimeError(f"{failure}{place}")
    error.__cause__ = failure
    return error


def check_typing(p: CheckParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    due = [CODE, *[aval for kind in kinds_of(p.sites) for aval in kind]]
    if [aval.strong() for aval in avals] != due:
        raise TypeError(f"check takes operands of types {due}, not {list(avals)}")
    return ()


def evaluate_check(
    engine: Engine, p: CheckParams, args: Sequence[NDArray]
) -> Sequence[NDArray]:
    code, *values = args
    failure = None if p.debug else failure_of(p.sites, int(code), values)
    if failure is not None:
        raise raised(failure)
    return ()


def jvp_check(
    engine: Engine, p: CheckParams, primals: Sequence[Array], ts: Sequence[Tangent]
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """The primal values are checked; nothing is said of tangents."""
    return check_p.bind(p, *primals), ()


def batch_check(
    engine: Engine,
    p: CheckParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """The failure of the first element for which anything has failed."""
    code, *values = [
        at_front(x, axis, size) for x, axis in zip(args, axes, strict=True)
    ]
    if size:
        check_p.bind(p, *first_failure(code, values))
    return (), ()


def first_failure(code: Array, values: Sequence[Array]) -> list[Array]:
    """The number and the values of the first batch element for which a check failed.

    All begin with the dimensions of the batch, those of `code`, and there are elements.
    """
    count = code.ndim
    flat = [reshape(x, (code.aval.size, *x.shape[count:])) for x in (code, *values)]
    place = argmax(ne(flat[0], PASSED), 0, int32)
    pick = partial(dynamic_index_in_dim, keepdims=False, allow_negative_indices=False)
    return [pick(x, place) for x in flat]


@frozen(cache_hash=True, repr=False)
class RaiseOnHost(ReprMixin):
    """The function of the host that raises what failed, if anything did."""

    params: CheckParams

    def __call__(self, *arrays: NDArray) -> Sequence[NDArray]:
        code, *values = arrays
        failure = failure_of(self.params.sites, int(code), values)
        if failure is not None:
            raise CallbackError(str(raised(failure))) from failure
        return ()

    def blanks(self) -> Sequence[NDArray]:
        """See `HostCall.blanks`."""
        return ()


def lower_check(
    e: Emitter, p: CheckParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """Nothing for what is only for `debug`.

    Raises:
        ValueError: a compiled program would have to raise an exception.
    """
    if p.debug:
        return ()
    if p.hosted and e.platform in HOSTING:
        return e.callback(RaiseOnHost(p), xs, outs, effect=True, ordered=False)
    about = getattr(p.sites[0].about, "text", "") if len(p.sites) == 1 else ""
    named = f"the check {about!r}" if about else "a check of an error"
    raise ValueError(
        f"Cannot abstractly evaluate {named}, which would have to raise an exception "
        "from a compiled program (jit, scan, cond, ...). Make its error a result: "
        "error, out = jit(checkify.checkify(f))(x), then error.throw(); or use "
        "checkify.debug_check, which does nothing outside of checkify"
    )


check_p: Row[CheckParams] = Row(
    "check",
    CheckParams,
    typing=check_typing,
    evaluate=evaluate_check,
    jvp=jvp_check,
    batch=batch_check,
    lower=lower_check,
    sharding=whole_results,
    # No program raises an exception: where there are values, the host looks at them.
    hosted=True,
)


def report_outside(primitive: str, shape: Sequence[int], index: int, axis: int) -> None:
    """Write that a constant index is out of bounds, for those who ask for checks."""
    site = Site(OOBError, Bounds(primitive, tuple(shape)), INDEX)
    operands = (np.int32(0), np.int32(index), np.int32(axis))
    check_p.bind(CheckParams((site,), debug=True), *operands)


def unchecked(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` without checks."""
    return dropping(jaxpr, CHECKS)


ROWS: Rows = (check_p,)
