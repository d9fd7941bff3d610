"""One run of one example, in a process of its own: what it prints, and when.

The parent says when it started this process, so that the time to import counts all
that precedes the example's first line of work::

    python worker.py EXAMPLE FIGURES STARTED
    python -m verax.jax worker.py EXAMPLE FIGURES STARTED
"""

import importlib.util
import json
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def main(example: str, figures: str, started: str) -> None:
    """Import the example, call its `main`, write the two times and what ran."""
    del sys.path[0]  # this folder: its modules must not be taken for libraries
    spec = importlib.util.spec_from_file_location("example", example)
    assert spec is not None, f"not a Python file: {example}"
    assert spec.loader is not None, f"not a Python file: {example}"
    module = importlib.util.module_from_spec(spec)
    sys.modules["example"] = module
    spec.loader.exec_module(module)
    imported = time.monotonic()
    module.main()
    done = time.monotonic()
    found = {
        "import": imported - float(started),
        "first call": done - imported,
        "library": "verax" if "verax" in sys.modules else "jax",
        "jaxlib": version("jaxlib"),
    }
    Path(figures).write_text(json.dumps(found))


def versions(distributions: list[str]) -> dict[str, str]:
    """The versions of those distributions that this interpreter has."""
    found = {}
    for name in distributions:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    if sys.argv[1] == "--versions":
        print(json.dumps(versions(sys.argv[2:])))
    else:
        main(*sys.argv[1:])
