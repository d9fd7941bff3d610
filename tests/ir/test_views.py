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
        if self.open[-1:] != ["style"]:
            self.text += data


def test_html_is_the_text_with_lines_as_tips() -> None:
    actual = Text()
    actual.feed(PROGRAM._repr_html_())
    assert actual.open == []
    assert actual.text == str(PROGRAM)
    assert ir.html(PROGRAM) == PROGRAM.jaxpr._repr_html_() == PROGRAM._repr_html_()
    assert len(actual.tips) == len(PROGRAM.eqns)
    line = f.__code__.co_firstlineno + 1
    assert any(tip.endswith(f"test_views.py:{line}") for tip in actual.tips)


def test_html_escapes_what_users_write() -> None:
    def bold(x: Any) -> Any:
        return x + 1

    bold.__name__ = "<b>&"
    program = verax.make_jaxpr(verax.jit(bold))(1.0)
    assert "<b>&" in str(program)
    actual = Text()
    actual.feed(ir.html(program))
    assert actual.text == str(program)


def programs(jaxpr: ir.Jaxpr) -> list[ir.Jaxpr]:
    """A program and all that are inside it."""
    inner = [body for eqn in jaxpr.eqns for body in eqn.params.subjaxprs()]
    return [jaxpr, *[each for body in inner for each in programs(body)]]


def boxes(root: ElementTree.Element) -> list[ElementTree.Element]:
    return [
        group for group in root.iter(f"{SVG}g") if group.find(f"{SVG}rect") is not None
    ]


def labels(root: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in root.iter(f"{SVG}text")]


def test_svg_has_a_box_per_equation_and_a_line_per_use() -> None:
    root = ElementTree.fromstring(ir.svg(PROGRAM))
    actual = programs(PROGRAM.jaxpr)
    assert len(actual) == 3
    ends = [len((*p.constvars, *p.invars, *p.outvars)) for p in actual]
    equations = sum(len(p.eqns) for p in actual)
    assert len(boxes(root)) == sum(ends) + equations
    used = [a for p in actual for e in p.eqns for a in dict.fromkeys(e.invars)]
    outs = [a for p in actual for a in p.outvars]
    reads = [a for a in (*used, *outs) if isinstance(a, ir.Var)]
    assert len(list(root.iter(f"{SVG}path"))) == len(reads)
    titles = [box.findtext(f"{SVG}title") or "" for box in boxes(root)]
    assert any("test_views.py:" in title for title in titles)
    width = float(root.attrib["width"])
    for rect in root.iter(f"{SVG}rect"):
        if "x" in rect.attrib:
            assert float(rect.attrib["x"]) + float(rect.attrib["width"]) <= width


def looped(x: Any) -> Any:
    def step(c: Any, y: Any) -> Any:
        return verax.jit(lambda a: vnp.tanh(a) * y)(c), y

    return lax.while_loop(lambda x: x < 9, lambda x: lax.scan(step, x, TABLE)[0], x)


def test_svg_draws_the_programs_inside_with_the_names_of_their_fields() -> None:
    root = ElementTree.fromstring(ir.svg(verax.make_jaxpr(looped)(1.0)))
    words = labels(root)
    for name in ("cond_jaxpr", "body_jaxpr", "jaxpr"):
        assert name in words
    assert any(word.startswith("while") for word in words)
    assert any(word.startswith("jit <lambda>") for word in words)
    heads = [str(box.findtext(f"{SVG}text")).split(" ")[0] for box in boxes(root)]
    tanh = boxes(root)[heads.index("tanh")]
    around = [b for b in boxes(root) if tanh in list(b.iter())]
    heads = [str(box.findtext(f"{SVG}text")).split(" ")[0] for box in around]
    assert heads == ["while", "scan", "jit", "tanh"]


@verax.custom_jvp
def bent(x: Any) -> Any:
    return vnp.sin(x)


bent.defjvp(lambda primals, tangents: (bent(*primals), 2 * tangents[0]))


def test_svg_opens_rules_and_branches() -> None:
    def branches(x: Any) -> Any:
        return lax.switch(1, [bent, vnp.cos, vnp.tan], x)

    words = labels(ElementTree.fromstring(ir.svg(verax.make_jaxpr(bent)(1.0))))
    assert any(word.startswith("sin →") for word in words)
    index = verax.make_jaxpr(lambda i, x: lax.switch(i, [vnp.cos, vnp.tan], x))
    words = labels(ElementTree.fromstring(ir.svg(index(0, 1.0))))
    assert {"branches 0", "branches 1"} <= set(words)


def test_svg_opens_as_many_levels_as_fit() -> None:
    def long(x: Any) -> Any:
        for _ in range(300):
            x = x + 1
        return x

    both = verax.make_jaxpr(lambda x: verax.jit(long)(verax.jit(vnp.sin)(x)))
    words = labels(ElementTree.fromstring(ir.svg(both(1.0))))
    assert sum(word.startswith("add") for word in words) == 300
    twice = verax.make_jaxpr(lambda x: verax.jit(long)(verax.jit(long)(x)))
    words = labels(ElementTree.fromstring(ir.svg(twice(1.0))))
    shut = [word for word in words if "(300 equations inside)" in word]
    assert len(shut) == 2
    assert not any(word.startswith("add") for word in words)


def test_views_know_dark_pages_and_print_in_light() -> None:
    for text in (ir.svg(PROGRAM), ir.html(PROGRAM)):
        light, _, dark = text.partition(
            "@media screen{@media (prefers-color-scheme:dark)"
        )
        assert "--vx-type:#0d6780" in light
        assert "--vx-type:#6fc3dc" in dark
        assert '[data-jp-theme-light="false"]' in dark
        assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


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


@pytest.mark.slow
def test_command_runs_as_a_module(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "verax", saved(tmp_path / "a.jaxpr")],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(verax.__file__).parents[1])},
    )
    assert done.stdout == f"{PROGRAM}\n"
