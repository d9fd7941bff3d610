"""`--doctor` reads which names of jax a program uses, and runs nothing."""

from pathlib import Path

import pytest

from verax.jax import doctor
from verax.jax.doctor import Unreadable, collect, examine, kind


def write(folder: Path, name: str, source: str) -> None:
    """A file with some source, in folders made for it."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)


def test_a_report(tmp_path: Path) -> None:
    script = "import jax.numpy as jnp\nimport library\n\njnp.sin(jnp.no_such_sine)\n"
    write(tmp_path, "train.py", script + "raise SystemExit('this never runs')\n")
    library = (
        "from jax import lax as L, no_such_name\n"
        "from jax.experimental import hijax\n"
        "from . import inner\n"
        "try:\n    from jax.nowhere import f\nexcept ImportError:\n    f = None\n"
        "def g(x):\n    return L.add(x, hijax.MutableHiType)\n"
    )
    write(tmp_path, "library/__init__.py", library)
    inner = "import jax\nif hasattr(jax, 'later'):\n    jax.later(1)\njax.jit.x\n"
    write(tmp_path, "library/inner.py", inner)
    report = examine(str(tmp_path / "train.py"))
    heads, missing, guarded, inert, note = report.split("\n\n")
    assert "names alone" in note
    assert "3 files read" in heads
    assert heads.endswith("2 of them missing")
    assert [line.split()[:2] for line in missing.splitlines()[1:]] == [
        ["jax.no_such_name", "1x"],
        ["jax.numpy.no_such_sine", "1x"],
    ]
    assert missing.endswith("train.py:4")
    assert [line.split()[0] for line in guarded.splitlines()[1:]] == [
        "jax.later",
        "jax.nowhere.f",
    ]
    assert [line.split()[0] for line in inert.splitlines()[1:]] == [
        "jax.experimental.hijax.MutableHiType"
    ]


def test_relative_imports_and_files_that_are_no_python(tmp_path: Path) -> None:
    write(tmp_path, "main.py", "from p.q import a\nimport p.broken\n")
    write(tmp_path, "p/__init__.py", "")
    write(tmp_path, "p/broken.py", "import jax; def (")
    write(tmp_path, "p/r.py", "from jax.lax import mul\n")
    write(tmp_path, "p/q/__init__.py", "from .a import x\n")
    write(tmp_path, "p/q/a.py", "from .. import r\nfrom ..r import *\n")
    uses, files = collect(str(tmp_path / "main.py"))
    assert list(uses) == ["jax.lax.mul"]
    assert files == 5


def test_kinds() -> None:
    names = [
        "jax",
        "jax.numpy",
        "jax.numpy.sin",
        "jax.jit",
        "jax.extend.core.Primitive",
    ]
    assert {kind(name, []) for name in names} == {"there"}


def test_files_that_do_not_speak_of_it_lead_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    several = "from . import (\n    a,  # (first)\n    b as c,  # one\n)\n"
    write(tmp_path, "lib/__init__.py", several)
    write(tmp_path, "lib/a.py", "import os, lib.deep.d as d; x = 1\n")
    write(tmp_path, "lib/b.py", "if True:\n    from .deep.e import f as g, h\n")
    write(tmp_path, "lib/deep/__init__.py", "VALUE = 'from lib import nothing'\n")
    write(tmp_path, "lib/deep/d.py", "from jax.lax import mul\n")
    write(tmp_path, "lib/deep/e.py", "import jax\njax.jit\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(doctor, "PATIENCE", 0.0)
    assert examine("lib").startswith("lib: 6 files read, which use 3 names of jax; 0")
    assert "files read, " in capsys.readouterr().err


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=r"no script 'nowhere\.py', and no module"):
        examine("nowhere.py")
    write(tmp_path, "broken.py", "def (")
    with pytest.raises(Unreadable, match="cannot be read"):
        examine(str(tmp_path / "broken.py"))
