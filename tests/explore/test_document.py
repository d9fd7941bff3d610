"""The document of `verax.explore`: rows, links and lines of known programs."""

import gc
import inspect
import itertools
import subprocess
import sys
import weakref
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.explorer.exploration import Exploration, explore
from verax.explorer.recording import Stage
from verax.explorer.rows.row import EQUATION, HEAD, INPUT, Row


@verax.jit
def layer(w: Any, x: Any) -> Any:
    return vnp.tanh(x @ w)


def loss(ws: Any, x: Any) -> Any:
    for w in ws:
        x = layer(w, x)
    return (x * x).sum()


def looped(x: Any) -> Any:
    def step(carry: Any, y: Any) -> tuple[Any, Any]:
        return vnp.sin(carry) * y, carry

    last, carries = lax.scan(step, x.sum(), x)
    return lax.cond(last > 0.0, vnp.cos, vnp.exp, last) + carries.sum()


def update(w: Any, x: Any) -> Any:
    return w - 0.1 * verax.grad(lambda w: layer(w, x).sum())(w)


def over_rows(x: Any) -> Any:
    return verax.vmap(looped)(x).sum()


def waves(x: Any) -> Any:
    return vnp.sin(x).prod()


WEIGHTS = [np.ones((3, 3), np.float32)] * 2
X = np.ones((2, 3), np.float32)
VECTOR = np.linspace(0.1, 0.9, 4, dtype=np.float32)
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "plain": (loss, (WEIGHTS, X)),
    "jit": (verax.jit(loss), (WEIGHTS, X)),
    "grad": (verax.grad(loss), (WEIGHTS, X)),
    "jit of grad": (verax.jit(verax.value_and_grad(loss)), (WEIGHTS, X)),
    "grad of jit": (verax.grad(verax.jit(loss)), (WEIGHTS, X)),
    "vmap of grad": (
        verax.vmap(verax.grad(loss), (None, 0)),
        (WEIGHTS, np.ones((5, 2, 3), np.float32)),
    ),
    "grad of vmap": (
        verax.grad(over_rows),
        (np.stack([VECTOR, VECTOR]),),
    ),
    "jvp": (lambda x: verax.jvp(looped, (x,), (x,)), (VECTOR,)),
    "hessian": (verax.hessian(waves), (VECTOR,)),
    "loops": (verax.grad(looped), (VECTOR,)),
    "update": (update, (WEIGHTS[0], X)),
    "empty": (lambda: (), ()),
    "identity": (lambda x: x, (X,)),
    "checkpoint": (verax.grad(verax.checkpoint(looped)), (VECTOR,)),
}
EXPLORED: dict[str, Exploration] = {}


def explored(name: str) -> Exploration:
    """The exploration of a program, made once."""
    if name not in EXPLORED:
        fun, args = PROGRAMS[name]
        EXPLORED[name] = explore(fun)(*args)
    return EXPLORED[name]


@pytest.fixture(params=PROGRAMS)
def shown(request: pytest.FixtureRequest) -> Exploration:
    """The exploration of each program in turn."""
    return explored(request.param)


def stages_of(shown: Exploration) -> tuple[Stage, ...]:
    return shown.content.stages


def named(shown: Exploration, name: str) -> Stage:
    """The stage of a name."""
    (stage,) = [s for s in stages_of(shown) if s.name == name]
    return stage


def equations(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.kind == EQUATION]


@pytest.mark.slow
def test_columns_have_one_length_and_indices_are_in_range(
    shown: Exploration,
) -> None:
    document: Any = shown.document
    for number, stage in enumerate(document["stages"]):
        rows, strings = stage["rows"], stage["strings"]
        columns = {k: v for k, v in rows.items() if k not in ("notes", "sizes")}
        (count,) = {len(column) for column in columns.values()}
        for name in ("op", "left", "right", "scope"):
            assert all([0 <= i < len(strings) for i in rows[name]])
        assert all([0 <= i < count for uses in rows["uses"] for i in uses])
        assert all([-1 <= inside < i for i, inside in enumerate(rows["inside"])])
        assert all([-1 <= i < len(document["files"]) for i in rows["file"]])
        assert set(map(int, rows["notes"])) <= set(range(count))
        parent = stage["parent"]
        assert parent == (number - 1 if number else None)
        before = 0 if parent is None else len(document["stages"][parent]["rows"]["op"])
        assert all([0 <= i < before for origins in rows["from"] for i in origins])
        assert all([0 <= i < before for i in stage["gone"]])


def test_nested_rows_are_deeper_than_what_holds_them(shown: Exploration) -> None:
    for stage in stages_of(shown):
        for row in stage.rows:
            if row.inside < 0:
                assert row.depth == 0
            else:
                holder = stage.rows[row.inside]
                assert row.depth > holder.depth
                assert holder.kind in (EQUATION, HEAD)


def test_what_was_traced_from_the_users_lines_has_them(
    shown: Exploration,
) -> None:
    for row in equations(stages_of(shown)[0].rows):
        assert row.source.file == __file__


def test_every_row_of_a_rewrite_leads_back_to_the_trace(
    shown: Exploration,
) -> None:
    stages = stages_of(shown)
    for stage in stages[1:]:
        rewritten = [row for row in equations(stage.rows) if row.source.origin]
        assert all([row.origins for row in rewritten if stage.kind != "hlo"])


def test_lines_are_those_of_the_origins(shown: Exploration) -> None:
    stages = stages_of(shown)
    for before, stage in itertools.pairwise(stages):
        if stage.kind != "jaxpr":
            continue
        for row in equations(stage.rows):
            lines = {before.rows[i].source.line for i in row.origins}
            assert not lines or row.source.line in lines


def test_the_stages_of_a_gradient() -> None:
    actual = explored("grad")
    names = [stage.name for stage in stages_of(actual)]
    assert names == [
        "trace",
        "linearize",
        "transpose",
        "join",
        "dce",
        "stablehlo",
        "hlo",
    ]


def test_titles_name_the_functions() -> None:
    titles = [stage.title for stage in stages_of(explored("grad"))]
    assert titles[:3] == [
        "trace of loss",
        "loss, forward; linear part of loss",
        "transpose of loss",
    ]
    assert titles[3] == "loss, with what was made inside it"


def test_calls_of_one_function_are_told_apart() -> None:
    stages = stages_of(explored("grad"))
    for stage in stages[:4]:
        calls = [i for i, row in enumerate(stage.rows) if row.op == "jit"]
        for call in calls:
            inner = [
                row
                for row in equations(stage.rows)
                if row.inside >= 0 and stage.rows[row.inside].inside == call
            ]
            assert len(inner) >= 2
            if stage.parent is None:
                continue
            before = stages[stage.parent]
            (origin,) = stage.rows[call].origins
            for row in inner:
                assert row.origins
                for i in row.origins:
                    head = before.rows[i].inside
                    assert before.rows[head].inside == origin


def test_a_row_of_the_gradient_leads_to_the_line() -> None:
    stages = stages_of(explored("grad"))
    (mul,) = [row for row in equations(stages[0].rows) if row.op == "mul"]
    lines, first = inspect.getsourcelines(loss)
    (line,) = [i for i, text in enumerate(lines) if "x * x" in text]
    assert mul.source.line == first + line
    multiplied = [i for i, row in enumerate(stages[0].rows) if row is mul]
    made = [row for row in stages[1].rows if row.origins == multiplied]
    origins = [row.source.origin for row in made]
    assert len(made) >= 2
    assert set(origins) == {"jvp"}


def test_shared_functions_of_a_module_come_from_every_call() -> None:
    actual = explored("plain")
    module, before = named(actual, "stablehlo"), stages_of(actual)[-3]
    (tanh,) = [row for row in module.rows if row.op == "stablehlo.tanh"]
    origins = [before.rows[i] for i in tanh.origins]
    assert [row.op for row in origins] == ["tanh", "tanh"]


def test_a_fusion_comes_from_all_that_it_computes() -> None:
    actual = explore(lambda x: vnp.sin(x) * 2.0 + vnp.cos(x))(np.ones(8, np.float32))
    module, compiled = named(actual, "stablehlo"), named(actual, "hlo")
    (fusion,) = [row for row in compiled.rows if row.op == "fusion"]
    ops = {module.rows[i].op.partition(".")[2] for i in fusion.origins}
    assert {"sine", "cosine", "multiply", "add"} <= ops


def test_exploring_changes_no_later_result_and_keeps_no_trace() -> None:
    count = 0

    def counted(x: Any) -> Any:
        nonlocal count
        count += 1
        return vnp.sin(x) + 1.0

    fun = verax.jit(counted)
    before = fun(1.0)
    assert count == 1
    text = fun.lower(1.0).as_text()
    explore(fun)(1.0)
    assert count == 2  # it was traced once more, for itself
    assert fun(1.0) == before
    assert fun.lower(1.0).as_text() == text
    assert fun.explain(1.0).hit
    assert count == 2


def test_equal_programs_have_one_hash_whether_explored_or_not() -> None:
    fun, args = PROGRAMS["grad"]
    before = verax.make_jaxpr(fun)(*args)
    explored("grad")
    after = verax.make_jaxpr(fun)(*args)
    assert before.jaxpr == after.jaxpr
    assert hash(before.jaxpr) == hash(after.jaxpr)
    assert all([type(eqn.source).__name__ == "Source" for eqn in after.eqns])


def test_types_of_arguments_are_enough() -> None:
    struct = verax.ShapeDtypeStruct((8,), np.float32)
    actual = explore(verax.grad(waves))(struct)
    assert named(actual, "hlo").rows


def test_without_compile_there_is_no_hlo() -> None:
    actual = explore(loss, compile=False)(WEIGHTS, X)
    assert [stage.kind for stage in stages_of(actual)][-1] == "stablehlo"


def test_references() -> None:
    total = verax.new_ref(np.zeros(3, np.float32))

    def add(x: Any) -> Any:
        total[...] += vnp.sin(x)
        return total[...] * 2.0

    actual = explore(add)(np.ones(3, np.float32))
    assert "sin" in {row.op for row in stages_of(actual)[0].rows}
    assert named(actual, "hlo").rows


def test_captured_arrays_are_rows_with_their_sizes() -> None:
    table = np.ones((1000, 250), np.float32)
    actual = explore(lambda x: (vnp.asarray(table) @ x).sum(), compile=False)(
        np.ones(250, np.float32)
    )
    notes = [row.note for row in stages_of(actual)[0].rows if "captured" in row.note]
    assert notes == ["captured: 1.0 MB"]


def test_the_name_of_the_function_and_the_files() -> None:
    document: Any = explored("grad").document
    assert document["title"] == "loss"
    texts = ["\n".join(file["lines"]) for file in document["files"]]
    assert any(["def loss(" in text for text in texts])
    assert not any(["def looped(" in text for text in texts])


def test_saving(tmp_path: Any) -> None:
    path = tmp_path / "loss.html"
    actual = explore(loss, path=path, compile=False)(WEIGHTS, X)
    assert path.read_text() == actual.html
    assert actual.html.startswith("<!doctype html>")
    assert "srcdoc=" in actual._repr_html_()
    assert "loss: trace" in repr(actual)


def test_arguments_lead_from_the_compiled_program_to_the_trace() -> None:
    def scaled(unused: Any, x: Any, y: Any) -> Any:
        return vnp.sin(x) * y

    stages = stages_of(explore(verax.vmap(scaled))(X, X, 2 * X))
    assert [stage.name for stage in stages] == [
        "trace",
        "vmap",
        "join",
        "stablehlo",
        "hlo",
    ]
    last = [row for row in stages[-1].rows if row.kind == INPUT and row.inside < 0]
    module = [row.origins for row in last]
    assert len(last) == 2
    joined = [stages[3].rows[i].origins for (i,) in module]
    assert [stages[2].rows[i].left for (i,) in joined] == ["b:f32[2,3]", "c:f32[2,3]"]
    mapped = [row for row in stages[1].rows if row.kind == INPUT]
    assert [row.origins for row in mapped] == [[0], [1], [2]]


@pytest.mark.slow
def test_it_is_loaded_when_it_is_used() -> None:
    code = (
        "import sys, verax; verax.jit(verax.grad(lambda x: x * x))(1.0); "
        "verax.rewrites.apply(verax.rewrites.stable()); "
        "print([name for name in sys.modules if 'explorer' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"


def test_opening_a_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    actual = explore(loss, open=True, compile=False)(WEIGHTS, X)
    (uri,) = opened
    path = Path(uri.removeprefix("file://"))
    assert path.read_text() == actual.html
    path.unlink()
    path.parent.rmdir()


def explored_closure() -> tuple[Exploration, Callable[[], object]]:
    """An exploration of a function that closes over an array, and whether it lives."""
    table = vnp.arange(1000.0)

    def shifted(x: Any) -> Any:
        return (x + table).sum()

    actual = explore(verax.grad(shifted))(np.ones(1000, np.float32))
    return actual, weakref.ref(table)


@pytest.mark.usefixtures("few_objects")
def test_an_exploration_keeps_no_array() -> None:
    actual, alive = explored_closure()
    gc.collect()
    assert alive() is None
    assert actual.html


def test_something_else_than_a_function() -> None:
    with pytest.raises(TypeError):
        explore(3)  # type: ignore[arg-type]  # that is the mistake
