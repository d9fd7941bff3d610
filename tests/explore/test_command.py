"""`python -m verax explore`, on scripts, modules and saved programs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.__main__ import main

SCRIPT = """
import numpy as np
import verax, verax.numpy as vnp
from helper import SIZE

weights = np.ones((SIZE, SIZE), np.float32)

def loss(w, x, scale=1.0):
    return (vnp.tanh(x @ w) * scale).sum()

class Model:
    gradient = staticmethod(verax.grad(loss))

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
        ("{}:lose", [], "has no function lose; it has loss"),
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
