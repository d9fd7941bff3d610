"""Floor 4: a compiled program, ready to be called with values.

One idea: what a call must do is settled before the first one, in three pieces around
the run: how arguments become buffers, what becomes of those that the program used up,
and how its outputs become a result::

    call = prepared(executable, fetch=fetch, finish=finish)
    call(args)
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from verax.backend.arrays.concrete import ConcreteArray, buffer_at
from verax.backend.arrays.places import Placed, spread, stored_aval
from verax.backend.lowering.mlir_text import Lowered
from verax.backend.placement.sharding import Sharding
from verax.backend.runtime import buffers
from verax.backend.runtime.buffers import Buffer
from verax.backend.runtime.client import local_devices
from verax.backend.xla.executable import FAILED, Executable, ResultHandler, Run, fail
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import device_value
from verax.ir.records import ReprMixin
from verax.rules.rows.builder import Tracer, settled
from verax.rules.values.constants import scalar_of

type Fetch = Callable[[Sequence[object]], list[Buffer]]
type After = Callable[[Sequence[object], list[Buffer], list[Buffer]], None]
type Finish = Callable[[list[Buffer]], Any]


@frozen(eq=False, repr=False)
class PreparedCall(ReprMixin):
    """A call of a program, in pieces.

    `fetch` makes the buffers that the program takes from the arguments of a call; None
    where these are arrays, taken as they are: those at `places`, or all. `after` is
    told the arguments, the buffers and the outputs, to end what was donated. `finish`
    makes the result from the outputs; None where that is one array, of type `aval`.

    The runtime notes the stack for each array that it makes, which takes it 0.1 us a
    frame: so `__call__` runs the program in its own frame, and `DirectCalls` does in
    its own what `__call__` does here.
    """

    run: Run
    handlers: list[ResultHandler]
    fetch: Fetch | None
    places: Sequence[int] | None
    after: After | None
    finish: Finish | None
    aval: ShapedArray

    def __call__(self, args: Sequence[Any]) -> Any:
        """The result for arguments of the kinds for which this was made.

        Raises:
            ExecutionError: an array was deleted or donated, or the program failed.
        """
        ins: list[Buffer]
        if self.fetch is not None:
            ins = self.fetch(args)
        else:
            places = self.places
            taken = args if places is None else [args[i] for i in places]
            ins = [x.device_buffer() if (b := x.buffer) is None else b for x in taken]
        try:
            outs = self.run(ins).consume_with_handlers(self.handlers)
        except FAILED as error:
            fail(error, ins)
        if self.after is not None:
            self.after(args, ins, outs)
        if self.finish is not None:
            return self.finish(outs)
        made = ConcreteArray()  # as `from_buffer`
        (made.buffer,), made.host = outs, None
        made.aval = made.kind = self.aval
        return made


NO_OUTPUT = ShapedArray((), np.dtype(bool))


def prepared(
    executable: Executable,
    fetch: Fetch | None = None,
    after: After | None = None,
    finish: Finish | None = None,
    aval: ShapedArray = NO_OUTPUT,
    places: Sequence[int] | None = None,
) -> PreparedCall:
    """The pieces around a run of an executable."""
    run, handlers = executable.run, executable.handlers
    return PreparedCall(run, handlers, fetch, places, after, finish, aval)


def arrays_of(
    outs: Sequence[Buffer], kinds: Sequence[ShapedArray | Placed]
) -> list[ConcreteArray]:
    """The results of a program, as arrays of these kinds."""
    made: list[ConcreteArray] = []
    for buffer, kind in zip(outs, kinds, strict=True):
        x = ConcreteArray()
        x.buffer, x.host, x.kind = buffer, None, kind
        x.aval = kind.aval if isinstance(kind, Placed) else kind
        made.append(x)
    return made


def buffers_of(args: Sequence[Any]) -> list[Buffer]:
    """The device buffers of arrays of ours."""
    return [x.device_buffer() if (held := x.buffer) is None else held for x in args]


def operand_buffer(x: object, aval: ShapedArray, place: Sharding | None) -> Buffer:
    """An operand of type `aval` at its place, or on the default device.

    NumPy arrays are copied: the caller may write to them while the program runs.
    """
    if isinstance(x, ConcreteArray):
        return x.device_buffer() if place is None else buffer_at(x, place)
    if isinstance(x, Tracer):
        return operand_buffer(settled(x), aval, place)
    copy = isinstance(x, np.ndarray)
    values = device_value(x, aval.dtype) if copy else scalar_of(x, aval)
    if place is None:
        return buffers.put(stored_aval(aval), values, local_devices()[0], copy)
    return spread(values, aval, place, copy=copy)


def donation_to(lowered: Lowered) -> str:
    """The end of arrays whose memory this program takes, for `ConcreteArray.end`."""
    return f"when its memory was donated to {lowered.name}"


def ending(lowered: Lowered, places: Sequence[int] | None = None) -> After | None:
    """The function that ends arguments whose memory the program may have taken, if any.

    The copies in NumPy's memory are forgotten as well.
    """
    if not lowered.donated:
        return None
    how = donation_to(lowered)
    ended = [i if places is None else places[i] for i in lowered.donated]

    def end(args: Sequence[object], ins: list[Buffer], outs: list[Buffer]) -> None:
        for i in ended:
            if not isinstance(x := args[i], ConcreteArray):
                continue
            if (buffer := x.buffer) is not None and buffer.is_deleted():
                # As x.end(how), when the runtime has taken the memory, as it does.
                x.ended = how
                x.host = x.buffer = None
            else:
                x.end(how)

    return end
