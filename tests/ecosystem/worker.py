"""One run of one example, in a process of its own: what it prints, and its times.

Import counts all that precedes the example's first line of work, from the start of the
process on. Times are CPU times, but for tracing and lowering: those are what the
library itself says that they took::

    python worker.py EXAMPLE FIGURES
    python -m verax.jax worker.py EXAMPLE FIGURES
"""

import importlib.util
import json
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


class Stages:
    """Listens to a library: when it traced and lowered.

    Traces contain each other, so that durations cannot be added up.
    """

    events = frozenset(
        f"/jax/core/compile/{stage}_duration"
        for stage in ("jaxpr_trace", "jaxpr_to_mlir_module")
    )

    def __init__(self) -> None:
        self.spans: list[tuple[float, float]] = []

    def hear(self, event: str, seconds: float, **said: object) -> None:
        """Note a stage that ends now."""
        if event in self.events:
            now = time.perf_counter()
            self.spans.append((now - seconds, now))

    def seconds(self) -> float:
        """How long one of them or more were under way."""
        total, last = 0.0, 0.0
        for start, end in sorted(self.spans):
            total += max(0.0, end - max(start, last))
            last = max(last, end)
        return total


def main(example: str, figures: str) -> None:
    """Import the example, call its `main`, write the times and what ran."""
    del sys.path[0]  # this folder: its modules must not be taken for libraries
    spec = importlib.util.spec_from_file_location("example", example)
    assert spec is not None, f"not a Python file: {example}"
    assert spec.loader is not None, f"not a Python file: {example}"
    module = importlib.util.module_from_spec(spec)
    sys.modules["example"] = module
    spec.loader.exec_module(module)
    imported = time.process_time()
    stages = Stages()
    library = sys.modules["jax"]
    library.monitoring.register_event_duration_secs_listener(stages.hear)
    started = time.process_time()
    module.main()
    actual = {
        "import": imported,
        "trace + lower": stages.seconds(),
        "first call": time.process_time() - started,
        "library": "verax" if "verax" in sys.modules else "jax",
        "jaxlib": version("jaxlib"),
    }
    Path(figures).write_text(json.dumps(actual))


def versions(distributions: list[str]) -> dict[str, str]:
    """The versions of those distributions that this interpreter has."""
    actual = {}
    for name in distributions:
        try:
            actual[name] = version(name)
        except PackageNotFoundError:
            continue
    return actual


if __name__ == "__main__":
    if sys.argv[1] == "--versions":
        print(json.dumps(versions(sys.argv[2:])))
    else:
        main(*sys.argv[1:])
