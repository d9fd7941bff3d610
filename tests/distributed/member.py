"""One process of a group: joins the others and runs the checks of a module.

python -m tests.distributed.member tests.distributed.checks_arrays HOST:PORT 2 0
"""

import importlib
import json
import sys
import traceback

import verax


def main(module: str, address: str, count: str, index: str) -> None:
    """Run all functions `check_*`, in the same order in every process."""
    verax.distributed.initialize(
        address,
        int(count),
        int(index),
        initialization_timeout=60,
        heartbeat_timeout_seconds=20,
        shutdown_timeout_seconds=20,
    )
    checks = vars(importlib.import_module(module))
    for name in [name for name in checks if name.startswith("check_")]:
        report = {name: ""}
        try:
            checks[name]()
        except Exception:
            report[name] = traceback.format_exc()
        print("\n" + json.dumps(report), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
