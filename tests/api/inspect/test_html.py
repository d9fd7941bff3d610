"""What notebooks show: tables that are well-formed, escaped, and never fail."""

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from attrs import evolve

import verax
import verax.numpy as vnp
from verax import lax, random
from verax.backend.placement.mesh import AbsentDevice
from verax.debug import find_infs, find_nans
from verax.ir.text.html import LINES, ROWS, Cell, cut, folded, report, table
from verax.sharding import (
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec as P,
    SingleDeviceSharding,
)
from verax.verify import Report, check_primitive

CPU = verax.devices()[0]


def root(value: Any) -> ElementTree.Element:
    """What a notebook shows of a value, parsed."""
    text = value if isinstance(value, str) else value._repr_html_()
    assert "<script" not in text
    return ElementTree.fromstring(f"<body>{text}</body>")


def words(value: Any) -> list[str]:
    """The texts of captions, cells and the rest, in order."""
    (sheet, block) = root(value)
    assert sheet.tag == "style"
    return [text for text in map(str.strip, block.itertext()) if text]


def rows(value: Any) -> list[list[str]]:
    """The rows of all tables."""
    return [["".join(x.itertext()) for x in row] for row in root(value).iter("tr")]


def absent(*shape: int) -> np.ndarray:
    """Devices that need not be there."""
    count = int(np.prod(shape))
    return np.array([AbsentDevice(i) for i in range(count)], object).reshape(shape)


def test_texts_are_escaped_and_cut() -> None:
    text = report(
        table("<a> & b", ("<x>", ""), [("</table>", Cell('"', 9, '" onclick="'))]),
        folded("<s>", "</pre>\0\x1b\ud800"),
    )
    assert words(text) == [
        "<a> & b",
        "<x>",
        "</table>",
        '"',
        "<s>",
        "</pre>\ufffd\ufffd\ufffd",
    ]
    (cell,) = [x for x in root(text).iter("td") if "title" in x.attrib]
    assert cell.attrib == {
        "style": "background:hsl(9 70% 50%/.25)",
        "title": '" onclick="',
    }
    long = folded("long", "\n".join(["line"] * (LINES + 7)), "f()")
    (shown,) = root(long).iter("pre")
    assert (shown.text or "").count("line\n") == LINES
    assert (shown.text or "").endswith("… 7 more lines: f()")
    assert cut("x" * 10_000, 1)[0].endswith("x…")
    assert words(report(table("t", (), [("a", "b")] * (ROWS + 3))))[-1] == "and 3 more"


def test_tables_have_captions_and_heads() -> None:
    mesh = Mesh(absent(2, 2), ("x", "y"))
    for each in root(mesh).iter("table"):
        assert each[0].tag == "caption"
        (first, *others) = each.iter("tr")
        assert {x.get("scope") for x in first if x.tag == "th"} == {"col"}
        assert all(row[0].get("scope") == "row" for row in others)


def sqrt_of(x: Any) -> Any:
    return vnp.where(x > 0, vnp.sqrt(x), 0.0)  # <here>


def test_finding_shows_the_equation_the_line_and_the_values() -> None:
    finding = find_nans(verax.grad(sqrt_of))(0.0)
    assert finding is not None
    actual = dict(row for row in rows(finding) if len(row) == 2)
    assert actual["made by"] == "mul"
    assert actual["derived by"] == "in the backward pass: transpose(jvp)"
    assert actual["code"] == "return vnp.where(x > 0, vnp.sqrt(x), 0.0)  # <here>"
    assert f"test_html.py:{finding.source.line} (sqrt_of)" in actual["line"]
    assert ["result 0", "~f32[]", "nan"] in rows(finding)


def test_findings_of_inputs_loops_and_infinities() -> None:
    came = find_nans(lambda x: x + 1)(vnp.array(vnp.nan))
    assert ["made by", "no equation"] in rows(came)

    def body(c: Any, y: Any) -> Any:
        return c - 1, vnp.sqrt(c) + y

    inside = find_nans(lambda x: lax.scan(body, x, vnp.arange(5.0)))(2.0)
    assert any("iteration 3 of 5 of scan" in text for text in words(inside))
    infinite = find_infs(lambda x: 1 / x)(vnp.array([1.0, 0.0]))
    assert "infinity in <lambda>" in words(infinite)
    assert any("1 of 2 are infinity, the first at [1]" in x for x in words(infinite))
    assert ["operand 0", "f32[]", "1., a constant"] in rows(infinite)


def test_report_of_laws_is_a_table() -> None:
    holds = check_primitive("sin", laws=["jvp"], cases=3)
    assert ["law", "cases", "verdict", "notes"] in rows(holds)
    assert any(row[0] == "jvp" and row[2] == "holds" for row in rows(holds))
    wrong = evolve(holds["jvp"], verdict="broken", evidence="1 < 2\nall of it")
    actual = Report("<mine>", (wrong,), (("jvp", "from <x>"),))
    assert any(row[2:] == ["broken", "1 < 2"] for row in rows(actual))
    assert words(actual)[0].startswith("<mine>: 1 broken")
    assert words(actual)[-1] == "1 < 2\nall of it"
    assert words(Report("nothing", ()))[0] == "nothing: no law broken"


def loss(params: Any, x: Any) -> Any:
    return {"y": params["<w>"] @ x, "z": (2 * x,)}


LOWERED = verax.jit(loss).lower({"<w>": vnp.ones((3, 4))}, vnp.ones(4))


def test_stages_show_types_sizes_and_the_text() -> None:
    compiled = LOWERED.compile()
    loaded = verax.stages.deserialize(compiled.serialize())
    for stage, title in (
        (LOWERED, "Lowered"),
        (compiled, "Compiled"),
        (loaded, "Compiled"),
    ):
        actual = rows(stage)
        assert f"{title} function loss" in words(stage)
        assert ["params['<w>']", "f32[3,4]"] in actual
        assert ["result['z'][0]", "f32[4]"] in actual
        assert any(row[0] == "flops, estimated" for row in actual)
        assert any(row[0] == "equations" for row in actual) == (stage is not loaded)
        (text,) = root(stage).iter("pre")
        assert "".join(text.itertext()).splitlines() == stage.as_text().splitlines()
    assert ["results", "44 bytes"] in rows(compiled) or CPU.platform != "cpu"


def test_stages_of_many_arguments_of_none_and_of_references() -> None:
    many = verax.jit(lambda xs: [vnp.sin(x) for x in xs], donate_argnums=0)
    lowered = many.lower([1.0] * 100)
    assert ["xs[0]", "~f32[], donated"] in rows(lowered)
    assert words(lowered).count("and 36 more") == 2
    long = verax.jit(lambda xs: [vnp.sin(x) * 2 for x in xs]).lower([1.0] * 200)
    (text,) = root(long).iter("pre")
    assert (text.text or "").endswith(" more lines: as_text()")
    nothing = verax.jit(lambda: ()).lower()
    assert "Lowered function <lambda>" in words(nothing)
    root(nothing.compile())

    def step(ref: Any, x: Any) -> None:
        ref[...] = ref[...] + x

    written = verax.jit(step).lower(verax.ref.new_ref(vnp.zeros(3)), 1.0)
    for stage in (written, written.compile()):
        assert ["ref", "Ref{f32[3]}"] in rows(stage)


def test_stages_whose_costs_are_not_known() -> None:
    (size,) = verax.export.symbolic_shape("n")
    struct = verax.ShapeDtypeStruct((size,), np.float32)
    assert ["x", "f32[n]"] in rows(verax.jit(lambda x: x + 1).lower(struct))


@pytest.mark.parametrize(
    ("shape", "names", "expected"),
    [
        ((3,), "x", [["", "x = 0", "x = 1", "x = 2"], ["device", "absent 0"]]),
        ((2, 2), "xy", [["", "y = 0", "y = 1"], ["x = 1", "absent 2", "absent 3"]]),
        ((2, 2, 1), "xyz", [["", "z = 0"], ["x = 1, y = 0", "absent 2"]]),
    ],
)
def test_devices_of_a_mesh_are_one_table(
    shape: tuple[int, ...], names: str, expected: list[list[str]]
) -> None:
    actual = rows(Mesh(absent(*shape), tuple(names)))
    assert ["x", str(shape[0]), "Auto"] in actual
    for row in expected:
        assert row in [other[: len(row)] for other in actual]


@pytest.mark.parametrize(
    ("shape", "cells", "left"),
    [((200,), 64, 136), ((10, 20), 60, 140), ((8, 8), 64, 0), ((3, 5, 7), 63, 42)],
)
def test_so_many_devices_are_shown(
    shape: tuple[int, ...], cells: int, left: int
) -> None:
    mesh = Mesh(absent(*shape), tuple("xyz"[: len(shape)]))
    actual = words(mesh)
    assert sum(text.startswith("absent ") for text in actual) == cells
    assert (f"and {left} more devices" in actual) == (left > 0)


@pytest.mark.parametrize(
    ("mesh", "expected"),
    [
        (Mesh(None, ()), "Mesh of 0 devices"),
        (Mesh(np.empty((0, 2), object), ("<a>", "b")), "<a>"),
        (Mesh(CPU, ()), f"{CPU.platform.upper()} {CPU.id}"),
        (AbstractMesh((), ()), "AbstractMesh for 0 devices"),
        (AbstractMesh((0,), ("<a>",)), "<a>"),
        (AbstractMesh((1 << 20, 4), ("x", "y")), "AbstractMesh for 4,194,304 devices"),
        (verax.make_mesh((1,), "x").abstract_mesh, "Explicit"),
    ],
)
def test_meshes_of_few_or_no_devices(mesh: Any, expected: str) -> None:
    assert expected in words(mesh)
    assert expected in words(NamedSharding(mesh, P())) or "Abstract" in expected


def hues(value: Any) -> list[str | None]:
    """The grounds of the cells that name devices."""
    cells = [x for x in root(value).iter("td") if (x.text or "").startswith("absent")]
    return [cell.get("style") for cell in cells]


def test_devices_of_one_part_have_one_colour() -> None:
    mesh = Mesh(absent(2, 3), ("x", "y"), (AxisType.Explicit, AxisType.Auto))
    assert len(set(hues(mesh))) == 6
    split = NamedSharding(mesh, P("x", None))
    first, *_ = colours = hues(split)
    assert len(set(colours)) == 2
    assert colours[:3] == [first] * 3
    assert len(set(hues(NamedSharding(mesh, P(("x", "y")))))) == 6
    assert len(set(hues(NamedSharding(mesh, P())))) == 1
    terms = NamedSharding(mesh, P(unreduced={"x"}))
    assert len(set(hues(terms))) == 2


def test_shardings_show_the_spec() -> None:
    kinds = (AxisType.Explicit, AxisType.Explicit, AxisType.Auto)
    mesh = AbstractMesh((4, 2, 2), ("x", "y", "z"), kinds)
    spec = P(("x", "y"), None, P.UNCONSTRAINED)
    actual = rows(NamedSharding(mesh, spec))
    assert ["0", "x, y", "8"] in actual
    assert ["1", "not split", "1"] in actual
    assert ["2", "left to the compiler", ""] in actual
    assert ["copies", "z"] in actual
    terms = rows(NamedSharding(mesh, P(unreduced={"x"}, reduced={"y"})))
    assert ["unreduced", "x"] in terms
    assert ["reduced", "y"] in terms
    one = SingleDeviceSharding(CPU, memory_kind="pinned_host")
    assert ["memory", "pinned_host"] in rows(one)
    assert ["device", str(CPU)] in rows(one)


def test_keys_show_their_first_words() -> None:
    keys = random.split(random.key(7), (4, 5))
    actual = rows(keys)
    assert ["shape", "(4, 5)"] in actual
    assert ["implementation", "threefry2x32"] in actual
    assert ["and 12 more keys"] in actual
    data = np.asarray(random.key_data(keys))
    assert ["[1, 2]", " ".join(map(str, data[1, 2]))] in actual
    assert ["[1, 3]"] not in [row[:1] for row in actual]


@pytest.mark.parametrize("impl", ["rbg", "philox2x32", "philox4x32"])
def test_keys_of_every_width(impl: str) -> None:
    key = random.key(3, impl=impl)
    data = np.asarray(random.key_data(key))
    assert ["[]", " ".join(map(str, data))] in rows(key)
    assert ["implementation", impl] in rows(key)


def test_keys_that_cannot_be_shown() -> None:
    keys: Any = random.split(random.key(0), 3)
    keys.delete()
    assert ["words", "the array has been deleted"] in rows(keys)
    large = random.split(random.key(0), 1 << 18)
    assert ["words", "not shown: 2,097,152 bytes"] in rows(large)
    assert ["shape", "(0, 2)"] in rows(random.split(random.key(0), (0, 2)))


def test_keys_of_a_generator_of_the_users() -> None:
    own = verax.extend.random.define_prng_impl(
        key_shape=(2,),
        seed=lambda seed: vnp.arange(2, dtype="uint32"),
        split=lambda key, shape: vnp.zeros((*shape, 2), "uint32"),
        random_bits=lambda key, width, shape: vnp.zeros(shape, f"uint{width}"),
        fold_in=lambda key, data: key,
        name="<own>",
        tag="<o>",
    )
    key = random.key(0, impl=own)
    assert ["implementation", "<own>"] in rows(key)
    assert ["[]", "0 1"] in rows(key)


@pytest.mark.parametrize("make", [vnp.ones, random.PRNGKey, np.float32])
def test_ordinary_arrays_are_shown_as_text(make: Callable[[int], Any]) -> None:
    x: Any = vnp.asarray(make(3))
    assert not hasattr(x, "_repr_html_")
    x.delete()
    assert not hasattr(x, "_repr_html_")


def test_a_notebook_shows_them() -> None:
    formatters = pytest.importorskip("IPython.core.formatters")
    display = formatters.DisplayFormatter()
    key: Any = random.key(0)
    assert display.format(key)[0]["text/html"] == key._repr_html_()
    assert list(display.format(vnp.ones(3))[0]) == ["text/plain"]
    assert "text/html" in display.format(Mesh(None, ()))[0]
