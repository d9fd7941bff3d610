"""The table of docs/libraries.md: what it lists is missing, and nothing else is."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from tests.jax.programs import output, run_python
from verax.jax.names import MODULES
from verax.jax.views import View

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| `(jax[.\w]*)` \| (?:`([^`]*)`|all) \|", re.MULTILINE)
COMPLETE = [
    "jax",
    "jax.ad_checkpoint",
    "jax.debug",
    "jax.lax",
    "jax.lax.linalg",
    "jax.nn",
    "jax.numpy",
    "jax.numpy.fft",
    "jax.numpy.linalg",
    "jax.random",
    "jax.scipy.linalg",
    "jax.scipy.special",
    "jax.sharding",
    "jax.stages",
    "jax.tree",
    "jax.tree_util",
]
"""Modules of which the table lists every missing name."""


def listed() -> dict[str, set[str]]:
    """The missing names of each module; no names where all of it is missing."""
    actual: dict[str, set[str]] = {}
    for module, names in ROW.findall((ROOT / "docs" / "libraries.md").read_text()):
        actual.setdefault(module, set()).update(names.split())
    return actual


def test_what_is_listed_is_missing() -> None:
    rows = listed()
    assert len(rows) == 9
    for module, names in rows.items():
        if not names:
            assert module not in MODULES
            continue
        view = View(module, MODULES[module], frozenset())
        assert [name for name in names if hasattr(view, name)] == []


needs_jax = [
    pytest.mark.jax,
    pytest.mark.skipif(
        importlib.util.find_spec("jax") is None,
        reason="jax is not installed, so that there are no names to compare with",
    ),
]
SURFACE = """
import importlib, json, sys, types
print(json.dumps({
    name: [
        n for n in dir(module)
        if not n.startswith("_")
        and not isinstance(vars(module).get(n), types.ModuleType)
    ]
    for name in sys.argv[1:]
    for module in [importlib.import_module(name)]
}))
"""


class TestBesideRealJax:
    """Where jax is installed, too."""

    pytestmark = needs_jax

    def test_all_that_is_missing_is_listed(self) -> None:
        done = run_python("-c", SURFACE, *COMPLETE)
        assert done.returncode == 0, done.stderr
        source = (
            "import importlib, json, sys\n"
            "names = json.loads(sys.stdin.read())\n"
            "print(json.dumps({m: [n for n in names[m] if not "
            "hasattr(importlib.import_module(m), n)] for m in names}))"
        )
        missing = json.loads(output("-c", source, stdin=done.stdout))
        rows = listed()
        assert {m: set(missing[m]) for m in COMPLETE} == {
            m: rows.get(m, set()) for m in COMPLETE
        }

    def test_the_real_one_is_not_loaded(self) -> None:
        source = (
            "import jax, sys, importlib.metadata\n"
            "jax.jit(jax.grad(lambda x: jax.numpy.sin(x)))(1.0)\n"
            "files = [str(vars(m).get('__file__')) for m in sys.modules.values()]\n"
            "print([f for f in files if '/site-packages/jax/' in f])\n"
            "print(jax.__version__ == importlib.metadata.version('jax'))"
        )
        assert output("-c", source) == "[]\nTrue\n"

    def test_after_the_real_one_installing_is_refused(self) -> None:
        done = run_python("-c", "import jax, verax.jax\nverax.jax.install()")
        assert done.returncode == 1
        assert "the real jax has been imported already" in done.stderr
