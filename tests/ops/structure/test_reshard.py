"""What `out_sharding` does with any signature, and that functions hand all over."""

import ast
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.ops.elementwise.arith import add, mul
from verax.ops.structure.reshard import call_sharded
from verax.sharding import AxisType, NamedSharding, PartitionSpec as P

MESH = verax.make_mesh((1,), ("x",), (AxisType.Explicit,))
PLACE = NamedSharding(MESH, P("x"))
SOURCE = Path(verax.__file__).parent


class Pair(NamedTuple):
    """Two operands in one argument."""

    first: Any
    second: Any


def combination(
    first: Any,
    /,
    pair: Any,
    *more: Any,
    factor: float = 1.0,
    out_sharding: object = None,
    **options: Any,
) -> Any:
    if out_sharding is not None:
        return call_sharded(combination, locals())
    assert options == {"name": "it"}
    assert type(pair) is Pair
    total = add(mul(first, factor), add(*pair))
    for x in more:
        total = add(total, x)
    return total


def call(out_sharding: object) -> Any:
    one, pair = vnp.ones(2), Pair(vnp.ones(2), np.ones(2, np.float32))
    options: dict[str, Any] = {"factor": 3.0, "name": "it"}
    return combination(one, pair, one, one, **options, out_sharding=out_sharding)


def test_all_arguments_are_handed_over() -> None:
    for actual in (call(PLACE), verax.jit(lambda: call(PLACE))()):
        assert verax.typeof(actual) == verax.typeof(verax.device_put(actual, PLACE))
        assert actual.tolist() == [7.0, 7.0]


def test_a_sharding_that_says_nothing_is_none() -> None:
    actual = call(verax.typeof(vnp.ones(2)).sharding)
    assert verax.typeof(actual) == verax.typeof(vnp.ones(2))
    assert actual.tolist() == [7.0, 7.0]


def test_messages_name_the_function() -> None:
    with pytest.raises(TypeError, match="combination takes a device, a Sharding"):
        call(3)


def functions_that_call_it() -> list[ast.FunctionDef]:
    return [
        node
        for path in SOURCE.rglob("*.py")
        if "call_sharded(" in (source := path.read_text())
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef)
        for statement in node.body
        if isinstance(statement, ast.If)
        and "return call_sharded(" in ast.unparse(statement)
    ]


@pytest.mark.parametrize("function", functions_that_call_it(), ids=lambda f: f.name)
def test_functions_hand_themselves_over_before_anything_else(
    function: ast.FunctionDef,
) -> None:
    first = function.body[1 if ast.get_docstring(function) else 0]
    lines = re.escape("if out_sharding is not None:\n    return call_sharded(")
    own = rf"(\w+\.)?{function.name}, locals\(\)"
    assert re.match(lines + own, ast.unparse(first))
