"""Eight kinds of program and the results of public functions, typed and run."""

import json
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted(path.stem for path in (ROOT / "tests/typing/programs").glob("*.py"))
ANSWERS = {
    "gpt": (0.95, 1.0),  # share of right next tokens
    "hmc": (0.35, 0.65),  # a mean of 0.5
    "kalman": (0.2, 0.6),  # error after smoothing by error before
    "lattice_boltzmann": (1.4, 1.6),  # Poiseuille: the peak is 1.5 times the mean
    "pde": (0.3, 0.4),  # the mean of three fronts
    "ppo": (-0.15, 0.0),  # rewards; 0 is the highest
    "sharded_training": (0.0, 0.01),  # loss after by loss before
    "vae": (0.15, 0.4),  # loss after by loss before
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run(name: str) -> None:
    least, most = ANSWERS[name]
    assert least <= import_module(f"tests.typing.programs.{name}").main() <= most


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("basedpyright") is None, reason="basedpyright is not installed"
)
def test_pyright_agrees(tmp_path: Path) -> None:
    # mypy --strict reads the same files in `make check`; neither needs an ignore.
    config = {
        "typeCheckingMode": "standard",
        "pythonVersion": "3.12",
        "extraPaths": [str(ROOT / "src")],
        "stubPath": str(ROOT / "typings"),
        "include": [
            str(ROOT / "tests/typing/programs"),
            str(ROOT / "tests/typing/results"),
        ],
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "basedpyright", "--outputjson"),
            *("--pythonpath", sys.executable, "-p", str(tmp_path)),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] >= len(PROGRAMS) + 1
    assert [
        (
            Path(found["file"]).name,
            found["range"]["start"]["line"] + 1,
            found["message"],
        )
        for found in report["generalDiagnostics"]
        if found["severity"] == "error"
    ] == []


def test_nothing_is_ignored() -> None:
    for folder in ("programs", "results"):
        for path in (ROOT / "tests/typing" / folder).glob("*.py"):
            assert "ignore" not in path.read_text(), path
