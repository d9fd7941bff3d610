"""The metadata of the project says what is so."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import verax

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())[
    "project"
]
SOURCE = ROOT / "src" / "verax"
CLASSIFIERS = PROJECT["classifiers"]
FOR_DEVELOPERS = ("bench", "demo", "dev", "docs")


def text(name: str) -> str:
    return (ROOT / name).read_text()


def test_versions_agree() -> None:
    assert PROJECT["version"] == verax.__version__
    assert f"\nversion: {verax.__version__}\n" in text("CITATION.cff")


def test_pythons_are_those_that_are_promised() -> None:
    versions = [x.rpartition(" ")[2] for x in CLASSIFIERS if ":: Python :: 3." in x]
    assert versions == ["3.12", "3.13", "3.14"]
    assert PROJECT["requires-python"] == f">={versions[0]}"
    assert text(".python-version").strip() == versions[0]


def test_license_is_an_expression_and_every_vendored_file_is_in_the_table() -> None:
    assert not [x for x in CLASSIFIERS if x.startswith("License")]  # PEP 639
    files = {path for glob in PROJECT["license-files"] for path in ROOT.glob(glob)}
    assert ROOT / "LICENSE" in files
    table = text("THIRD-PARTY.md")
    vendored = sorted(SOURCE.rglob("vendor/*"))
    assert vendored
    for path in vendored:
        assert f"`{path.relative_to(ROOT)}`" in table
        assert path.suffix != ".txt" or path in files
    for word in re.findall(r"\| (MIT|BSD[\w-]*|ISC) \|", table):
        assert word in PROJECT["license"].split(" AND ")


def test_version_of_what_is_vendored_is_that_of_the_file() -> None:
    (version,) = re.findall(r"pages \| ([\d.]+) \|", text("THIRD-PARTY.md"))
    assert f'="{version}"' in text("src/verax/explorer/assets/vendor/dagre.min.js")


def test_the_package_is_typed() -> None:
    assert (SOURCE / "py.typed").read_bytes() == b""
    assert "Typing :: Typed" in CLASSIFIERS


@pytest.mark.parametrize("extra", PROJECT["optional-dependencies"])
def test_every_extra_is_documented(extra: str) -> None:
    page = text("docs/platforms.md")
    assert f"`{extra}`" in page
    if extra not in FOR_DEVELOPERS:
        pages = [path.read_text() for path in (ROOT / "docs").rglob("*.md")]
        assert any(f"verax[{extra}]" in one for one in pages)


@pytest.mark.parametrize(
    "name", ["SECURITY.md", "CODE_OF_CONDUCT.md", "THIRD-PARTY.md"]
)
def test_pages_of_the_project_are_linked(name: str) -> None:
    assert f"({name})" in text("README.md") + text("CONTRIBUTING.md")


def test_inputs_of_the_page_on_security_are_names_that_exist() -> None:
    names = re.findall(r"`(verax\.[\w.]+?)(?:\(\))?`", text("SECURITY.md"))
    assert len(names) > 4
    for name in names:
        value: object = verax
        for part in name.split(".")[1:]:
            value = getattr(value, part)


def test_templates_of_issues_ask_for_the_doctor() -> None:
    folder = ROOT / ".github" / "ISSUE_TEMPLATE"
    if not folder.exists():  # a source distribution has none
        assert not (ROOT / ".git").exists()
        return
    for name in ("bug.md", "slow.md"):
        assert "python -m verax doctor" in (folder / name).read_text()
