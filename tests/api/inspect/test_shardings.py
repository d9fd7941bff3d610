"""How arrays lie, as values and as pictures, on one device."""

from typing import Any

import pytest

import verax
import verax.numpy as vnp
from verax.debug import (
    inspect_array_sharding,
    visualize_array_sharding,
    visualize_sharding,
)

ONE = verax.sharding.SingleDeviceSharding(verax.devices()[0])

type Captured = pytest.CaptureFixture[str]


def test_the_sharding_of_every_array_of_a_tree() -> None:
    actual: list[object] = []
    tree = {"a": vnp.zeros(3), "b": [vnp.array(1)]}
    inspect_array_sharding(tree, callback=actual.append)
    assert actual == [ONE, ONE]
    with pytest.raises(TypeError, match="takes arrays"):
        inspect_array_sharding(3, callback=actual.append)


def test_values_of_programs_are_inspected_when_they_are_compiled() -> None:
    actual: list[object] = []

    def f(x: Any) -> Any:
        inspect_array_sharding((x + 1, vnp.sin(x)), callback=actual.append)
        return x * 2

    compiled = verax.jit(f)
    lowered = compiled.lower(1.0)
    assert actual == []
    lowered.compile()
    assert actual == [ONE, ONE]
    assert [float(compiled(x)) for x in (1.0, 2.0)] == [2.0, 4.0]
    assert actual in ([ONE] * 2, [ONE] * 4)  # the call may compile again
    count = len(actual)
    compiled(3.0)
    assert len(actual) == count


def test_transformations_of_programs_that_are_inspected() -> None:
    actual: list[object] = []

    def f(x: Any) -> Any:
        inspect_array_sharding(vnp.sin(x), callback=actual.append)
        return (x**3).sum()

    assert verax.jit(verax.grad(f))(2.0) == 12.0
    assert verax.grad(f)(2.0) == 12.0
    assert verax.jit(verax.grad(verax.checkpoint(f)))(2.0) == 12.0
    assert actual == [ONE] * 3
    assert verax.jit(verax.vmap(f))(vnp.arange(2.0)).tolist() == [0.0, 1.0]
    assert verax.jvp(verax.jit(f), (2.0,), (1.0,))[1] == 12.0
    assert set(actual) == {ONE}
    assert "inspect_sharding[viewer=" in str(verax.make_jaxpr(f)(1.0))
    failing = verax.jit(lambda x: inspect_array_sharding(x, callback=lambda s: 1 / 0))
    with pytest.raises(ZeroDivisionError):
        failing(1.0)
    with pytest.raises(TypeError, match="inspect_array_sharding"):
        verax.jit(lambda x: inspect_array_sharding(x, callback=3))(1.0)  # type: ignore[arg-type]  # on purpose


def test_pictures_of_values_of_programs(capsys: Captured) -> None:
    verax.jit(lambda x: visualize_array_sharding(x * 2))(vnp.zeros(5))
    assert capsys.readouterr().out.splitlines()[1] == "│ CPU 0 │"


def test_pictures(capsys: Captured) -> None:
    visualize_array_sharding(vnp.zeros(5))
    visualize_sharding((5,), ONE, scale=8.0)
    visualize_sharding((4, 4), ONE, scale=0.4, min_width=3)
    assert capsys.readouterr().out.splitlines() == [
        "┌───────┐",
        "│ CPU 0 │",
        "└───────┘",
        "┌──────────────────────────────────────┐",
        "│                CPU 0                 │",
        "└──────────────────────────────────────┘",
        "┌────────┐",
        "│        │",
        "│ CPU 0  │",
        "│        │",
        "└────────┘",
    ]


@pytest.mark.parametrize("shape", [(), (1, 2, 3)])
def test_shapes_that_have_no_picture(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="one or two dimensions"):
        visualize_sharding(shape, ONE)


def test_colours_on_a_terminal(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    visualize_sharding((5,), ONE, color_map=lambda x: (1.0, x, 0.0, 1.0))
    visualize_sharding((5,), ONE, color_map=lambda x: "#000080")
    visualize_sharding((5,), ONE, use_color=False)
    red, blue, *plain = capsys.readouterr().out.splitlines()
    assert red == "\x1b[48;2;255;0;0m\x1b[97m  CPU 0  \x1b[0m"
    assert blue == "\x1b[48;2;0;0;128m\x1b[97m  CPU 0  \x1b[0m"
    assert len(plain) == 3
