"""Cases of starting up: import time and memory, first jit from a cold start.

The idea: a figure is measured by a child process of its own and printed by it, so
the interpreter's start is not in it. Memory is the peak resident set of the child. The
child may write compiled files, as an installed package has them: without them Python
compiles a source tree again in every process.

    python -c "<SCRIPT>"  # prints: cpu seconds, wall seconds, peak bytes
"""

import functools
import os
import subprocess
import sys
from functools import partial

from .case import NO_GOAL, Case, Goal
from .measure import Figure, Work
from .namespace import Namespace, Scale

SCRIPT = """
import importlib, sys, time
{before}
wall, cpu = time.perf_counter(), time.process_time()
for part in ("", ".numpy", ".lax", ".nn", ".random"):
    importlib.import_module("{library}" + part)
{after}
print(time.process_time() - cpu, time.perf_counter() - wall)
for line in open("/proc/self/status"):
    if line.startswith("VmHWM"):
        print(float(line.split()[1]) * 1024)
"""
FIRST_JIT = """
f = sys.modules["{library}"].jit(lambda x: x * 2.0 + 1.0)
f(1.5).block_until_ready()
"""


def child(library: str, before: str = "", after: str = "") -> tuple[float, ...]:
    """Run the script in a new interpreter; return its (cpu, wall, peak bytes)."""
    script = SCRIPT.format(
        library=library, before=before, after=after.format(library=library)
    )
    own = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=own)
    if done.returncode:
        raise RuntimeError(f"import child failed: {done.stderr.strip()[-300:]}")
    return tuple(float(word) for word in done.stdout.split())


@functools.cache
def warm_child(library: str, before: str, after: str) -> tuple[float, ...]:
    """Run the script again after one run that fills the file caches."""
    child(library, before, after)
    return child(library, before, after)


def _figure(column: int, before: str, after: str, ns: Namespace, scale: Scale) -> Work:
    return Figure(lambda: warm_child(ns.library, before, after)[column])


def cases() -> list[Case]:
    """Every case of this file."""
    rows: list[tuple[str, int, str, str, Goal, str]] = [
        ("import", 0, "", "", Goal(None, 0.45), "s"),
        ("import_wall", 1, "", "", NO_GOAL, "s"),
        ("import_after_numpy", 0, "import numpy", "", NO_GOAL, "s"),
        ("memory_after_import", 2, "", "", Goal(None, 0.75), "B"),
        ("first_jit", 0, "", FIRST_JIT, NO_GOAL, "s"),
        ("memory_after_first_jit", 2, "", FIRST_JIT, NO_GOAL, "B"),
    ]
    return [
        Case(f"startup/{name}", partial(_figure, column, before, after), goal, unit)
        for name, column, before, after, goal, unit in rows
    ]
