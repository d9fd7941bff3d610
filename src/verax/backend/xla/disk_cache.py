"""Compiled programs on disk, shared by processes (floor 4).

One idea: a program is stored under a hash of all that decides about its code
(`cache_key`), in a folder that only its user can write to (`cache_folder`), completely
or not at all (`cache_files`)::

    entry = entry_for(client, text, devices, options, how, calls)
    loaded, answer = through_cache(entry, compile, load)

The text of a program takes its array constants as arguments, so no file holds them.
"""

import time
from collections.abc import Callable, Sequence

from attrs import frozen
from jaxlib import _jax

from verax.backend.lowering.callback_calls import HostCalls
from verax.backend.runtime.metrics import RECORDER
from verax.backend.xla.cache_files import Entry, bound, chosen_folder
from verax.backend.xla.cache_key import DUMPS, compiler_flags, key_of
from verax.backend.xla.compile_options import CompileOptions
from verax.ir.records import ReprMixin
from verax.rules.values.state import STATE

type Load = Callable[[bytes], _jax.LoadedExecutable]


@frozen(repr=False)
class DiskAnswer(ReprMixin):
    """Whether a program was on disk; `hit` is None where the cache is not asked.

    `note` says in which file it is, or why in none.
    """

    hit: bool | None
    note: str = ""

    @property
    def origin(self) -> str:
        """Where the program is from: "disk" or "compiler"."""
        return "disk" if self.hit else "compiler"


def through_cache(
    entry: Entry | DiskAnswer, compile: Callable[[], _jax.LoadedExecutable], load: Load
) -> tuple[_jax.LoadedExecutable, DiskAnswer]:
    """The program, and what the cache did for it."""
    if isinstance(entry, Entry):
        found = loaded_entry(entry, load)
        if found is not None:
            RECORDER.record("disk_hits")
            return found, DiskAnswer(True, f"read from {entry.path}")
        RECORDER.record("disk_misses")
    started = time.perf_counter()
    program = compile()
    seconds = time.perf_counter() - started
    RECORDER.record("compiles")
    RECORDER.record("compile_seconds", seconds)
    if isinstance(entry, DiskAnswer):
        return program, entry
    fault = store(entry, program, seconds)
    note = f"not kept: {fault}" if fault else f"written to {entry.path}"
    return program, DiskAnswer(False, note)


def loaded_entry(entry: Entry, load: Load) -> _jax.LoadedExecutable | None:
    """The program of an entry; None if there is none that jaxlib can load."""
    data = entry.read()
    if data is None:
        return None
    try:
        return load(data)
    except RuntimeError as error:
        entry.discard(f"cannot be loaded ({error})")
        return None


def store(entry: Entry, program: _jax.LoadedExecutable, seconds: float) -> str:
    """Write a program that took so long to compile to its entry.

    Returns:
        Why it was not written; empty if it was.
    """
    least = STATE.persistent_cache_min_compile_time_secs
    if seconds < least:
        return (
            f"compiled in {seconds:.2g} s, and persistent_cache_min_compile_time_secs "
            f"is {least:g}"
        )
    try:
        data = program.serialize()
    except RuntimeError as error:
        fault = f"it cannot be serialised: {error}"
        entry.folder.report(f"a program is not kept, since {fault}")
        return fault
    if len(data) < STATE.persistent_cache_min_entry_size_bytes:
        return "it is smaller than persistent_cache_min_entry_size_bytes"
    limit = STATE.compilation_cache_max_size
    if 0 <= limit < len(data):
        return "it is larger than compilation_cache_max_size"
    fault = entry.write(data)
    if not fault:
        RECORDER.record("disk_writes")
        if limit >= 0:
            bound(entry.folder.path, len(data), limit)
    return fault


def entry_for(
    client: _jax.Client,
    text: str,
    devices: Sequence[_jax.Device],
    options: CompileOptions,
    how: _jax.CompileOptions,
    calls: HostCalls,
) -> Entry | DiskAnswer:
    """Where a program is stored, or why it is not; `how` is `options` for jaxlib.

    Programs whose compilation the user wants to see are not. One over several processes
    is the same in each, so that what any of them has written all may read.
    """
    if not STATE.enable_compilation_cache:
        return DiskAnswer(None, "enable_compilation_cache is off")
    folder = chosen_folder()
    if folder is None:
        return DiskAnswer(None, "compilation_cache_dir is not set")
    if STATE.compilation_cache_max_size == 0:
        return DiskAnswer(None, "compilation_cache_max_size is 0")
    if calls.functions:
        return DiskAnswer(None, "the program calls functions of this process")
    if calls.partitions:
        return DiskAnswer(None, "rules of this process partition the program")
    dumped = any(name.startswith(DUMPS) for name, _ in options.overrides)
    if dumped or f"--{DUMPS}" in compiler_flags():
        return DiskAnswer(None, "XLA is asked to dump what it compiles")
    if folder.refusal:
        return DiskAnswer(None, folder.refusal)
    return Entry(folder, key_of(client, text, devices, how))
