"""The wheel and the source distribution, built twice, and what is in them."""

import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from email.parser import Parser
from pathlib import Path

import pytest

from property_tests.levels import nightly

pytest.importorskip("hatchling", reason="builds distributions; make setup brings it")

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "verax"
UNBUILT = re.compile(r"^(\.ci|\.github|\.gitignore)(/|$)")
"""What of the checkout a source distribution leaves out."""


def build(root: Path, kind: str, out: Path) -> Path:
    """The file that the build backend makes, without isolation and network."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(out)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    (path,) = out.iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a source distribution."""
    path = build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))
    with tarfile.open(path) as archive:
        archive.extractall(path.parent, filter="data")
    return path.parent / path.name.removesuffix(".tar.gz")


def sources() -> list[str]:
    """What is in the package, but for what Python compiled."""
    return sorted(
        path.relative_to(SOURCE.parent).as_posix()
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )


@pytest.mark.slow
def test_the_wheel_is_the_same_bytes_twice(wheel: Path, tmp_path: Path) -> None:
    assert build(ROOT, "wheel", tmp_path).read_bytes() == wheel.read_bytes()


def test_the_wheel_has_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert archive.testzip() is None
    assert len(names) == len(set(names))
    inside = sorted(name for name in names if name.startswith("verax/"))
    assert inside == sources()
    rest = {name for name in names if not name.startswith("verax/")}
    (home,) = {name.split("/")[0] for name in rest}
    licenses = f"{home}/licenses"
    assert rest == {
        *[f"{home}/{name}" for name in ("METADATA", "RECORD", "WHEEL")],
        f"{licenses}/LICENSE",
        f"{licenses}/THIRD-PARTY.md",
        f"{licenses}/src/verax/explorer/assets/vendor/dagre.LICENSE.txt",
        *([f"{home}/entry_points.txt"] if f"{home}/entry_points.txt" in rest else []),
    }


def test_the_wheel_is_for_every_python_and_says_what_it_is(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [x for x in archive.namelist() if x.endswith("/METADATA")]
        head = Parser().parsestr(archive.read(name).decode())
    assert head["License-Expression"] == "Apache-2.0 AND MIT"
    assert head["Requires-Python"] == ">=3.12"
    assert len(head.get_all("License-File", [])) == 3
    assert head["Description-Content-Type"] == "text/markdown"
    assert head["License"] is None
    assert str(ROOT) not in str(head)


@pytest.mark.slow
def test_a_source_distribution_has_what_its_tests_need(unpacked: Path) -> None:
    def files(root: Path, folder: str) -> set[str]:
        return {
            path.relative_to(root).as_posix()
            for path in (root / folder).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }

    for folder in ("src", "tests", "property_tests", "typings", "docs"):
        assert files(unpacked, folder) == files(ROOT, folder)
    top = {path.name for path in unpacked.iterdir()}
    tracked = {"Makefile", "README.md", "pyproject.toml", ".mkdocs.yml"}
    assert {*tracked, "LICENSE", "CITATION.cff", ".python-version"} <= top
    assert {path.name for path in ROOT.glob("*.md")} <= top
    assert not [name for name in top if UNBUILT.match(name) and name != ".gitignore"]


@pytest.mark.slow
def test_a_source_distribution_makes_the_same_wheel(
    unpacked: Path, wheel: Path, tmp_path: Path
) -> None:
    assert build(unpacked, "wheel", tmp_path).read_bytes() == wheel.read_bytes()


LOOKING = ("tests/docs/test_site.py", "tests/packaging", "tests/formats")
LONGER = ("test_architecture.py", "test_facades.py", "test_surface.py")


@pytest.mark.slow
@pytest.mark.parametrize(
    "looking", [LOOKING, nightly([f"tests/{name}" for name in LONGER])]
)
def test_a_source_distribution_passes_its_tests(
    unpacked: Path, looking: Sequence[str]
) -> None:
    """Those that look at the checkout, where something would be missing."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", *looking]
    deselected = ["--deselect", f"tests/packaging/{Path(__file__).name}"]
    done = subprocess.run(
        [*command, "-m", "not slow", *deselected],
        cwd=unpacked,
        env=None,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
