"""How arrays lie, as values and as pictures, on one device."""

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
    found: list[object] = []
    tree = {"a": vnp.zeros(3), "b": [vnp.array(1)]}
    inspect_array_sharding(tree, callback=found.append)
    assert found == [ONE, ONE]
    with pytest.raises(TypeError, match="takes arrays"):
        inspect_array_sharding(3, callback=found.append)
    with pytest.raises(NotImplementedError, match="return the value"):
        verax.jit(lambda x: inspect_array_sharding(x, callback=print))(1.0)


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
