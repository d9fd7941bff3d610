"""`python -m verax explore`, on scripts, modules and saved programs."""

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.__main__ import main
from verax.explorer.printed import plain

SCRIPT = """
import functools
import numpy as np
import verax, verax.numpy as vnp
from helper import SIZE

weights = np.ones((SIZE, SIZE), np.float32)

def loss(w, x, scale=1.0):
    return (vnp.tanh(x @ w) * scale).sum()

def powers(w, x, power, mode="sum"):
    y = vnp.tanh(x @ w) ** power
    return y.sum() if mode == "sum" else y.mean()

def undefined(x, /):
    y = vnp.log(x - 1)
    return y * 2

def told(x):
    print("the script speaks")
    return x * 2

def rows(x, *rest, **more):
    return x

jitted = verax.jit(powers, static_argnames=("power", "mode"))
donating = verax.jit(loss, donate_argnums=0)

class Model:
    gradient = staticmethod(verax.grad(loss))

    @functools.partial(verax.jit, static_argnums=(0, 2))
    def forward(self, x, mode):
        return vnp.sin(x).sum() if mode == "sin" else x.sum()

model = Model()

if __name__ == "__main__":
    raise AssertionError("it is not the main module")
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A script that imports a module beside it."""
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    (tmp_path / "helper.py").write_text("SIZE = 3\n")
    return path


def document_at(path: Path) -> Any:
    return json.loads(path.read_text())


def test_a_function_of_a_script(script: Path, tmp_path: Path) -> None:
    out = tmp_path / "loss.json"
    target = f"{script}:loss"
    args = "weights, np.ones((2, SIZE)), scale=2.0"
    assert main(["explore", target, "--args", args, "-o", str(out)]) == 0
    document = document_at(out)
    assert document["title"] == "loss"
    assert [s["name"] for s in document["stages"]] == ["trace", "stablehlo", "hlo"]
    assert document["files"][0]["path"] == str(script)


def test_an_attribute_and_a_profile(script: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "page.html"
    target = f"{script}:Model.gradient"
    args = ["--args", "weights, weights", "--profile", "-o", str(out)]
    assert main(["explore", target, *args]) == 0
    assert out.read_text().startswith("<!doctype html>")
    assert str(out) in capsys.readouterr().out


def test_a_module(tmp_path: Path) -> None:
    out = tmp_path / "sinc.json"
    args = ["--args", "np.ones(3)", "--no-compile", "-o", str(out)]
    assert main(["explore", "verax.numpy:sinc", *args]) == 0
    assert document_at(out)["stages"][-1]["name"] == "stablehlo"


def test_a_saved_program(tmp_path: Path) -> None:
    closed = verax.make_jaxpr(verax.grad(lambda x: vnp.sin(x).sum()))(
        np.ones(3, np.float32)
    )
    path, out = tmp_path / "program.jaxpr", tmp_path / "out.json"
    path.write_bytes(verax.ir.dumps(closed))
    assert main(["explore", str(path), "-o", str(out)]) == 0
    stage = document_at(out)["stages"][0]
    names = [stage["strings"][i] for i in stage["rows"]["op"]]
    assert [name for name in names if name] == [
        eqn.primitive.name for eqn in closed.eqns
    ]


def test_mistakes(script: Path, tmp_path: Path, capsys: Any) -> None:
    assert main(["explore", str(tmp_path / "none.py:f")]) == 2
    assert "no such script" in capsys.readouterr().err
    assert main(["explore", f"{script}:nothing"]) == 2
    assert "has no function nothing" in capsys.readouterr().err
    (tmp_path / "bad.jaxpr").write_text("{ lambda")
    assert main(["explore", str(tmp_path / "bad.jaxpr")]) == 2
    assert "script.py:function" in capsys.readouterr().err
    assert main(["explore", "no_such_module_at_all:f"]) == 2
    for text, message in [("unknown", "'unknown' is not defined"), ("1 +", "syntax")]:
        assert main(["explore", f"{script}:loss", "--args", text]) == 2
        assert message in capsys.readouterr().err
    with pytest.raises(ZeroDivisionError) as raised:  # errors of users are raised
        main(["explore", f"{script}:loss", "--args", "1 / 0"])
    assert raised.value.__notes__ == ["while --args '1 / 0' was evaluated"]


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("{}", [], "this is a script: say which function, as in "),
        ("{}:", [], "write script.py:function or package.module:function"),
        (":loss", [], "write script.py:function or package.module:function"),
        ("none.jaxpr", [], "there is no such file"),
        ("{}:lose", [], "has no function lose; it has donating, jitted, loss"),
        ("{}:SIZE", [], "this is of type int, not a function"),
        ("{}:loss", [], "loss(w, x, scale=1.0): missing a required argument: 'w'"),
        ("{}:loss", ["--args", "1, 2, 3, 4"], "too many positional arguments"),
        ("{}:loss", ["--args", "1, 2, rate=3"], "unexpected keyword argument 'rate'"),
        ("{}:loss", ["--profile", "--no-compile"], "leave out --no-compile"),
        ("{}:loss", ["-o", "no/such/page.html"], "there is no directory no/such"),
    ],
)
def test_mistakes_in_calls(
    script: Path, capsys: Any, target: str, options: list[str], message: str
) -> None:
    assert main(["explore", target.format(script), *options]) == 2
    assert message in capsys.readouterr().err


def test_a_jaxpr_explored_in_python() -> None:
    closed = verax.make_jaxpr(lambda x, y: vnp.sin(x) @ y)(np.ones(3), np.ones(3))
    actual = verax.explore(closed)()
    assert [row.op for row in actual.content.stages[0].rows if row.op] == [
        eqn.primitive.name for eqn in closed.eqns
    ]
    assert actual.title == "program"


def printed(capsys: Any, target: str, *options: str) -> Any:
    """What the command prints as JSON."""
    assert main(["explore", target, *options, "--json"]) == 0
    return json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def names(stages: Any) -> list[str]:
    return [stage["name"] for stage in stages]


def without_times(stages: Any) -> Any:
    return [{n: x for n, x in stage.items() if n != "seconds"} for stage in stages]


def test_transformations_are_those_of_python(script: Path, capsys: Any) -> None:
    xs = "np.ones((4, 2, SIZE), np.float32)"
    options = ["--args", f"weights, {xs}", "--grad", "w,1", "--vmap", "None,0"]
    document = printed(capsys, f"{script}:loss", *options, "--no-compile")["document"]
    loss = runpy.run_path(str(script), run_name="__explore__")["loss"]
    both = verax.vmap(verax.grad(loss, (0, 1)), (None, 0))
    found = verax.explore(both, compile=False)(
        np.ones((3, 3), np.float32), np.ones((4, 2, 3), np.float32)
    )
    expected = json.loads(json.dumps(found.document))
    assert document["title"] == "loss"
    assert {"linearize", "transpose", "vmap"} <= {*names(document["stages"])}
    assert without_times(document["stages"]) == without_times(expected["stages"])


@pytest.mark.parametrize("static", ["power,mode", "2,3", "mode,2", "-1,power"])
def test_static_arguments(script: Path, capsys: Any, static: str) -> None:
    args = ["--args", "weights, weights, 3, 'mean'", f"--static={static}"]
    report = printed(capsys, f"{script}:powers", *args, "--costs", "h100")
    assert report["lines"]
    report = printed(capsys, f"{script}:powers", *args, "--grad", "x", "--watch")
    assert {v["kind"] for v in report["values"]} == {"value", "cotangent"}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("jitted", ["--vmap", "1"]),
        ("jitted", ["--vmap", "1,1,None,None"]),
        ("powers", ["--vmap", "(1, 1, None, None)", "--static", "power,mode"]),
        ("powers", ["--vmap=1", "--static", "2,3"]),
    ],
)
def test_static_arguments_are_not_mapped(
    script: Path, capsys: Any, name: str, options: list[str]
) -> None:
    args = ["--args", "np.ones((3, 2, 3)), np.ones((3, 2, 3)), 3, 'mean'"]
    args += [*options, "--grad", "x"]
    report = printed(capsys, f"{script}:{name}", *args, "--watch")
    types = {v["type"] for v in report["values"] if v["kind"] == "cotangent"}
    assert "f32[2,3,3]" in types


@pytest.mark.parametrize(
    "more", [[], ["--grad"], ["--grad", "x"], ["--static", "mode"], ["--vmap"]]
)
def test_a_jitted_function_keeps_its_static_arguments(
    script: Path, capsys: Any, more: list[str]
) -> None:
    args = ["--args", "weights, weights, power=3, mode='mean'", *more]
    if more == ["--vmap"]:
        args[1] = "vnp.stack([weights] * 2), vnp.stack([weights] * 2), 3, 'mean'"
    assert printed(capsys, f"{script}:jitted", *args, "--costs", "h100")["lines"]


def test_a_jitted_method_keeps_its_static_arguments(script: Path, capsys: Any) -> None:
    args = ["--args", "weights, 'sin'", "--grad", "x", "--watch"]
    (value,) = printed(capsys, f"{script}:model.forward", *args)["values"]
    assert [value["function"], value["kind"]] == ["Model.forward", "cotangent"]


def test_costs(script: Path, capsys: Any) -> None:
    struct = "ShapeDtypeStruct((512, 512), np.float32)"
    args = ["--args", f"{struct}, {struct}", "--grad"]
    assert main(["explore", f"{script}:loss", *args, "--costs", "h100"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("loss: 538M flops")
    assert "return (vnp.tanh(x @ w) * scale).sum()" in out
    report = printed(capsys, f"{script}:loss", *args, "--costs", "h100")
    assert [report[n] for n in ("kind", "version", "name")] == ["costs", 1, "loss"]
    assert report["device"]["name"] == "h100"
    assert {line["kind"] for line in report["lines"]} == {"value", "cotangent"}
    assert sum(line["flops"] for line in report["lines"]) == report["flops"]
    report = printed(capsys, f"{script}:loss", *args, "--costs")
    assert report["device"] == report["device"] | {"memory": "Infinity", "half": None}


@pytest.mark.slow
def test_watch(script: Path, capsys: Any) -> None:
    args = ["--args", "np.array([0.0, 1.0, 2.0])", "--watch"]
    assert main(["explore", f"{script}:undefined", *args]) == 0
    assert "1 NaN, 1 infinite" in capsys.readouterr().out
    report = printed(capsys, f"{script}:undefined", *args)
    assert [report[n] for n in ("kind", "version")] == ["watched", 1]
    log = report["values"][0]
    assert [log["primitive"], log["nans"], log["infinite"]] == ["log", 1, 1]
    assert log["exponents"] == {"0": 1 / 3, "255": 2 / 3}
    args[1] = "np.array([0.0])"
    least = [
        v["least"] for v in printed(capsys, f"{script}:undefined", *args)["values"]
    ]
    assert least == ["NaN", "NaN"]
    for name in ("jitted", "powers"):
        more = ["--args", "weights, weights, 3", "--grad", "--static", "power"]
        values = printed(capsys, f"{script}:{name}", *more, "--watch")["values"]
        assert {v["function"] for v in values} == {"powers"}
        assert "jit" not in {v["primitive"] for v in values}


def test_json_has_standard_output_to_itself(script: Path, capsys: Any) -> None:
    args = ["--args", "np.ones(3)", "--no-compile", "--json"]
    assert main(["explore", f"{script}:told", *args]) == 0
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert [report[n] for n in ("kind", "version")] == ["exploration", 1]
    assert names(report["document"]["stages"]) == ["trace", "stablehlo"]
    assert "the script speaks" in err


def test_what_is_not_json() -> None:
    given = {1: np.float32(0.5), "y": (np.inf, np.bool_(True)), "z": np.ones((1, 1))}
    assert plain(given) == {"1": 0.5, "y": ["Infinity", True], "z": [[1.0]]}
    with pytest.raises(TypeError, match="set has no form in JSON"):
        plain({1})


def test_reports_of_a_saved_program(tmp_path: Path, capsys: Any) -> None:
    ones = np.ones(3, np.float32)
    closed = verax.make_jaxpr(lambda x, y: vnp.sin(x * y).sum())(ones, ones)
    path = tmp_path / "program.jaxpr"
    path.write_bytes(verax.ir.dumps(closed))
    assert printed(capsys, str(path), "--costs", "h100")["flops"] == 9
    assert printed(capsys, str(path), "--grad", "0,1", "--costs", "h100")["flops"] > 9
    args = ["--args", "np.ones((2, 3), np.float32), np.ones(3, np.float32)"]
    report = printed(capsys, str(path), *args, "--vmap", "0,None", "--watch")
    assert {"mul", "sin", "reduce_sum"} <= {v["primitive"] for v in report["values"]}
    for options, message in [
        (["--static", "x"], "a saved program has no static arguments"),
        (["--vmap"], "say with --args which arrays"),
        (["--args", "1"], "the program takes 2 arguments by position, not 1"),
        (["--args", "x=1"], "not 1 by name"),
        (["--watch"], "argument args[0] of program is a type without a value"),
    ]:
        assert main(["explore", str(path), *options]) == 2
        assert message in capsys.readouterr().err


STRUCT = "ShapeDtypeStruct((3, 3), np.float32)"
TWO = ["--args", "weights, weights"]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("loss", [*TWO, "--static", "rate"], "no argument rate; it has w, x, scale"),
        ("loss", [*TWO, "--static", "3"], "--static 3: loss has no argument 3; it"),
        ("loss", [*TWO, "--static", "w,"], "write names or numbers of arguments"),
        ("loss", [*TWO, "--static", "w"], "argument 0 of type ndarray is not hashable"),
        ("donating", [*TWO, "--static", "w"], "donated is not static"),
        ("powers", ["--args", "weights, weights, 2, 'sum'"], "static (--static)"),
        ("loss", [*TWO, "--grad", "y"], "--grad y: loss has no argument y"),
        ("loss", [*TWO, "--grad", "scale"], "has 2; pass scale by its position"),
        ("loss", ["--args", "weights, x=weights", "--grad", "x"], "by its position"),
        ("loss", [*TWO, "--grad", "2"], "of which --args has 2"),
        ("loss", [*TWO, "--grad", "0,0"], "argnums names an argument twice"),
        ("jitted", ["--args", "weights, weights, 2.0", "--grad", "2"], "is static and"),
        ("loss", ["--args", "np.ones((3, 3), int), 1.0", "--grad"], "got int32"),
        ("undefined", ["--args", "np.ones(3)", "--grad"], "undefined returns f32[3]"),
        ("loss", [*TWO, "--vmap", "0;"], "write dimensions as in_axes"),
        ("loss", [*TWO, "--vmap", "0,0,0"], "3 entries, and the call 2 positional"),
        ("loss", [*TWO, "--vmap", "None"], "at least one non-None value"),
        ("loss", [*TWO, "--vmap", "0,2"], "along axis 2"),
        ("loss", [*TWO, "--vmap", "'w',0"], "contains 'w' of type str"),
        ("jitted", ["--args", "weights, weights, 2", "--vmap", "0,0,0"], "is static"),
        ("loss", ["--args", f"weights, {STRUCT}", "--watch"], "--watch runs the"),
        (
            "loss",
            ["--args", f"weights, {STRUCT}", "--profile"],
            "argument x of loss is",
        ),
        (
            "loss",
            [*TWO, "--costs", "p100"],
            "there are cpu, h100, h200, b200, a100, v100",
        ),
        ("loss", [*TWO, "--costs", "--watch"], "choose one"),
        ("loss", [*TWO, "--costs", "--profile"], "leave it out of --costs"),
        ("loss", [*TWO, "--watch", "--no-compile"], "leave it out of --watch"),
        ("loss", [*TWO, "--costs", "-o", "page.html"], "--costs prints"),
        ("loss", [*TWO, "--watch", "--json", "-o", "page.html"], "--json prints"),
        ("loss", [*TWO, "--json", "-o", "page.html"], "--json prints"),
    ],
)
def test_mistakes_in_options(
    script: Path, capsys: Any, name: str, options: list[str], message: str
) -> None:
    assert main(["explore", f"{script}:{name}", *options]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("static", ["5", "more", "any_name"])
def test_arguments_that_a_signature_leaves_open(
    script: Path, capsys: Any, static: str
) -> None:
    args = ["--args", "np.ones(3), any_name='kept'", "--static", f"{static},any_name"]
    assert printed(capsys, f"{script}:rows", *args, "--watch")["kind"] == "watched"
