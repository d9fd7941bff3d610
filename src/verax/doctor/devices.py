"""Floor 6: the devices, asked for in a process of their own.

One idea: the runtime ends the process where Python would raise (an unknown flag of
XLA's, a driver that does not fit), and may wait for ever; so another process starts it,
runs a small program, and whatever becomes of it is a finding::

    [finding.value for finding in device_findings()]
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Final

from verax.backend.runtime.environment import gpu_files
from verax.doctor.findings import Finding, masked

SECONDS: Final = 120.0
LINES: Final = 4
MARK: Final = "verax-doctor:"
SIZE: Final = 8
PROGRAM: Final = f"""
import json, verax, verax.numpy as vnp
devices = verax.devices()
total = verax.jit(lambda x: (x @ x).sum())(vnp.ones(({SIZE}, {SIZE})))
version = devices[0].client.platform_version.splitlines()[0]
about = dict(kinds=[d.device_kind for d in devices], version=version)
about |= dict(platform=verax.default_backend(), total=float(total))
print({MARK!r} + json.dumps(about))
"""
"""The program of the other process: 8 x 8 ones multiplied, 512 in all."""


def device_findings(seconds: float = SECONDS) -> Iterator[Finding]:
    """The devices, and whether a small program computes on them what it should."""
    answer = asked(PROGRAM, seconds)
    if isinstance(answer, str):
        yield Finding("start", "failed", "problem", answer)
        return
    kinds = answer["kinds"]
    counts = ", ".join([f"{kinds.count(k)} x {k}" for k in dict.fromkeys(kinds)])
    yield Finding("devices", f"{answer['platform']}: {counts}")
    yield Finding("runtime", masked(answer["version"]))
    right = answer["total"] == SIZE**3
    yield Finding(
        "a program",
        "runs" if right else f"computes {answer['total']}",
        "fine" if right else "problem",
        "" if right else f"{SIZE} x {SIZE} ones, multiplied, have the sum {SIZE**3}",
    )
    yield from gpu_findings(answer["platform"])


def gpu_findings(platform: str) -> Iterator[Finding]:
    """A GPU that is there and not used is worth a note."""
    if gpu_files() and platform == "cpu":
        advice = (
            "pip install 'verax[cuda13]' (or cuda12) brings the plugin; if it is "
            "installed, VERAX_PLATFORMS or JAX_PLATFORMS asks for the cpu"
        )
        yield Finding("gpu", "there, but not used", "note", advice)


def asked(program: str, seconds: float) -> dict[str, Any] | str:
    """What a process says that runs a program; a text if it fails.

    >>> asked("raise SystemExit('no')", 60)
    'the process that starts devices ended with status 1: no'
    """
    environment = {**os.environ, "VERAX_ENABLE_COMPILATION_CACHE": "0"}
    try:
        done = subprocess.run(
            [sys.executable, "-c", program],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"devices did not start within {seconds:g} s"
    except OSError as error:
        return f"no process starts: {error.strerror}"
    for line in done.stdout.decode(errors="replace").splitlines():
        if line.startswith(MARK):
            out: dict[str, object] = json.loads(line.removeprefix(MARK))
            return out
    words = done.stderr.decode(errors="replace").strip().splitlines()[-LINES:]
    said = masked("\n".join(words)) or "it said nothing"
    return f"the process that starts devices ended {ending(done.returncode)}: {said}"


def ending(status: int) -> str:
    """How a process ended, in words.

    >>> ending(-6), ending(2)
    ('by SIGABRT', 'with status 2')
    """
    if status >= 0:
        return f"with status {status}"
    try:
        return f"by {signal.Signals(-status).name}"
    except ValueError:
        return f"by signal {-status}"
