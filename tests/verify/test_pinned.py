"""Programs pinned in files: what is the same, what is told of what changed."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from tests.typing.programs import gpt
from verax import lax, nn, random
from verax.ir import parse_closed
from verax.verify import NotPinned, assert_same_program, pinned

ROOT = Path(__file__).parents[2]
pytest_plugins = ["pytester"]

WEIGHTS = {
    "w": [np.ones((4, 8), np.float32), np.ones((8, 2), np.float32)],
    "b": np.zeros(2, np.float32),
}
BATCH = np.ones((16, 4), np.float32)


def mlp(weights: Any, x: Any) -> Any:
    hidden = vnp.tanh(x @ weights["w"][0])
    return vnp.mean((hidden @ weights["w"][1] + weights["b"]) ** 2)


def wider(weights: Any, x: Any) -> Any:
    hidden = vnp.tanh(x @ weights["w"][0])
    hidden = vnp.sin(hidden) * hidden
    return vnp.mean((hidden @ weights["w"][1] + weights["b"]) ** 2)


def walk(x: Any, length: int = 5) -> Any:
    def step(carry: Any, scale: Any) -> Any:
        moved = lax.cond(carry.sum() > 0, lambda c: c * scale, lambda c: c + 1, carry)
        return moved, moved.sum()

    return lax.scan(step, x, vnp.arange(float(length)))


def total(x: Any) -> Any:
    return lax.psum(x, "i") + lax.axis_index("i")


@verax.custom_jvp
def clipped(x: Any) -> Any:
    return vnp.clip(x, 0.0, 1.0)


clipped.defjvp(lambda primals, tangents: (clipped(*primals), tangents[0]))


@verax.custom_vjp
def scaled(x: Any) -> Any:
    return vnp.sin(x)


scaled.defvjp(lambda x: (scaled(x), x), lambda x, ct: (ct * vnp.cos(x),))

TABLE = np.arange(6, dtype=np.float32).reshape(2, 3)
KEY = random.key(7)


def everything(x: Any) -> Any:
    """What might depend on the process: captured values, rules, callbacks, sets."""
    noise = random.normal(KEY, (3,))
    called = verax.pure_callback(np.sin, verax.ShapeDtypeStruct((3,), np.float32), x)
    repeated = verax.vmap(partial(lax.psum, axis_name="i"), axis_name="i")(TABLE @ x)
    return walk(clipped(scaled(x)) + noise + called)[0], repeated, nn.gelu(x)


def text_of(fun: Any, *args: Any, **options: Any) -> str:
    closed = verax.make_jaxpr(fun, **options)(*args)
    return pinned.pinned_of("it", closed).text


def figures(fun: Any, *args: Any, **options: Any) -> dict[str, int]:
    return pinned.figures_of(verax.make_jaxpr(fun, **options)(*args).jaxpr)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "programs" / "it.jaxpr"


def gpt_loss() -> tuple[Any, ...]:
    config = gpt.Config()
    params = gpt.init(config, random.key(0))
    tokens = verax.ShapeDtypeStruct((4, 17), np.int32)
    return lambda p, batch: gpt.loss(p, config, batch)[0], params, tokens


PROGRAMS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "mlp": lambda: (mlp, WEIGHTS, BATCH),
    "grad of mlp": lambda: (verax.grad(mlp), WEIGHTS, BATCH),
    "jitted": lambda: (verax.jit(mlp), WEIGHTS, BATCH),
    "scan": lambda: (walk, vnp.ones(3)),
    "grad of a loop": lambda: (
        verax.grad(lambda x: walk(x)[1].sum()),
        verax.ShapeDtypeStruct((3,), np.float32),
    ),
    "psum": lambda: (verax.vmap(total, axis_name="i"), vnp.ones(4)),
    "everything": lambda: (everything, vnp.ones(3)),
    "jvp of everything": lambda: (partial(verax.jvp, scaled), (1.0,), (2.0,)),
    "keys": lambda: (lambda key: random.split(random.fold_in(key, 3)), KEY),
    "gpt": gpt_loss,
    "grad of gpt": lambda: (verax.grad(gpt_loss()[0]), *gpt_loss()[1:]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_written_is_the_same_again(name: str, file: Path) -> None:
    fun, *args = PROGRAMS[name]()
    assert_same_program(file, fun, *args, update=True)
    written = file.read_text()
    assert_same_program(file, fun, *args)
    assert_same_program(file, fun, *args, exact=False)
    again = pinned.read_pinned(written)
    assert again.text == written
    assert str(ROOT) not in written
    assert " at 0x" not in written
    assert ".py" not in written


@pytest.mark.parametrize("name", ["mlp", "grad of a loop", "psum", "keys"])
def test_text_can_be_parsed(name: str) -> None:
    fun, *args = PROGRAMS[name]()
    closed = verax.make_jaxpr(fun)(*args)
    held = [line.text for line in pinned.program_lines(closed)]
    program = "\n".join(line for line in held if not line.startswith("const"))
    assert parse_closed(program, consts=closed.consts).jaxpr == closed.jaxpr


def test_file_reads_as_it_is_documented(file: Path) -> None:
    assert_same_program(file, vnp.sin, vnp.ones(3), update=True)
    assert file.read_text() == (
        f"verax program 1: sin, by verax {verax.__version__}\n"
        "\n"
        "equations: 1\nflops: 3\nbytes: 24\npeak bytes: 24\n"
        "\n"
        "{ lambda ; a:f32[3]. let\n    sin1:f32[3] = sin a\n  in (sin1,) }\n"
    )


SCRIPT = """
    import os, sys
    import verax.numpy as vnp
    from tests.verify import test_pinned
    for name in ("everything", "grad of mlp", "psum", "grad of gpt"):
        fun, *args = test_pinned.PROGRAMS[name]()
        print(test_pinned.text_of(fun, *args))
    """


@pytest.mark.slow
def test_processes_agree() -> None:
    def printed(seed: str) -> str:
        path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        done = subprocess.run(
            [sys.executable, "-c", dedent(SCRIPT)],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        return done.stdout

    first = printed("1")
    assert "verax program 1" in first
    assert first == printed("2")


# ------------------------------------------------------------------ what is different


def failure(call: Callable[[], None]) -> str:
    with pytest.raises(AssertionError) as caught:
        call()
    return str(caught.value)


def test_difference_is_told_by_figures_line_and_text(file: Path) -> None:
    assert_same_program(file, mlp, WEIGHTS, BATCH, update=True)
    first, *rest = failure(
        lambda: assert_same_program(file, wider, WEIGHTS, BATCH)
    ).split("\n")
    assert first.startswith(
        "the program of wider changed: equations 8 -> 10 (+25 %), flops 1.76k -> "
    )
    assert rest[0] == f"pinned in {file}"
    assert "in sin, from tests/verify/test_pinned.py:" in rest[1]
    assert rest[1].endswith("(wider): hidden = vnp.sin(hidden) * hidden")
    assert rest[2] == "    + sin1:f32[16,8] = sin tanh1"
    assert "+    mul1:f32[16,8] = mul sin1 tanh1" in rest
    assert "VERAX_UPDATE_PROGRAMS=1" in rest[-1]
    gone = failure(lambda: assert_same_program(file, lambda w, x: x, WEIGHTS, BATCH))
    assert "first difference, in the inputs\n    - " in gone


def test_lost_equations_are_told(file: Path) -> None:
    assert_same_program(file, wider, WEIGHTS, BATCH, update=True)
    text = failure(lambda: assert_same_program(file, mlp, WEIGHTS, BATCH))
    assert "first difference, before dot_general, from" in text
    assert "    - sin1:f32[16,8] = sin tanh1\n--- the file" in text


def test_differences_inside_are_at_the_line_inside(file: Path) -> None:
    def stepping(x: Any, more: bool = False) -> Any:
        def step(c: Any, _: Any) -> Any:
            c = vnp.cos(c)
            c = vnp.exp(c) if more else c
            return c, None

        return lax.scan(step, x, None, length=4)[0]

    assert_same_program(file, stepping, 1.0, update=True)
    text = failure(lambda: assert_same_program(file, partial(stepping, more=True), 1.0))
    assert "first difference, in exp, from" in text
    assert "step): c = vnp.exp(c) if more else c" in text
    longer = failure(lambda: assert_same_program(file, partial(walk, length=4), 1.0))
    assert "first difference, in the results" not in longer


def test_long_differences_are_cut(file: Path) -> None:
    def chain(x: Any, f: Any = vnp.sin) -> Any:
        for _ in range(60):
            x = f(x)
        return x

    assert_same_program(file, chain, 1.0, update=True)
    text = failure(lambda: assert_same_program(file, partial(chain, f=vnp.cos), 1.0))
    shown = text[text.index("--- the file") : text.index("\nif this is meant")]
    assert len(shown.split("\n")) == pinned.MOST
    assert shown.endswith(" more lines")


def test_code_may_move_and_be_renamed(file: Path) -> None:
    source = "import verax.numpy as vnp\ndef f(x): return vnp.sin(x) * 2\n"
    lower = source.replace("def f(x)", "\n\n\ndef g(y)").replace("(x)", "(y)")
    one: dict[str, Any] = {}
    two: dict[str, Any] = {}
    exec(compile(source, "one.py", "exec"), one)
    exec(compile(lower, "two.py", "exec"), two)
    assert_same_program(file, one["f"], 1.0, update=True)
    assert_same_program(file, two["g"], 2.0)


def test_captured_values_count(file: Path) -> None:
    def with_table(table: Any) -> Callable[[Any], Any]:
        return lambda x: x + table

    x = vnp.ones((2, 3))
    assert_same_program(file, with_table(TABLE), x, update=True)
    assert "\nconst0:f32[2,3] is " in file.read_text()
    assert_same_program(file, with_table(vnp.array(TABLE)), x)
    text = failure(lambda: assert_same_program(file, with_table(TABLE + 1), x))
    assert text.startswith("the program of <lambda> changed: no figure did")
    assert "first difference, in a captured array, from tests/" in text
    assert text.count("const0:f32[2,3] is ") == 4


def test_captured_keys_count() -> None:
    def drawn(seed: int) -> str:
        key = random.key(seed)
        return text_of(lambda x: x + random.normal(key), 1.0)

    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)
    assert "const0:key<fry>[] is " in drawn(0)


def test_arrays_among_params_count() -> None:
    printer = pinned.PinnedPrinter(None, 0)
    assert printer.opaque(np.arange(3)) == printer.opaque(np.arange(3))
    assert printer.opaque(np.arange(3)) != printer.opaque(np.arange(3) + 1)
    assert printer.opaque(print) == "<print>"


@pytest.mark.slow
def test_programs_that_run_at_several_places_are_written_once() -> None:
    inner = verax.jit(lambda x: vnp.sin(vnp.cos(vnp.tan(x))))
    other = verax.jit(lambda x: vnp.exp(vnp.cos(vnp.tan(x))))
    text = text_of(lambda x: inner(inner(x)) + other(other(x)), 1.0)
    assert text.count("= tan ") == 2
    assert text.count("jaxpr=#lambda]") == text.count("jaxpr=#lambda_2]") == 1
    assert "equations: 17\n" in text
    nested: Any = inner
    for _ in range(40):
        nested = verax.jit(lambda x, f=nested: f(f(x)) + 1)
    assert len(text_of(nested, 1.0).splitlines()) < 600


# ---------------------------------------------------------------------- the figures


def test_figures_count_what_runs() -> None:
    one, ten = figures(partial(walk, length=1), 1.0), figures(walk, 1.0)
    assert one["equations"] == ten["equations"]
    assert ten["flops"] > 3 * one["flops"]
    assert list(ten) == list(pinned.ALWAYS)
    big = figures(lambda x: vnp.sum(x[:, None] * x), np.ones(1000, np.float32))
    assert big["peak bytes"] >= 4_000_000


def test_collectives_are_counted_as_often_as_they_run() -> None:
    def summed(x: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            return lax.psum(c, "i"), lax.all_gather(c, "i")

        return lax.scan(step, x, None, length=3)

    axes = [("i", 4)]
    x = np.ones(8, np.float32)
    found = figures(summed, x, axis_env=axes)
    assert {name: n for name, n in found.items() if name not in pinned.ALWAYS} == {
        "all_gather bytes": 96,
        "all_gather calls": 3,
        "psum bytes": 96,
        "psum calls": 3,
    }
    assert "psum calls: 1\n" in text_of(total, x, axis_env=axes)
    assert "calls" not in text_of(verax.vmap(total, axis_name="i"), x)


def test_collectives_of_branches_are_the_most() -> None:
    def chosen(x: Any) -> Any:
        return lax.cond(
            x.sum() > 0,
            lambda x: lax.psum(lax.psum(x, "i"), "i"),
            lambda x: lax.psum(x, "i"),
            x,
        )

    found = figures(chosen, np.ones(2, np.float32), axis_env=[("i", 4)])
    assert (found["psum calls"], found["psum bytes"]) == (2, 16)


def test_programs_of_a_mesh_are_pinned(file: Path) -> None:
    """Of a part too, whose collectives are counted; those of the whole XLA chooses."""
    mesh = verax.make_mesh((1,), ("m",))
    spread = partial(
        verax.shard_map, mesh=mesh, in_specs=verax.P("m"), out_specs=verax.P()
    )

    def local(x: Any) -> Any:
        return lax.psum((x * x).sum(), "m")

    assert_same_program(file, spread(local), vnp.ones(4), update=True)
    assert "psum" not in file.read_text()
    assert "reshard1" in file.read_text()
    part = verax.ShapeDtypeStruct((4,), np.float32)
    slope, axes = verax.grad(local), [("m", 2)]
    assert_same_program(file, slope, part, axis_env=axes, update=True)
    assert "psum bytes: 8\npsum calls: 2\n" in file.read_text()
    text = failure(
        lambda: assert_same_program(
            file, lambda x: slope(x) + local(x), part, axis_env=axes, exact=False
        )
    )
    assert "psum bytes 8 -> 12 (+50 %), psum calls 2 -> 3 (+50 %)" in text


def test_only_growth_beyond_the_tolerance_fails(file: Path) -> None:
    def check(fun: Any, tolerance: float = 0.0) -> None:
        assert_same_program(file, fun, WEIGHTS, BATCH, exact=False, tolerance=tolerance)

    assert_same_program(file, mlp, WEIGHTS, BATCH, update=True)
    check(lambda w, x: vnp.mean(x))
    text = failure(lambda: check(wider))
    assert text.startswith(
        "the program of wider grew in equations, flops, bytes, peak "
    )
    assert "by more than 10 %: equations 8 -> 10" in failure(
        lambda: check(wider, tolerance=0.1)
    )
    check(wider, tolerance=10)


def test_new_collectives_are_growth_whatever_the_tolerance(file: Path) -> None:
    options: dict[str, Any] = {"axis_env": [("i", 4)], "exact": False}
    assert_same_program(file, lambda x: x + x + x, 1.0, update=True, **options)
    text = failure(
        lambda: assert_same_program(
            file, lambda x: lax.psum(x, "i"), 1.0, tolerance=100.0, **options
        )
    )
    assert "grew in psum bytes, psum calls, by more than 10000 %" in text
    assert "psum calls 0 -> 1\n" in text


# ----------------------------------------------------------------------- the file


def test_missing_file_says_how_it_is_made(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = failure(lambda: assert_same_program(file, mlp, WEIGHTS, BATCH))
    assert f"the program of mlp is not pinned yet: there is no file {file}" in text
    assert "VERAX_UPDATE_PROGRAMS=1 in the environment, pytest --verax-update" in text
    monkeypatch.setenv("VERAX_UPDATE_PROGRAMS", "1")
    with pytest.raises(AssertionError, match="not pinned yet"):
        assert_same_program(file, mlp, WEIGHTS, BATCH, update=False)
    assert_same_program(file, mlp, WEIGHTS, BATCH)
    monkeypatch.setenv("VERAX_UPDATE_PROGRAMS", "0")
    assert_same_program(file, mlp, WEIGHTS, BATCH)
    monkeypatch.setenv("VERAX_UPDATE_PROGRAMS", "perhaps")
    with pytest.raises(ValueError, match="VERAX_UPDATE_PROGRAMS is 1 or 0, not"):
        assert_same_program(file, mlp, WEIGHTS, BATCH)


def test_update_leaves_a_file_that_is_right(file: Path) -> None:
    assert_same_program(file, mlp, WEIGHTS, BATCH, update=True)
    older = file.read_text().replace(verax.__version__, "0.0.9")
    file.write_text(older)
    assert_same_program(file, mlp, WEIGHTS, BATCH, update=True)
    assert file.read_text() == older
    text = failure(lambda: assert_same_program(file, wider, WEIGHTS, BATCH))
    assert f"by verax 0.0.9, and this is {verax.__version__}" in text
    assert_same_program(file, wider, WEIGHTS, BATCH, update=True)
    assert_same_program(file, wider, WEIGHTS, BATCH)


def test_line_ends_and_blanks_do_not_matter(file: Path) -> None:
    assert_same_program(file, mlp, WEIGHTS, BATCH, update=True)
    written = file.read_text()
    file.write_bytes(written.replace("\n", " \r\n").encode() + b"\r\n")
    assert_same_program(file, mlp, WEIGHTS, BATCH)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "its first line is ''"),
        (b"<<<<<<< ours\n", "its first line is '<<<<<<< ours'"),
        (b"verax program 9: f, by verax 9.0\n", "it has format 9"),
        (b"verax program 1: f, by verax 0.1\nequations: 1\n{", "lacks flops, bytes"),
        (b"verax program 1: f, by verax 0.1\n=======\n", "'=======' is no figure"),
        (b"\xff\xfe\x00", "is no pinned program"),
    ],
)
def test_damaged_files_are_refused(content: bytes, complaint: str, file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    with pytest.raises(NotPinned, match=complaint):
        assert_same_program(file, mlp, WEIGHTS, BATCH)
    assert_same_program(file, mlp, WEIGHTS, BATCH, update=True)
    assert_same_program(file, mlp, WEIGHTS, BATCH)


unchecked: Any = assert_same_program
"""For calls that type checkers refuse."""


@pytest.mark.parametrize(
    ("call", "error", "complaint"),
    [
        (lambda f: unchecked(mlp, f), TypeError, "the path of a file"),
        (lambda f: unchecked(f, 3), TypeError, "takes a function, not 3"),
        (lambda f: unchecked(f, mlp), TypeError, "missing 2 required"),
        (lambda f: unchecked(f, abs, "text"), TypeError, "text"),
        (lambda f: unchecked(f, abs, 1.0, exact=1), TypeError, "exact is"),
        (
            lambda f: unchecked(f, abs, 1.0, tolerance=0.1),
            ValueError,
            "pass exact=False with it",
        ),
        (
            lambda f: unchecked(f, abs, 1.0, exact=False, tolerance="10 %"),
            TypeError,
            "tolerance is a number",
        ),
        (
            lambda f: unchecked(f, abs, 1.0, exact=False, tolerance=-1),
            ValueError,
            "from 0.0 on, not -1",
        ),
        (
            lambda f: unchecked(f.parents[1], abs, 1.0),
            IsADirectoryError,
            "is a folder",
        ),
        (
            lambda f: verax.jit(lambda x: unchecked(f, lambda y: x * y, 1.0))(1.0),
            TypeError,
            "outside of functions that are traced",
        ),
    ],
)
def test_wrong_uses_say_so(
    call: Any, error: type[Exception], complaint: str, file: Path
) -> None:
    with pytest.raises(error, match=complaint):
        call(file)


# ------------------------------------------------------------------------ the plugin


TESTS = """
    import pytest
    import verax.numpy as vnp

    def squares(x):
        return (x * x).sum()

    @pytest.mark.parametrize("size", [2, 3])
    def test_squares(size, same_program):
        same_program(squares, vnp.ones(size))
        same_program(squares, vnp.ones((size, 1)))

    class TestMore:
        def test_squares(self, same_program):
            same_program(squares, vnp.ones(4), exact=False, tolerance=0.1)

    def test_call(tmp_path):
        from verax.verify import assert_same_program
        assert_same_program(tmp_path / "it.jaxpr", squares, 1.0)
        assert_same_program(tmp_path / "it.jaxpr", squares, 1.0, update=False)
"""


def test_fixture_keeps_files_beside_the_tests(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VERAX_UPDATE_PROGRAMS", raising=False)
    pytester.makeini(f"[pytest]\npythonpath = {ROOT / 'src'}\n")
    file = pytester.makepyfile(test_model=TESTS)
    options = ["-p", "verax.verify.plugin", "-k"]
    missing = pytester.runpytest_inprocess(*options, "squares")
    missing.assert_outcomes(failed=3)
    missing.stdout.fnmatch_lines(["*the program of squares is not pinned yet*"])
    written = pytester.runpytest_inprocess(*options, "test", "--verax-update")
    written.assert_outcomes(passed=4)
    assert "VERAX_UPDATE_PROGRAMS" not in os.environ
    names = sorted(each.name for each in (file.parent / "programs").iterdir())
    assert names == [
        "test_model.TestMore.test_squares.jaxpr",
        "test_model.test_squares-2-2.jaxpr",
        "test_model.test_squares-2.jaxpr",
        "test_model.test_squares-3-2.jaxpr",
        "test_model.test_squares-3.jaxpr",
    ]
    pytester.runpytest_inprocess(*options, "squares").assert_outcomes(passed=3)
    file.write_text(file.read_text().replace("x * x", "x * x * x"))
    grown = pytester.runpytest_inprocess(*options, "squares")
    grown.assert_outcomes(failed=3)
    grown.stdout.fnmatch_lines(
        [
            "*AssertionError: the program of squares changed: equations 2 -> 3 (+50 %*",
            "*first difference, in mul, from test_model.py:* (squares): return *",
        ]
    )
