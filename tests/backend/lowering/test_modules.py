"""Modules as the compiler takes them: texts, or objects in a context that is kept."""

import gc
import threading
import weakref
from collections.abc import Callable

import numpy as np
import pytest

import verax
from verax.backend.lowering import stablehlo_io
from verax.backend.lowering.stablehlo_io import FIRST, Kept, for_compiler, read
from verax.backend.runtime.client import default_client
from verax.backend.runtime.errors import CompileError
from verax.backend.xla.executable import compile_text

MODULE = "module @m { func.func public @main() { return } }"


def in_a_thread(work: Callable[[], object]) -> None:
    """Run `work` in a thread that has read nothing yet."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def test_a_thread_reads_its_modules_in_one_context() -> None:
    first, second = read(MODULE), read(MODULE)
    assert first.context == second.context
    others: list[object] = []
    in_a_thread(lambda: others.append(read(MODULE).context))
    assert others != [first.context]


def test_a_context_is_let_go_when_it_has_read_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stablehlo_io, "CHARACTERS", 100)
    kept = Kept()
    first = kept.reader(60)
    assert kept.reader(60) is first
    gone = weakref.ref(first)
    second = kept.reader(60)
    assert second is not first
    del first
    gc.collect()
    assert gone() is None
    assert kept.reader(1) is second


def test_the_first_programs_stay_text_where_nothing_else_needs_the_bindings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stablehlo_io, "IR", "no.such.module")

    def work() -> None:
        assert [for_compiler(MODULE) for _ in range(FIRST)] == [MODULE] * FIRST
        monkeypatch.undo()
        assert type(for_compiler(MODULE)).__name__ == "Module"

    in_a_thread(work)


@pytest.mark.parametrize("text", ["no module", MODULE.replace("return", "returm")])
def test_what_is_no_module_is_the_compilers_to_refuse(text: str) -> None:
    client = default_client()
    read(MODULE)
    assert for_compiler(text) is text
    with pytest.raises(CompileError):
        compile_text(client, text, client.local_devices()[:1], out_avals=())


def test_programs_compile_in_many_threads_at_once() -> None:
    found: dict[int, float] = {}

    def work(k: int) -> None:
        for n in range(5):
            scale = np.float32(10 * k + n)
            f = verax.jit(lambda x, scale=scale: (x * scale).sum())
            found[10 * k + n] = float(f(np.ones(3, np.float32)))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {10 * k + n: 3.0 * (10 * k + n) for k in range(4) for n in range(5)}
