"""Programs to look at: HTML, pictures, and the command line."""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import ir, lax
from verax.__main__ import main

TABLE = np.arange(3, dtype=np.float32)


def f(x: Any) -> Any:
    y = vnp.sin(x) * TABLE + vnp.exp(0.0) * (vnp.cos(x) < 1)
    return lax.cond(x > 0, lambda: y, lambda: -y), 2.0


PROGRAM = verax.make_jaxpr(f)(1.0)
SVG = "{http://www.w3.org/2000/svg}"


class Text(HTMLParser):
    """The text of some HTML, the tips, and whether every element is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.tips: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tips += [value for name, value in attrs if name == "title" and value]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_is_the_text_with_lines_as_tips() -> None:
    found = Text()
    found.feed(PROGRAM._repr_html_())
    assert found.open == []
    assert found.text == str(PROGRAM)
    assert ir.html(PROGRAM) == PROGRAM.jaxpr._repr_html_() == PROGRAM._repr_html_()
    assert len(found.tips) == len(PROGRAM.eqns)
    line = f.__code__.co_firstlineno + 1
    assert any(tip.endswith(f"test_views.py:{line}") for tip in found.tips)


def test_html_escapes_what_users_write() -> None:
    def bold(x: Any) -> Any:
        return x + 1

    bold.__name__ = "<b>&"
    program = verax.make_jaxpr(verax.jit(bold))(1.0)
    assert "<b>&" in str(program)
    found = Text()
    found.feed(ir.html(program))
    assert found.text == str(program)


def test_svg_has_a_box_per_equation_and_a_line_per_use() -> None:
    root = ElementTree.fromstring(ir.svg(PROGRAM))
    inputs = len(PROGRAM.jaxpr.constvars) + len(PROGRAM.jaxpr.invars)
    boxes = root.findall(f"{SVG}g")
    assert len(boxes) == inputs + len(PROGRAM.eqns) + len(PROGRAM.out_avals)
    reads = [{a for a in e.invars if isinstance(a, ir.Var)} for e in PROGRAM.eqns]
    outs = [a for a in PROGRAM.jaxpr.outvars if isinstance(a, ir.Var)]
    assert len(root.findall(f"{SVG}path")) == sum(map(len, reads)) + len(outs)
    titles = [box.findtext(f"{SVG}title") or "" for box in boxes]
    assert any("test_views.py:" in title for title in titles)
    width = float(root.attrib["width"])
    for rect in root.iter(f"{SVG}rect"):
        assert float(rect.attrib["x"]) + float(rect.attrib["width"]) <= width


def test_svg_of_nothing_and_of_too_much() -> None:
    ElementTree.fromstring(ir.svg(verax.make_jaxpr(lambda: ())()))

    def long(x: Any) -> Any:
        for _ in range(401):
            x = x + 1
        return x

    with pytest.raises(ValueError, match="a picture of 401 equations"):
        ir.svg(verax.make_jaxpr(long)(1.0))


def saved(path: Path, program: ir.ClosedJaxpr = PROGRAM) -> str:
    path.write_bytes(ir.dumps(program, sources=True))
    return str(path)


def test_command_prints_what_was_saved_in_any_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = saved(tmp_path / "a.jaxpr")
    assert main([name]) == 0
    assert capsys.readouterr().out == f"{PROGRAM}\n"
    text = tmp_path / "a.json"
    text.write_text(ir.to_json(PROGRAM))
    assert main([str(text)]) == 0
    assert capsys.readouterr().out == f"{PROGRAM}\n"
    plain = verax.make_jaxpr(vnp.sin)(1.0)
    text.write_text(str(plain))
    assert main([str(text)]) == 0
    assert capsys.readouterr().out == f"{plain}\n"


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("--html", "<pre"),
        ("--svg", "<svg"),
        ("--json", '"format": "verax-jaxpr"'),
        ("--sources", "# "),
        ("--constants", "12  f32[3]"),
    ],
)
def test_command_shows_it_in_other_ways(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, expected: str
) -> None:
    assert main([saved(tmp_path / "a.jaxpr"), option]) == 0
    assert expected in capsys.readouterr().out


def test_command_transforms_and_compares(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = saved(tmp_path / "a.jaxpr")
    assert main([name, "--fold", "--dce", "--inline", "--cse"]) == 0
    assert "exp" not in capsys.readouterr().out
    left = saved(tmp_path / "l.jaxpr", verax.make_jaxpr(vnp.sin)(1.0))
    right = saved(tmp_path / "r.jaxpr", verax.make_jaxpr(vnp.cos)(1.0))
    assert main([left, "--diff", left]) == 0
    assert capsys.readouterr().out == "equal\n"
    assert main([left, "--diff", right]) == 1
    assert "the primitives are sin and cos" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"verax-jaxpr\n123", "not written by verax.ir.dumps"),
        (b"\xff\xfe", "utf-8"),
        (b"hello", "not a saved program"),
        (b"{ lambda ; a:f32[]. let b:f32[] = sinn a in (b,) }", "known primitive"),
        (b"{ lambda ; a:f32[]. let b:f32[2] = sin a in (b,) }", "the type rule gives"),
    ],
)
def test_command_says_what_is_wrong(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    content: bytes,
    complaint: str,
) -> None:
    path = tmp_path / "wrong.jaxpr"
    path.write_bytes(content)
    assert main([str(path)]) == 2
    assert complaint in capsys.readouterr().err
    assert main([str(tmp_path / "absent")]) == 2


def test_command_runs_as_a_module(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "verax", saved(tmp_path / "a.jaxpr")],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(verax.__file__).parents[1])},
    )
    assert done.stdout == f"{PROGRAM}\n"
