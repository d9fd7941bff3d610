"""The custom calls of a CUDA plugin that verax registers; the golden is made so.

The plugin's modules load without a GPU and without jax. Unpack its wheel (or install
it) and name the folder; `tests/goldens/cuda_targets.txt` holds what is printed::

    pip download --no-deps jax-cuda13-plugin==0.12.0 -d wheels
    python -m zipfile -e wheels/jax_cuda13_plugin-*.whl unpacked
    python -m tests.gpu.plugin_targets unpacked
"""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "goldens" / "cuda_targets.txt"
PACKAGES = ("jax_cuda13_plugin", "jax_cuda12_plugin")
# Which function of which module lists the targets: those that verax registers.
LISTS = (
    ("_solver", "registrations"),
    ("_hybrid", "registrations"),
    ("_linalg", "registrations"),
    ("_prng", "registrations"),
    ("_sparse", "registrations"),
    ("cuda_plugin_extension", "ffi_handlers"),
)


def registered(package: str) -> list[str]:
    """The targets of an importable plugin, each with the module that has it."""
    actual = []
    for module, function in LISTS:
        listed = getattr(importlib.import_module(f"{package}.{module}"), function)()
        actual += [f"{module} {name}" for name in sorted(dict(listed))]
    return actual


def golden_targets() -> frozenset[str]:
    """The names in the golden."""
    lines = GOLDEN.read_text().splitlines()
    return frozenset(line.split()[1] for line in lines if not line.startswith("#"))


def main(folders: Sequence[str]) -> int:
    """Print the targets of the first plugin found in the folders, or installed."""
    sys.path[:0] = folders
    for package in PACKAGES:
        if importlib.util.find_spec(package) is not None:
            version = importlib.import_module(f"{package}.version").__version__
            print(f"# {package} {version}")
            print("\n".join(registered(package)))
            return 0
    print("no CUDA plugin in these folders, and none is installed", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
