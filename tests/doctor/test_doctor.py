"""`python -m verax doctor`: it always reports, and says what is wrong."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from verax.__main__ import main
from verax.api.config.config import option_block
from verax.doctor import command, devices, surroundings, versions
from verax.doctor.command import examined, findings
from verax.doctor.devices import asked, device_findings
from verax.doctor.findings import Finding, Report, Section, masked
from verax.doctor.surroundings import (
    OTHERS,
    cache_findings,
    quota_of,
    thread_findings,
    variable_findings,
)
from verax.doctor.versions import (
    Requirement,
    held,
    plugin_findings,
    requirements,
)

SOURCE = Path(__file__).parents[2] / "src"


def problems(lines: Iterator[Finding] | Sequence[Finding]) -> list[str]:
    return [line.name for line in lines if line.level == "problem"]


@pytest.mark.slow
def test_the_command_reports_and_names_no_path_but_that_of_the_cache() -> None:
    environment = {
        **os.environ,
        "HOME": "/ada/home",
        "XDG_CACHE_HOME": "",
        "VERAX_ENABLE_COMPILATION_CACHE": "1",
        "VERAX_COMPILATION_CACHE_DIR": "auto",
        "XLA_FLAGS": "--xla_dump_hlo_as_text",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "verax", "doctor", "--json"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr
    report = json.loads(done.stdout)
    assert (report["format"], report["version"]) == ("verax-doctor", 1)
    assert report["status"] == done.returncode
    sections = report["sections"]
    by_name = {x["name"]: x for lines in sections.values() for x in lines}
    assert by_name["jaxlib"]["value"] == importlib.metadata.version("jaxlib")
    assert by_name["a program"]["value"] == "runs"
    assert by_name["XLA_FLAGS"]["value"] == "--xla_dump_hlo_as_text"
    others = re.findall(r"(?<![\w<])/\w[^\s\"]*", done.stdout)
    assert [x for x in others if not x.startswith("/ada/home")] == []
    assert str(SOURCE) not in done.stdout


def test_the_exit_status_is_one_where_there_are_problems(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checks = (("system", lambda: [Finding("x", "1")]),)
    monkeypatch.setattr(command, "CHECKS", checks)
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out == "system\n  x   1\n\n0 problems, 0 notes\n"
    wrong = (*checks, ("disk", lambda: [Finding("y", "0", "problem", "buy one")]))
    monkeypatch.setattr(command, "CHECKS", wrong)
    assert main(["doctor", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["sections"]["disk"] == [
        {"name": "y", "value": "0", "level": "problem", "advice": "buy one"}
    ]


def test_a_check_that_fails_is_a_problem_and_keeps_what_it_had() -> None:
    def broken() -> Iterator[Finding]:
        yield Finding("first", "1")
        raise OSError("/ada/home/secret is gone")

    kept, failed = findings(broken)
    assert kept == Finding("first", "1")
    assert (failed.level, failed.advice) == ("problem", "OSError: <path> is gone")
    assert examined((("nothing", lambda: ()),)) == Report(())


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a/b 1/2 x.y/z", "a/b 1/2 x.y/z"),
        ("/home/ada/x.py:3: no", "<path>:3: no"),
        ("file:///home/ada/x", "file:<path>"),
        ("at ~/x, '/a b'", "at <path>, '<path> b'"),
        ("--flag=/tmp/x,/tmp/y", "--flag=<path>,<path>"),
        (r"D:\ada\x.py", "<path>"),
        ("https://example.org/ada?q", "https:<path>"),
    ],
)
def test_paths_are_taken_out(text: str, clean: str) -> None:
    assert masked(text) == clean


@pytest.mark.parametrize(
    ("name", "version", "level"),
    [
        ("jaxlib", "0.11.1", "problem"),
        ("jaxlib", "0.11.2", "fine"),
        ("jaxlib", "0.12.9", "fine"),
        ("jaxlib", "0.13", "problem"),
        ("jaxlib", "0.13.0", "problem"),
        ("jaxlib", "", "problem"),
        ("numpy", "1.26.4", "problem"),
    ],
)
def test_packages_are_held_to_what_the_installation_asks(
    name: str, version: str, level: str
) -> None:
    (needed,) = [r for r in requirements() if r.name == name]
    assert held(needed, version).level == level


def test_requirements_are_those_of_the_project_without_extras() -> None:
    names = {needed.name.replace("-", "_") for needed in requirements()}
    assert {"attrs", "jaxlib", "numpy", "scipy"} <= names
    assert not names & {"jax", "mypy", "hypothesis", "rich"}


def test_a_plugin_of_another_version_is_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed = {"jaxlib": "0.12.0.1", "jax-cuda13-pjrt": "0.12.0.1"}
    monkeypatch.setattr(versions, "version_of", lambda name: installed.get(name, ""))
    assert problems(plugin_findings()) == []
    installed["jax-cuda13-plugin"] = "0.11.2"
    assert problems(plugin_findings()) == ["jax-cuda13-plugin"]
    *_, last = plugin_findings()
    assert "'jax-cuda13-plugin[with-cuda]==0.12.0.1'" in last.advice


def test_verax_without_metadata_is_run_from_its_sources(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def absent(name: str) -> Any:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    monkeypatch.setattr(importlib.metadata, "requires", absent)
    (line,) = versions.package_findings()
    assert line.value.endswith("run from its sources")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import os; os.abort()", "ended by SIGABRT: it said nothing"),
        ("raise ValueError('/ada/x')", "with status 1: .*ValueError: <path>"),
        ("import time; time.sleep(60)", "did not start within 1 s"),
        ("pass", "with status 0: it said nothing"),
    ],
)
def test_whatever_becomes_of_the_devices_is_a_finding(
    program: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = 1 if "sleep" in program else 60
    assert re.search(words, str(asked(program, seconds)), re.DOTALL)
    monkeypatch.setattr(devices, "PROGRAM", program)
    assert problems(device_findings(seconds)) == ["start"]


def test_devices_that_compute_something_else_are_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = {"kinds": ["a", "b", "a"], "version": "", "platform": "x", "total": 511.0}
    monkeypatch.setattr(devices, "asked", lambda program, seconds: said)
    result = list(device_findings())
    assert result[0].value == "x: 2 x a, 1 x b"
    assert problems(result) == ["a program"]


def test_a_gpu_that_is_not_used_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "gpu_files", lambda: ["/dev/nvidia0"])
    assert [x.level for x in devices.gpu_findings("cpu")] == ["note"]
    assert list(devices.gpu_findings("cuda")) == []


def test_variables_that_nothing_reads_are_a_problem() -> None:
    environment = {
        "VERAX_ENABLE_X64": "1",
        "VERAX_PLATFORM": "cpu",
        "JAX_ANYTHING": "1",
        "HOME": "/ada",
        "VERAX_COORDINATOR_ADDRESS": "ada.example.org:1",
    }
    result = {x.name: x for x in variable_findings(environment)}
    assert problems(list(result.values())) == ["VERAX_PLATFORM"]
    assert "VERAX_PLATFORMS" in result["VERAX_PLATFORM"].advice
    assert result["VERAX_COORDINATOR_ADDRESS"].value == "(set)"
    assert "HOME" not in result


def test_every_variable_of_the_sources_is_known() -> None:
    texts = [path.read_text() for path in SOURCE.rglob("*.py")]
    named = {x for text in texts for x in re.findall(r'"(VERAX_[A-Z0-9_]+)"', text)}
    lines = variable_findings(dict.fromkeys(named, "1"))
    assert [x for x in problems(lines) if x != "VERAX_ENABLE_X46"] == []
    assert named >= OTHERS


def test_two_names_of_one_thing_are_noted() -> None:
    environment = {"VERAX_PLATFORMS": "cpu", "JAX_PLATFORMS": "cuda"}
    *_, last = variable_findings(environment)
    assert (last.name, last.level) == ("JAX_PLATFORMS", "note")


def test_pools_of_threads_that_differ_are_a_problem() -> None:
    same = {"OMP_NUM_THREADS": "2,1", "OPENBLAS_NUM_THREADS": "2", "NPROC": "1"}
    assert problems(thread_findings(same)) == []
    other = {**same, "OPENBLAS_NUM_THREADS": "8"}
    assert problems(thread_findings(other)) == ["pools"]
    assert problems(thread_findings({"PJRT_NPROC": "0"})) == ["PJRT_NPROC"]
    *_, many = thread_findings({"NPROC": "100000"})
    assert many.level == "note"


def test_a_container_with_fewer_processors_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "cpu.max"
    assert quota_of(file) is None
    file.write_text("max 100000\n")
    assert quota_of(file) is None
    file.write_text("150000 100000\n")
    assert quota_of(file) == 1.5
    monkeypatch.setattr(surroundings, "QUOTA", file)
    monkeypatch.setattr(surroundings, "processors", lambda: 16)
    (line,) = thread_findings({})
    assert line.level == "note"
    assert line.value == "16, of which 1.5 may be busy"
    (line,) = thread_findings({"NPROC": "2"})
    assert line.level == "fine"


def in_folder(path: Path | str) -> list[Finding]:
    values = {"enable_compilation_cache": True, "compilation_cache_dir": str(path)}
    with option_block(values):
        return list(cache_findings())


def test_the_cache_and_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "a.verax").write_bytes(b"x" * (1 << 20))
    (tmp_path / "notes.txt").write_bytes(b"x")
    folder, inside, free = in_folder(tmp_path)
    assert folder.value == str(tmp_path)
    assert inside.value.startswith("1 program, 1.0 MiB")
    assert free.level == "fine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.verax", "notes.txt"]
    later = tmp_path / "not" / "yet"
    assert problems(in_folder(later)) == []
    assert not later.exists()


def test_a_cache_that_cannot_be_written_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    assert problems(in_folder(file)) == ["folder"]
    assert problems(in_folder(file / "below")) == ["folder"]

    def full(**options: object) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    first, *_ = in_folder(tmp_path)
    assert first.level == "problem"
    assert "No space left on device" in first.advice


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="access lists close folders")
def test_a_cache_that_others_may_write_to_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "verax"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (line,) = in_folder("auto")
    assert line.level == "problem"
    assert "chmod 700" in line.advice


def test_a_cache_that_is_off_is_no_problem() -> None:
    with option_block({"enable_compilation_cache": False}):
        assert [x.level for x in cache_findings()] == ["fine"]


def test_requirements_as_the_metadata_writes_them() -> None:
    text = "jaxlib<0.13,>=0.11.2"
    match = versions.REQUIREMENT.match(text)
    assert match
    needed = Requirement(match[1], tuple(versions.BOUND.findall(match[2])))
    assert str(needed) == "<0.13,>=0.11.2"
    assert [needed.admits(v) for v in ("0.11", "0.12.0.dev1", "0.13")] == [0, 1, 0]


def test_lines_of_a_report() -> None:
    section = Section("s", (Finding("a", "1\n2"), Finding("long", "", "note", "do")))
    assert str(Report((section,))).splitlines() == [
        "s",
        "  a      1",
        "         2",
        "* long",
        "         -> do",
        "",
        "0 problems, 1 note",
    ]
