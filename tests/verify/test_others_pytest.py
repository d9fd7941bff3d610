"""pytest in environments that have verax: it runs as if verax were not there.

An environment holds links to what this one has installed, and verax as a wheel would
bring it: its files, their list, and the entry points of `pyproject.toml`.
"""

import os
import re
import subprocess
import textwrap
import tomllib
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
STRICT = (
    "[pytest]\nfilterwarnings = error\naddopts = --strict-markers --strict-config\n"
)


def needed(names: list[str]) -> dict[str, Distribution]:
    """The distributions of these names, and all that they need."""
    result: dict[str, Distribution] = {}
    while names:
        name = (
            re.split(r"[^\w.-]", names.pop(), maxsplit=1)[0].lower().replace("_", "-")
        )
        if name not in result:
            result[name] = distribution(name)
            lines = result[name].requires or []
            names += [line for line in lines if ";" not in line]
    return result


def link(site: Path, each: Distribution) -> None:
    """Put a distribution into an environment, by links to its folders and files."""
    for top in {file.parts[0] for file in each.files or [] if file.parts[0] != ".."}:
        if top != "__pycache__":
            (site / top).symlink_to(Path(str(each.locate_file(top))))


def install_verax(site: Path) -> None:
    """What installing a wheel of verax leaves: links for files, and its metadata."""
    (site / "verax").symlink_to(ROOT / "src" / "verax")
    info = site / f"verax-{PROJECT['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: verax\nVersion: {PROJECT['version']}\n"
    )
    files = sorted((ROOT / "src" / "verax").rglob("*.py"))
    rows = [f"{file.relative_to(ROOT / 'src').as_posix()},," for file in files]
    (info / "RECORD").write_text("\n".join(rows))
    groups = PROJECT.get("entry-points", {})
    lines = [
        line
        for group, points in groups.items()
        for line in (f"[{group}]", *[f"{name} = {at}" for name, at in points.items()])
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment's Python: verax, pytest and xdist, but not Hypothesis."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for each in needed([*PROJECT["dependencies"], "pytest", "pytest-xdist"]).values():
        link(site, each)
    install_verax(site)
    return folder / "bin" / "python"


def run(python: Path, folder: Path, *arguments: str) -> str:
    """What a command of this environment prints, with its exit status."""
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "PYTHON"))
    }
    result = subprocess.run(
        [str(python), *arguments],
        cwd=folder,
        env=kept | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return f"{result.stdout}{result.stderr}\nstatus {result.returncode}"


def project(folder: Path, tests: str, configuration: str = STRICT) -> Path:
    """A project of someone else's."""
    (folder / "pytest.ini").write_text(configuration)
    (folder / "test_it.py").write_text(textwrap.dedent(tests))
    return folder


ELSEWHERE = """
    import sys

    def test_nothing_of_verax_is_loaded():
        names = {name.partition(".")[0] for name in sys.modules}
        assert names.isdisjoint({"verax", "numpy", "jaxlib", "hypothesis"})
"""
CLIENT = """
    import jax
    import jax.numpy as jnp

    def test_right():
        assert jax.jit(jnp.sum)(jnp.arange(4)) == 6

    def test_wrong():
        total = int(jax.grad(lambda x: x * x)(1.0))
        assert total == 3
"""


@pytest.mark.slow
def test_projects_without_verax_run_as_before(python: Path, tmp_path: Path) -> None:
    folder = project(tmp_path, ELSEWHERE)
    printed = run(python, folder, "-W", "error", "-m", "pytest", "-p", "no:verax")
    assert "1 passed" in printed
    assert printed.endswith("status 0")
    assert "verax" not in run(
        python, folder, "-m", "pytest", "--help", "--trace-config"
    )


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_projects_that_use_jax_run_with_verax(
    workers: tuple[str, ...], python: Path, tmp_path: Path
) -> None:
    """Warnings are errors there, and assertions are rewritten, in workers too."""
    folder = project(tmp_path, CLIENT)
    printed = run(python, folder, "-m", "verax.jax", "-m", "pytest", *workers)
    assert "PytestAssertRewriteWarning" not in printed
    assert "E       assert 2 == 3" in printed
    assert "1 failed, 1 passed" in printed


@pytest.mark.slow
def test_without_hypothesis_the_plugin_says_what_to_install(
    python: Path, tmp_path: Path
) -> None:
    folder = project(tmp_path, ELSEWHERE)
    printed = run(python, folder, "-m", "pytest", "-p", "verax.verify.plugin")
    assert "pip install 'verax[verify]'" in printed
    assert not printed.endswith("status 0")
