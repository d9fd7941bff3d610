"""Compiling StableHLO text and running the result (floor 4).

One idea: all that can be prepared is prepared at compile time, so that running a
program is two calls into jaxlib and nothing else.

    >>> import numpy as np
    >>> from verax.backend.runtime import buffers, client
    >>> from verax.backend.xla import executable
    >>> text = '''func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    ...   %y = stablehlo.add %x, %x : tensor<2xf32>
    ...   return %y : tensor<2xf32>
    ... }'''
    >>> x = np.ones(2, np.float32)
    >>> (device, *_) = client.local_devices()
    >>> aval = buffers.Aval((2,), x.dtype)
    >>> double = executable.compile_text(
    ...     client.default_client(), text, [device], out_avals=[aval]
    ... )
    >>> [y] = double.execute([buffers.from_numpy(x, device, copy=True)])
    >>> buffers.to_numpy(y)
    array([2., 2.], dtype=float32)
"""

from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from attrs import field, frozen
from jaxlib import _hlo, _jax

from verax.backend.lowering.mlir_text import NO_CALLS, HostCalls, without_algorithms
from verax.backend.lowering.stablehlo_io import for_compiler, read
from verax.backend.runtime.buffers import AvalLike, Buffer, Sharding, single_device
from verax.backend.runtime.callback_errors import FAILURES, suspect_others
from verax.backend.runtime.client import default_client
from verax.backend.runtime.errors import (
    CompileError,
    ExecutionError,
    RuleFailed,
    explained,
    trimmed,
)
from verax.backend.xla.callback_runs import trampolines, with_calls
from verax.backend.xla.compile_options import (
    CompileOptions,
    compile_error,
    jaxlib_options,
)
from verax.backend.xla.disk_cache import DiskAnswer, Load, entry_for, through_cache
from verax.ir.records import ReprMixin
from verax.rules.values.state import State

__all__ = [
    "CompileError",
    "CompileOptions",
    "Executable",
    "ExecutionError",
    "MemoryAnalysis",
    "compile_text",
    "load_serialized",
]


type Choose = Callable[[Sequence[_hlo.HloSharding]], Sequence[Sharding]]
type Shardings = Sequence[Sharding] | Choose
"""The shardings of outputs, or what makes them from those that XLA chose."""
type Execute = Callable[[Sequence[Buffer]], list[Buffer]]
type Run = Callable[[Sequence[Buffer]], _jax.ExecuteResults]
ResultHandler = _jax.ResultHandler

NOT_ASKED: Final = DiskAnswer(None)
# What jaxlib raises if a run fails.
FAILED: Final = (_jax.JaxRuntimeError, TypeError)


@frozen(repr=False)
class MemoryAnalysis(ReprMixin):
    """Bytes that one run of a program needs on each device."""

    arguments: int
    outputs: int
    temporaries: int
    aliased: int
    generated_code: int
    peak: int = 0

    @property
    def argument_size_in_bytes(self) -> int:
        """`arguments`, as jaxlib calls it; so do the others."""
        return self.arguments

    @property
    def output_size_in_bytes(self) -> int:
        return self.outputs

    @property
    def temp_size_in_bytes(self) -> int:
        return self.temporaries

    @property
    def alias_size_in_bytes(self) -> int:
        return self.aliased

    @property
    def generated_code_size_in_bytes(self) -> int:
        return self.generated_code

    @property
    def peak_memory_in_bytes(self) -> int:
        """The most that is in use at one time; 0 if the compiler does not say."""
        return self.peak


def memory_of(loaded: _jax.LoadedExecutable) -> MemoryAnalysis:
    """The bytes that one run of a program needs on each device."""
    stats = loaded.get_compiled_memory_stats()
    return MemoryAnalysis(
        arguments=stats.argument_size_in_bytes,
        outputs=stats.output_size_in_bytes,
        temporaries=stats.temp_size_in_bytes,
        aliased=stats.alias_size_in_bytes,
        generated_code=stats.generated_code_size_in_bytes,
        peak=getattr(stats, "peak_memory_in_bytes", 0),
    )


@frozen(eq=False, repr=False)
class Executable(ReprMixin):
    """A compiled program, tied to its devices.

    `execute(buffers)` runs it: one buffer per argument, in order, each of the dtype,
    shape and device for which the program was compiled; it returns one buffer per
    output, which may still be computing. It raises ExecutionError for a wrong number,
    size or device of arguments and for deleted ones. A wrong dtype of equal size passes
    unseen: the caller must select programs by the types of the arguments. `code`
    gives the serialised program where `loaded` cannot: XLA forgets the machine code of
    programs that it has loaded, and would write files that cannot run. `disk` is what
    the compilation cache did for the program.

    Calls that are counted in microseconds write down what `execute` does instead:
    `run(buffers).consume_with_handlers(handlers)`, and `fail(error, buffers)` on what
    is in `FAILED`.
    """

    execute: Execute
    loaded: _jax.LoadedExecutable = field(repr=False)
    run: Run = field(repr=False)
    handlers: list[_jax.ResultHandler] = field(repr=False)
    calls: HostCalls = field(default=NO_CALLS, repr=False)
    origin: str = "compiler"
    code: Callable[[], bytes] | None = field(default=None, repr=False)
    disk: DiskAnswer = field(default=NOT_ASKED, repr=False)

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates for one run, such as `flops` and `bytes accessed`."""
        return dict(self.loaded.cost_analysis())

    def memory_analysis(self) -> MemoryAnalysis:
        """The bytes that one run needs."""
        return memory_of(self.loaded)

    def input_layouts(self) -> list[_jax.PjRtLayout]:
        """The layout in memory that the program takes for each argument."""
        return self.loaded.get_parameter_layouts()

    def output_layouts(self) -> list[_jax.PjRtLayout]:
        """The layout in memory of each result."""
        return self.loaded.get_output_layouts()

    def hlo_text(self) -> str:
        """The optimised program, in XLA's own language."""
        return self.loaded.get_hlo_text()

    def serialize(self) -> bytes:
        """The compiled code, for `load_serialized` with the same jaxlib and devices.

        Raises:
            ValueError: the program calls functions of this process.
        """
        if self.calls.functions:
            raise ValueError(
                "A program with callbacks cannot be serialised: it calls functions of "
                "this process. Take the callbacks out, or keep the program here."
            )
        return self.loaded.serialize() if self.code is None else self.code()


def check_devices(devices: Sequence[_jax.Device], options: CompileOptions) -> None:
    """One device for each partition."""
    if len(devices) != options.num_partitions:
        raise ValueError(
            f"A program of {options.num_partitions} partitions needs as many devices, "
            f"got {len(devices)}."
        )


def result_handlers(
    loaded: _jax.LoadedExecutable,
    devices: Sequence[_jax.Device],
    out_avals: Sequence[AvalLike],
    out_shardings: Shardings | None,
) -> list[_jax.ResultHandler]:
    """One handler for each output; the runtime aborts on less, so all is counted."""
    if out_shardings is None:
        if len(devices) > 1:
            raise ValueError(
                "A partitioned program needs the shardings of its outputs."
            )
        out_shardings = [single_device(devices[0])] * len(out_avals)
    elif callable(out_shardings):
        protos = loaded.get_output_shardings() if len(devices) > 1 else None
        hlos = [_hlo.HloSharding.from_proto(proto) for proto in protos or ()]
        out_shardings = out_shardings(hlos)
    if len(out_shardings) != len(out_avals):
        raise ValueError(
            f"{len(out_avals)} outputs need as many shardings, "
            f"got {len(out_shardings)}."
        )
    count = len(loaded.get_output_memory_kinds()[0])
    if count != len(out_avals):
        raise ValueError(
            f"The program has {count} outputs, but {len(out_avals)} types were given."
        )
    return [
        _jax.array_result_handler(aval, sharding, True)
        for aval, sharding in zip(out_avals, out_shardings, strict=True)
    ]


def execution_error(error: Exception, buffers: Sequence[object]) -> ExecutionError:
    """The same failure with the likely culprit named."""
    for position, buffer in enumerate(buffers):
        if not isinstance(buffer, Buffer):
            return ExecutionError(
                f"Argument {position} is a {type(buffer).__name__}, not a buffer."
            )
        if buffer.is_deleted():
            return ExecutionError(
                f"Argument {position} has been deleted, or donated to an earlier call."
            )
    text = explained(str(error))
    if "donate" in text and "same buffer twice" in text:
        return ExecutionError(shared_donation(buffers))
    if "in the same call" in text or "by the same call" in text:
        return ExecutionError(shared_donation(buffers))
    return ExecutionError(text)


def fail(error: Exception, buffers: Sequence[object]) -> NoReturn:
    """Raise what went wrong in a run that ended in `error`.

    Raises:
        ExecutionError: the arguments do not fit, or the program failed.
        Exception: that of a function of the host that the program called.
    """
    failure = FAILURES.behind(error)
    if failure is not None:
        raise failure from failure.__cause__
    suspect_others(error)
    raise execution_error(error, buffers) from error


def shared_donation(buffers: Sequence[object]) -> str:
    """The message for one array in several places of a call that donates it."""
    seen: dict[int, list[int]] = {}
    for position, buffer in enumerate(buffers):
        seen.setdefault(id(buffer), []).append(position)
    shared = [places for places in seen.values() if len(places) > 1]
    which = " and ".join(map(str, shared[0])) if shared else "of one memory"
    return (
        f"Arguments {which} are the same array, and one of them is donated, so its "
        "memory would be overwritten while it is read: pass x.copy() in one place, or "
        "do not donate it. Nothing has been donated."
    )


def make_executable(
    loaded: _jax.LoadedExecutable,
    devices: Sequence[_jax.Device],
    handlers: list[_jax.ResultHandler],
    calls: HostCalls = NO_CALLS,
    failed: list[BaseException] | None = None,
    origin: str = "compiler",
    code: Callable[[], bytes] | None = None,
    disk: DiskAnswer = NOT_ASKED,
) -> Executable:
    """Close over all that a run needs: Python has no faster call than a closure."""
    run: Run = loaded.execute_sharded
    if calls.functions:
        run = with_calls(loaded, calls, failed)
    if State.joined:
        from verax.backend.runtime.cluster import counted

        run = counted(run, devices, waits=bool(calls.functions))

    def execute(buffers: Sequence[Buffer]) -> list[Buffer]:
        try:
            return run(buffers).consume_with_handlers(handlers)
        except FAILED as error:
            fail(error, buffers)

    return Executable(execute, loaded, run, handlers, calls, origin, code, disk)


def compile_text(
    client: _jax.Client,
    mlir_text: str,
    devices: Sequence[_jax.Device],
    options: CompileOptions | None = None,
    *,
    out_avals: Sequence[AvalLike],
    out_shardings: Shardings | None = None,
    calls: HostCalls = NO_CALLS,
) -> Executable:
    """Compile a StableHLO module whose public function is `main`.

    `out_avals` are the types of the outputs, any objects with `shape`, `dtype` and
    `weak_type`; the same objects become the `aval` of the results. Outputs of a program
    for one device live on it, otherwise `out_shardings` says where. `calls` are the
    functions of the host that the module calls; the executable keeps them. Programs
    without them may come from the compilation cache: `origin` is "compiler" or "disk".

    Raises:
        CompileError: XLA refused the text or an option.
        ValueError: the numbers of devices, outputs and types do not agree.
    """
    options = options or CompileOptions()
    check_devices(devices, options)
    where = _jax.DeviceList(tuple(devices))
    how = jaxlib_options(devices, options, mlir_text)
    failed: list[BaseException] | None = [] if len(devices) > 1 else None
    text = without_algorithms(mlir_text) if client.platform == "cpu" else mlir_text

    def made() -> _jax.LoadedExecutable:
        return load_text(client, text, devices, how, calls, failed)

    entry = entry_for(client, mlir_text, devices, options, how, calls)
    try:
        loaded, disk = through_cache(entry, made, loading(client, where, how))
    except RuleFailed as failure:
        raise failure.error from failure.error.__cause__
    except (RuntimeError, ValueError) as error:  # the second is that of bad sizes
        raise compile_error(error, options) from error
    handlers = result_handlers(loaded, devices, out_avals, out_shardings)
    if isinstance(entry, DiskAnswer) or not disk.hit:
        return make_executable(loaded, devices, handlers, calls, failed, disk=disk)

    def code() -> bytes:
        if (data := entry.read()) is not None:
            return data
        return client.compile_and_load(text, where, how).serialize()

    origin = disk.origin
    return make_executable(loaded, devices, handlers, calls, failed, origin, code, disk)


def load_text(
    client: _jax.Client,
    text: str,
    devices: Sequence[_jax.Device],
    options: _jax.CompileOptions,
    calls: HostCalls,
    failed: list[BaseException] | None,
) -> _jax.LoadedExecutable:
    """What XLA makes of a module, with the functions of the host that it calls."""
    where = _jax.DeviceList(tuple(devices))

    def made_of(text: str) -> _jax.LoadedExecutable:
        if not calls.functions:
            return client.compile_and_load(for_compiler(text), where, options)
        callbacks = trampolines(calls, failed)
        return client.compile_and_load(read(text), where, options, callbacks)

    if calls.partitions:
        from verax.backend.xla.partition_calls import asked

        with asked(calls.partitions, devices, text) as named:
            return made_of(named)
    return made_of(text)


def loading(
    client: _jax.Client, devices: _jax.DeviceList, options: _jax.CompileOptions
) -> Load:
    """The function that makes a program of its bytes."""
    return lambda data: client.deserialize_executable(data, devices, options)


def load_serialized(
    client: _jax.Client,
    serialized: bytes,
    devices: Sequence[_jax.Device],
    options: CompileOptions | None = None,
    *,
    out_avals: Sequence[AvalLike],
    out_shardings: Shardings | None = None,
) -> Executable:
    """Load what `Executable.serialize` returned; as `compile_text` otherwise.

    Load only what you trust: the bytes are machine code.

    Raises:
        CompileError: the bytes are not a program that this jaxlib can load.
    """
    options = options or CompileOptions()
    check_devices(devices, options)
    try:
        loaded = client.deserialize_executable(
            serialized,
            _jax.DeviceList(tuple(devices)),
            jaxlib_options(devices, options, ""),
        )
    except _jax.JaxRuntimeError as error:
        raise compile_error(error, options) from error
    handlers = result_handlers(loaded, devices, out_avals, out_shardings)
    return make_executable(
        loaded, devices, handlers, origin="bytes", code=lambda: serialized
    )


# -----------------------------------------------------------------------------
# Modules as XLA's own programs, before any optimisation.
#
# XLA reads the text of a module and gives it back as HLO, with an estimate of its cost;
# nothing is compiled::
#
#     hlo_text(lowered.text), hlo_cost(lowered.text)


def computation(text: str) -> _hlo.XlaComputation:
    """The module as jaxlib's `XlaComputation`.

    Raises:
        CompileError: XLA cannot read it.
    """
    try:
        return _jax.mlir.mlir_module_to_xla_computation(
            text, use_tuple_args=False, return_tuple=False
        )
    except RuntimeError as error:
        raise CompileError(trimmed(str(error))) from error


def hlo_text(text: str, *, metadata: bool = False) -> str:
    """The module as HLO; with `metadata` the source lines that it knows."""
    options = _hlo.HloPrintOptions.short_parsable()
    options.print_metadata = metadata
    return computation(text).as_hlo_module().to_string(options)


def hlo_cost(text: str) -> dict[str, float]:
    """XLA's estimates for the module as it is: `flops`, `bytes accessed`, ..."""
    module = computation(text).as_hlo_module()
    return dict(_jax.hlo_module_cost_analysis(default_client(), module))
